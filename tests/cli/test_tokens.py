"""The command tokens."""

import json
from pathlib import Path

import pytest

from tests.commands import command
from tests.texts import one_word_decides


def table(path: Path, n: int = 60) -> Path:
    own = one_word_decides(n)
    rows = [f"{text},{own.classes[y]}" for text, y in zip(own.texts, own.labels, strict=True)]
    path.write_text("\n".join(["text,label", *rows]))
    return path


def test_tokens_on_the_command_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file, page = table(tmp_path / "data.csv"), tmp_path / "page.html"
    words = ("tokens", file, "--least", "1", "--no-stem", "--top", "2")
    code, out, err = command(capsys, *words, "--statistics-only")
    assert (code, err) == (0, "")
    assert "tokens that speak for 'pos'" in out
    assert "stop words removed: 360 tokens, 9 different" in out
    code, out, _ = command(
        capsys, *words, "--epochs", "30", "--lr", "0.02", "--batch", "20", "--html", page, "--json"
    )
    record = json.loads(out)
    assert code == 0
    assert {row["token"] for row in record["positive"]} == {"superb", "lovely"}
    assert {row["kind"] for row in record["negative"]} == {"completely negative"}
    assert record["agreement"]["accuracy"] == 1.0
    text = page.read_text()
    assert text.count("<svg") == 2
    assert "<title>superb: +1.00" in text
    code, _, err = command(capsys, *words, "--lr", "1e30", "--epochs", "3")
    assert code == 2
    assert "lr: got 1e+30, with which the loss becomes" in err
    code, _, err = command(capsys, *words, "--html", tmp_path / "none" / "x.html")
    assert (code, "--html: got" in err) == (2, True)
    code, out, _ = command(capsys, *words, "--epochs", "1", "--frequent", "99")
    assert "no token that was seen at least 99 times" in out
    code, _, err = command(capsys, *words, "--frequent", "0")
    assert (code, "--frequent: got 0" in err) == (2, True)
    code, _, err = command(capsys, *words, "--width", "0")
    assert (code, "--width: got 0" in err) == (2, True)
    code, _, err = command(capsys, *words, "--top", "0")
    assert (code, "--top: got 0" in err) == (2, True)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"text,label\nfine,\n", "--drop: got"),
        (b"text,label\n,1\nb,0\n", "row 1 without text"),
        (b"words,label\na,1\n", "--text: got"),
        (b"text,label\n\xff\xfe,1\n", "needs text in UTF-8"),
    ],
)
def test_bad_files_get_one_sentence(
    content: bytes, words: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "bad.csv"
    file.write_bytes(content)
    code, out, err = command(capsys, "tokens", file)
    assert (code, out) == (2, "")
    assert words in err
    assert len(err.strip().splitlines()) == 1
