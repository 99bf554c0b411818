"""attnmargin heads: output, page, exit codes, and one sentence for every wrong input."""

import json
import re
from pathlib import Path

import pytest
import torch

from tests.commands import command, write
from tests.models.instances import REVIEWS, minilm, small_model

FAST = ("--queries", 6, "--draws", 2)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small model in a folder of its own, with the tokenizer of MiniLM."""
    path = tmp_path_factory.mktemp("model")
    tokenizer = minilm().tokenizer
    small_model("bert", vocab_size=tokenizer.vocab_size).save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    return write(tmp_path / "reviews.txt", list(REVIEWS))


def test_all_heads_as_a_table_and_as_json(
    folder: Path, texts: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = command(capsys, "heads", folder, texts, *FAST)
    assert (code, err) == (0, "")
    assert "8 heads on 4 texts of" in out
    code, out, _ = command(capsys, "heads", folder, texts, "--all", "--json", *FAST)
    record = json.loads(out)
    assert code == 0
    assert [(own["layer"], own["head"]) for own in record["heads"]] == [
        (layer, head) for layer in (0, 1) for head in range(4)
    ]
    assert record["reconstruction error"] <= 1e-6
    assert 0.0 < record["heads"][0]["efficiency"]["value"] < 1.0
    assert record["heads"][0]["norms"]["rank"] == 8


def test_one_head_in_detail(folder: Path, texts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("heads", folder, texts, "--layer", 1, "--head", 2, *FAST)
    code, out, _ = command(capsys, *words)
    assert code == 0
    assert "hold the selection in place; the best margin is" in out
    record = json.loads(command(capsys, *words, "--json")[1])
    assert len(record["heads"]) == 1
    assert record["detail"]["guards"] > 0
    assert record["detail"]["nuclear"] is None


def test_the_page_holds_everything_and_loads_nothing(
    folder: Path, texts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    tricky = write(tmp_path / "tricky.txt", ["</script><b>bold</b> words", *REVIEWS])
    code, out, _ = command(
        capsys, "heads", folder, tricky, "--html", page, "--want", "previous", *FAST
    )
    assert code == 0
    assert f"page: {page}" in out
    text = page.read_text("utf-8")
    assert not re.search(r"""(src|href)="(?!#)|https?://|@import|url\(""", text)
    assert text.count("</script>") == 2
    data = json.loads(text.split('id="data">')[1].split("</script>")[0])
    assert len(data["heads"]) == 8
    shown = data["heads"][3]["shown"][0]
    shares = dict(map(tuple, shown["attention"]))
    assert shares[shown["token"]] == max(shares.values())
    assert "prefers-color-scheme: dark" in text


def test_wanted_pairs_from_a_file(
    folder: Path, texts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{"text": 0, "query": 3, "token": 2}, {"text": 2, "query": 4, "token": 1}]
    want = write(tmp_path / "pairs.jsonl", [json.dumps(row) for row in rows])
    code, out, _ = command(capsys, "heads", folder, texts, "--want", want, "--json", *FAST)
    record = json.loads(out)["wanted"]
    assert code == 0
    assert record["pairs"] == 2
    assert len(record["heads"]) == 8
    assert [own["status"] for own in record["layers"]] == ["optimal", "optimal"]
    assert all(own["gap"] < 1e-12 for own in record["layers"])


