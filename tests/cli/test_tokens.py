"""The command tokens."""

import json
from pathlib import Path

import pytest

import attnmargin as am
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


def test_evidence_and_noise_on_the_command_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file, page = table(tmp_path / "data.csv"), tmp_path / "page.html"
    words = ("tokens", file, "--least", "1", "--statistics-only")
    code, out, _ = command(capsys, *words, "--pairs", "--json", "--html", page)
    record = json.loads(out)
    assert (code, record["level"]) == (0, 0.05)
    own = record["evidence"]
    assert own["found"] == own["positive"] + own["negative"] == own["tokens"] - own["noise"]
    listed = {row["word"] for row in record["positive"]}
    assert {"superb", "lovely"} <= listed
    assert "film" not in listed  # as often in both classes, up to chance
    row = record["positive"][0]
    assert row["difference interval"][0] < row["difference"] <= row["difference interval"][1]
    assert row["alpha interval"][0] < row["alpha"] < row["alpha interval"][1]
    assert row["texts"] == row["texts positive"] <= row["count"]
    assert "<svg" in page.read_text()
    _, out, _ = command(capsys, *words)
    assert "evidence at level 0.05" in out
    _, out, _ = command(capsys, *words, "--level", "1e-30")
    assert "No token is evidence for a class at level 1e-30" in out
    assert "--level allows" in out
    code, _, err = command(capsys, *words, "--level", "0")
    assert (code, "--level: got 0.0; needs a number between" in err) == (2, True)
    code, _, err = command(capsys, "tokens", file, "--statistics-only", "--least", "1000")
    assert (code, "--least: got 1000, which leaves no token" in err) == (2, True)


def test_three_classes_have_a_table_and_tabs(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path, page = tmp_path / "three.csv", tmp_path / "page.html"
    am.text.planted_corpus(300, words=40, deciding=6, shares=[0.2, 0.3, 0.5]).write(path)
    words = ("tokens", path, "--least", "5", "--epochs", "1")
    code, out, _ = command(capsys, *words, "--json", "--html", page, "--out", tmp_path / "runs")
    record = json.loads(out)
    assert (code, record["classes"]) == (0, ["1", "2", "3"])
    assert [own["class"] for own in record["each"]] == ["1", "2", "3"]
    assert record["each"][2]["positive"][0]["evidence"]
    assert page.read_text().count('type="radio"') == 3
    assert sorted(own.name for own in (tmp_path / "runs").iterdir()) == ["class-1", "class-2",
                                                                         "class-3"]  # fmt: skip
    code, out, _ = command(capsys, *words, "--statistics-only")
    assert (code, "tokens that speak for each class" in out) == (0, True)
    _, out, _ = command(capsys, *words, "--statistics-only", "--positive", "2", "--json")
    assert json.loads(out)["classes"] == ["not 2", "2"]
    code, _, err = command(capsys, *words, "--positive", "4")
    assert (code, "--positive: got '4'; needs one of 1, 2, 3" in err) == (2, True)


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
