"""Hostile words, labels, names of files and settings, in every page and file that is written."""

import csv
import json
import unicodedata
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from pyarrow import parquet

import attnmargin as am
from attnmargin.base.display import Summarised
from attnmargin.base.words import allowed
from attnmargin.prediction.words import name_tokens
from attnmargin.report.pages.demo import write_demo
from attnmargin.report.pages.explorer import write_explorer
from attnmargin.report.pages.html import cell, json_script, table
from attnmargin.report.pages.prediction import write_prediction
from attnmargin.report.pages.tokens import write_tokens
from attnmargin.report.sweeps import write_sweep
from attnmargin.report.tokens import importance_record
from attnmargin.sweeps.table import write_table
from attnmargin.text.tokens.cleaning import Cleaning
from attnmargin.text.tokens.importance import class_importance
from tests.browser import Visit
from tests.commands import command, write
from tests.hostile import FILE, WORDS, Seen, check_page
from tests.models.instances import small_model
from tests.texts import one_word_decides

Capture = pytest.CaptureFixture[str]
Visiting = Callable[..., Visit]
T = len(WORDS)
TAGS = {"main", "body", "table", "thead", "tbody", "tr", "th", "td", "div", "script"}


@pytest.fixture
def data() -> am.AttentionData:
    return am.random_data(2, T, 2, name="hostile")


@pytest.fixture
def data_file(data: am.AttentionData, tmp_path: Path) -> Path:
    names = np.array([WORDS, WORDS[::-1]])
    path = tmp_path / f"{FILE}.npz"
    arrays = {name: getattr(data, name).numpy() for name in ("X", "z", "y", "v")}
    np.savez(path, words=names, **arrays)
    return path


def checked(path: Path) -> Seen:
    return check_page(path.read_text("utf-8"))


def run(capsys: Capture, *words: object) -> None:
    """Run a command that succeeds without a warning, and without a word for the terminal."""
    code, out, err = command(capsys, *words)
    assert not [c for c in out if unicodedata.category(c) == "Cc" and c != "\n"]
    said = [line for line in err.splitlines() if not line.startswith("attnmargin: compiling")]
    assert (code, said) == (0, [])


def shows(seen: Seen, *words: str) -> None:
    """Check that words are there to be read."""
    text = "".join(seen.words)
    for word in words:
        assert word in text, word


@pytest.mark.parametrize("word", WORDS)
def test_parts_of_pages_escape_words(word: str) -> None:
    text = table([word, word], [[word, word]]) + cell(word) + json_script("a", [word, {word: 1}])
    seen = check_page(f"<main><body>{text}</main></body></html>\n")
    assert set(seen.tags) <= TAGS
    assert json.loads(seen.scripts[0][1]) == [word, {word: 1}]