def test_a_selection_that_no_layer_realises_exits_with_1(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = write(tmp_path / "twice.txt", ["a good film", "a good film"])
    rows = [{"text": 0, "query": 2, "token": 1}, {"text": 1, "query": 2, "token": 3}]
    want = write(tmp_path / "pairs.jsonl", [json.dumps(row) for row in rows])
    code, out, _ = command(capsys, "heads", folder, texts, "--want", want, *FAST)
    assert code == 1
    assert "in text 0 query “good” (2) wants “a” (1) over “film” (3); in text 1 query" in out


def test_texts_from_jsonl_and_cut(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = write(tmp_path / "t.jsonl", [json.dumps({"text": text}) for text in REVIEWS])
    words = ("heads", folder, texts, "--length", 6, "--layer", 0, "--json", *FAST)
    record = json.loads(command(capsys, *words)[1])
    assert (record["tokens"], len(record["heads"])) == (24, 4)


def test_saturated_queries_or_the_reason_why_not(
    folder: Path, texts: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("heads", folder, texts, "--which", "saturated", "--draws", 2)
    record = json.loads(command(capsys, *words, "--saturated", 0.15, "--json")[1])
    assert (record["which"], record["saturated"], record["price"]) == ("saturated", 0.15, None)
    own = max(record["heads"], key=lambda head: head["asked"])
    assert own["asked"] == round(own["saturation"]["value"] * own["queries"]) > 0
    assert (own["draws"], own["feasible"], own["rows held"]) == (1, 1, 1.0)
    assert "more than 15%: " in record["sentences"][3]
    code, out, err = command(capsys, *words, "--saturated", 0.995)
    assert (code, err) == (0, "")
    assert "No attention SVM for 8 heads: no query gives one token more than 99.5%" in out


def test_all_queries_with_slack(
    folder: Path, texts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    words = ("heads", folder, texts, "--layer", 1, "--which", "all", "--price", 5, "--draws", 2)
    record = json.loads(command(capsys, *words, "--json", "--html", page)[1])
    own = record["heads"][0]
    assert record["price"] == 5.0
    assert own["asked"] == own["queries"]
    assert 0.0 <= own["free"]["value"] < own["kept"]["value"] <= 1.0
    assert own["kept"]["null"] is not None
    assert own["gap"] < 1e-12
    assert "In the soft-margin solution" in page.read_text("utf-8")
    code, out, _ = command(capsys, *words)
    assert code == 0
    assert "with slack at the price 5" in out


def test_a_contradiction_is_in_the_record_and_on_the_page(
    tmp_path: Path, texts: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = small_model("bert", vocab_size=minilm().tokenizer.vocab_size)
    with torch.no_grad():  # without positions, equal words are equal tokens
        model.embeddings.position_embeddings.weight.zero_()
    model.save_pretrained(tmp_path / "model")
    minilm().tokenizer.save_pretrained(tmp_path / "model")
    page, twice = tmp_path / "page.html", write(tmp_path / "twice.txt", ["good " * 12])
    words = ("heads", tmp_path / "model", twice, "--layer", 0, "--which", "all", "--price", "inf")
    record = json.loads(command(capsys, *words, "--json", "--html", page)[1])
    failed = [own for own in record["heads"] if own["contradiction"]]
    assert failed
    assert failed[0]["feasible"] < failed[0]["draws"]
    assert "wants “good” (" in failed[0]["words"]
    assert any(own["words"] in sentence for own in failed for sentence in record["sentences"])
    assert "but these tokens are equal" in page.read_text("utf-8")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--which", "some"), "--which: got 'some'; needs one of widest, saturated, all"),
        (("--price", 0), "--price: got 0; needs a number above 0"),
        (("--saturated", 1), "--saturated: got 1.0; needs a share between 0 and 1"),
        (("--all", "--layer", 1), "--all: got --layer or --head beside it; needs one of the two"),
        (("--head", 1), "--head: got 1 without --layer; needs the layer of the head"),
        (("--layer", 2), "--layer: got 2; needs 0 to 1 for a model of 2 layers"),
        (("--layer", 0, "--head", 9), "--head: got 9; needs 0 to 3 for a model of 4 heads"),
        (("--length", 0), "--length: got 0; needs a whole number of at least 1"),
        (("--queries", 0), "--queries: got 0; needs a whole number of at least 1"),
        (("--nuclear",), "--nuclear: got several heads; needs one head: --layer L --head H"),
        (("--want", "nowhere.jsonl"), "--want: got nowhere.jsonl, which does not exist; needs"),
    ],
)
def test_wrong_options_are_one_sentence(
    folder: Path, texts: Path, capsys: pytest.CaptureFixture[str],
    words: tuple[object, ...], sentence: str,
) -> None:  # fmt: skip
    code, out, err = command(capsys, "heads", folder, texts, *words)
    assert (code, out) == (2, "")
    assert err.startswith(f"attnmargin: {sentence}")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        (["good", "", "bad"], "an empty text at place 2; needs one text per line"),
        ([""], "without any text; needs one text per line"),
        (["word " * 100], "TEXTS: got text 0 of 102 tokens; needs at most 64 tokens for this"),
    ],
)
def test_wrong_texts_are_one_sentence(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    lines: list[str], sentence: str,
) -> None:  # fmt: skip
    code, _, err = command(capsys, "heads", folder, write(tmp_path / "t.txt", lines))
    assert code == 2
    assert sentence in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ('{"text": 9, "query": 1, "token": 2}', "--want: got text 9 in pair 0; needs texts from 0"),
        ('{"text": 0, "query": 99, "token": 2}', "--want: got query 99 in pair 0; needs positions"),
        ('{"text": 0, "query": 1}', "line 1 without text and query and token; needs lines"),
        ('{"text": 0, "query": 1, "token": "a"}', "line 1; needs lines"),
    ],
)
def test_wrong_pairs_are_one_sentence(
    folder: Path, texts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    line: str, sentence: str,
) -> None:  # fmt: skip
    want = write(tmp_path / "pairs.jsonl", [line])
    code, _, err = command(capsys, "heads", folder, texts, "--want", want)
    assert code == 2
    assert sentence in err
    assert err.count("\n") == 1


def test_what_is_no_model_is_one_sentence(
    texts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, words in (
        (tmp_path, "a folder without config.json"),
        (texts, "a file; needs a folder with config.json"),
        ("./nowhere", "which does not exist"),
        ("no-such-model", "MODEL: got no-such-model"),
    ):
        code, _, err = command(capsys, "heads", name, texts)
        assert code == 2
        assert words in err
        assert err.count("\n") == 1