def test_predictions(capsys: Capture, data_file: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    more = ("--verify", "--alternatives", "--theorems", "--starts", 3, "--steps", 100)
    run(capsys, "predict", data_file, *more, "--html", page)
    shows(checked(page), *WORDS[:6], FILE[:10])


def test_margins_and_explorer(capsys: Capture, data_file: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    for name in ("margins", "explore"):
        run(capsys, name, data_file, "--html", page)
        seen = checked(page)
    given = [json.loads(text) for kind, text in seen.scripts if kind == "application/json"]
    assert given[0]["words"][0] == [word.replace("\ufffe", "\ufffd") for word in WORDS]


def test_the_demo_in_a_folder_with_a_hostile_name(tmp_path: Path) -> None:
    write_demo(tmp_path / FILE)
    shows(checked(tmp_path / FILE / "index.html"), FILE[:10])


@pytest.fixture
def sequences(tmp_path: Path) -> Path:
    """Every word wins over the one before it; two of them stand last in all sequences."""
    rows = [
        json.dumps({"tokens": [old, new, last], "next": new})
        for old, new in pairwise(WORDS)
        for last in (WORDS[0], WORDS[2], WORDS[0])
    ]
    return write(tmp_path / f"{FILE}.jsonl", rows)


def test_graphs(capsys: Capture, sequences: Path, tmp_path: Path) -> None:
    page, graph = tmp_path / "page.html", tmp_path / "x.graphml"
    prompt = json.dumps([*WORDS[1:5], WORDS[0]])
    more = ("--next", prompt, "--test", 0.3, "--html", page, "--graphml", graph)
    run(capsys, "graph", sequences, *more)
    shows(checked(page), *WORDS[1:5], FILE[:10])
    text = graph.read_text("utf-8")
    assert "<!DOCTYPE" not in text
    named = {own.text for own in ElementTree.fromstring(text).iter() if own.tag.endswith("}data")}
    assert {allowed(word).replace("\r", "\n") for word in WORDS[:-1]} <= named


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """Texts of three classes with hostile names."""
    own, path = one_word_decides(90), tmp_path / f"{FILE}.csv"
    names = [*own.classes, "other"]
    with path.open("w", newline="", encoding="utf-8") as stream:
        rows = csv.writer(stream)
        rows.writerow(["text", "label"])
        for k, (text, label) in enumerate(zip(own.texts, own.labels.tolist(), strict=True)):
            name = names[label if k % 3 else 2]
            rows.writerow([f"{text} {WORDS[1]} {WORDS[4]}", {"neg": WORDS[2], "pos": WORDS[4],
                                                             "other": WORDS[5]}[name]])  # fmt: skip
    return path


def test_tokens(capsys: Capture, texts: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    for more in (("--statistics-only",), ("--epochs", 1)):
        words = ("tokens", texts, "--least", 1, "--keep-markup", *more, "--html", page)
        run(capsys, *words)
        shows(checked(page), WORDS[2], WORDS[4], WORDS[5], FILE[:10])


def test_tokens_of_hostile_pieces(tmp_path: Path) -> None:
    """Words as a vocabulary may name them: those of the tables, the clouds and the texts."""
    corpus = am.text.Corpus(["aa bb", "aa cc", "bb bb", "cc cc"] * 9, np.array([0, 1] * 18),
                            (WORDS[2], WORDS[3]))  # fmt: skip
    found = class_importance(corpus, Cleaning(least=1))[0]
    forms = replace(found.forms, shown=list(WORDS[4 : 4 + len(found.forms.shown)]))
    found = replace(found, forms=forms)
    record = importance_record(found, 5)
    write_tokens(tmp_path / "page.html", FILE, [found], [record])
    shows(checked(tmp_path / "page.html"), WORDS[4])


def test_train_text(capsys: Capture, texts: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    small = ("--layers", 1, "--heads", 1, "--width", 8, "--hidden", 8, "--batch", 20, "--length",
             32, "--device", "cpu", "--epochs", 1)  # fmt: skip
    run(capsys, "train-text", texts, *small, "--html", page)
    shows(checked(page), WORDS[2], WORDS[4], WORDS[5])


@pytest.fixture
def model(capsys: Capture, tmp_path: Path) -> Path:
    """A model whose tokenizer knows the hostile words, in a folder with a hostile name."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    path = tmp_path / FILE
    known = {word: k for k, word in enumerate(["[UNK]", *WORDS])}
    plain = Tokenizer(models.WordLevel(known, "[UNK]"))
    plain.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    PreTrainedTokenizerFast(tokenizer_object=plain, unk_token="[UNK]").save_pretrained(path)
    small_model("bert").save_pretrained(path)
    capsys.readouterr()  # transformers shows a bar
    return path


def test_heads(capsys: Capture, model: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    lines = [" ".join(WORDS[:8]), " ".join(WORDS[7::-1]), " ".join(WORDS[3:10])]
    more = ("--want", "previous", "--queries", 6, "--draws", 2, "--html", page)
    run(capsys, "heads", model, write(tmp_path / "x.txt", lines), *more)
    seen = checked(page)
    shows(seen, FILE[:10])
    given = next(json.loads(text) for kind, text in seen.scripts if kind == "application/json")
    assert given["words"][0] == list(WORDS[:8])


def test_notebooks_escape_words() -> None:
    class Told(Summarised):
        def summary(self) -> dict[str, str]:
            return {word: word for word in WORDS}

    text = Told()._repr_html_()
    check_page(f"<main><body>{text}</main></body></html>\n")


def told(x: int, word: str) -> dict[str, Any]:
    return {"value": x * 0.5, "said": word}


def test_sweeps(tmp_path: Path) -> None:
    words = [word for word in WORDS if "\x00" not in word]
    grids = ({"x": [1, 2], "word": words}, {"x": 1, "word": words}, {"x": 1, "word": words[-5:]})
    for k, grid in enumerate(grids):
        folder = tmp_path / str(k)
        found = am.sweep(told, grid, out=folder, jobs=1)
        files = write_sweep(found, folder)
        assert [file.name for file in files] == ["table.csv", "table.parquet", "picture.png"]
        assert {own.name for own in folder.iterdir()} == {
            "sweep.json", "points", "table.csv", "table.parquet", "picture.png"}  # fmt: skip


@pytest.mark.parametrize("word", ["=1+1", "+1", "-x", "@SUM(A1)", "\t=1", "\r=1", "=cmd|'/c x'!A0"])
def test_no_cell_of_a_table_is_a_formula(word: str, tmp_path: Path) -> None:
    table = {"x": np.array([-1.5, 2.0]), "said": np.array([word, "a=b"])}
    path = write_table(table, tmp_path / "table.csv")
    with path.open(newline="") as stream:
        rows = list(csv.reader(stream))
    assert rows == [["x", "said"], ["-1.5", f"'{word}"], ["2.0", "a=b"]]
    kept = parquet.read_table(write_table(table, tmp_path / "table.parquet"))
    assert kept["said"].to_pylist() == [word, "a=b"]


def opened(path: Path, visit: Visiting) -> Visit:
    """Open a page, press all that can be pressed, and check that nothing of the words ran."""
    own = visit(path)
    own.page.evaluate("for (const own of document.querySelectorAll('details')) own.open = true")
    for kind in ("[role=tab]", "main button", "input[type=radio]"):
        for k in range(min(own.page.locator(kind).count(), 12)):
            one = own.page.locator(kind).nth(k)
            if one.is_visible() and one.is_enabled():
                one.click(force=True, timeout=5000)
    own.page.wait_for_timeout(200)
    for width in (1280, 390):  # long words are broken, and widen no page
        own.page.set_viewport_size({"width": width, "height": 800})
        assert own.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert own.page.evaluate("window.ran") is None
    assert own.page.locator("evil, [evil], [onerror], [onload], [onmouseover]").count() == 0
    assert (own.errors, own.requests) == ([], [])
    return own


def test_nothing_runs_in_a_browser(
    capsys: Capture, data: am.AttentionData, sequences: Path, visit: Visiting, tmp_path: Path
) -> None:
    words = [list(WORDS), list(WORDS[::-1])]
    opened(write_explorer(tmp_path / "explorer.html", data, words), visit)
    page = tmp_path / "page.html"
    prediction = am.predict(data)
    write_prediction(page, prediction, name_tokens(data, words, [*WORDS[4:6]]), file=FILE,
                     command=WORDS[0], begin={"scene": "sentences"})  # fmt: skip
    opened(page, visit)
    command(capsys, "graph", sequences, "--html", page)
    own = opened(page, visit)
    own.page.locator("#last").fill(WORDS[1])
    own.page.locator("#prompt").fill(f"{WORDS[1]} {WORDS[4]} {WORDS[0]}")
    own.page.wait_for_timeout(200)
    assert own.page.evaluate("window.ran") is None
    assert own.page.locator("evil, [evil]").count() == 0


def test_nothing_runs_on_the_page_of_heads(
    capsys: Capture, model: Path, visit: Visiting, tmp_path: Path
) -> None:
    page, lines = tmp_path / "page.html", [" ".join(WORDS[:8]), " ".join(WORDS[3:10])]
    more = ("--queries", 6, "--draws", 2, "--html", page)
    command(capsys, "heads", model, write(tmp_path / "x.txt", lines), *more)
    opened(page, visit)
