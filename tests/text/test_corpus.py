"""Corpora: readers, classes, errors."""

import json
from pathlib import Path

import numpy as np
import pytest

import attnmargin as am
from attnmargin.text.corpus import balanced, between_lengths
from tests.texts import LABELS, TEXTS


def written(path: Path, kind: str) -> Path:
    """The same rows in a file of some kind."""
    rows = [{"text": t, "label": y} for t, y in zip(TEXTS, LABELS, strict=True)]
    if kind == ".jsonl":
        path.write_text("\n".join(map(json.dumps, rows)))
    elif kind == ".parquet":
        import pyarrow
        import pyarrow.parquet

        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    else:
        mark = "," if kind == ".csv" else "\t"
        lines = [f'"{row["text"]}"{mark}{row["label"]}' for row in rows]
        path.write_text("\n".join([f"text{mark}label", *lines]))
    return path


@pytest.mark.parametrize("kind", [".csv", ".tsv", ".jsonl", ".parquet"])
def test_tables_of_every_kind_say_the_same(tmp_path: Path, kind: str) -> None:
    found = am.text.read_corpus(written(tmp_path / f"data{kind}", kind))
    assert found.texts == TEXTS
    assert found.labels.tolist() == LABELS
    assert found.classes == ("0", "1")
    assert found.splits is None


def test_the_official_folder_layout(tmp_path: Path) -> None:
    for split in ("train", "test"):
        for label, word in (("pos", "good"), ("neg", "bad")):
            (tmp_path / split / label).mkdir(parents=True)
            (tmp_path / split / label / "0_7.txt").write_text(f"{word} {split}")
    found = am.text.read_corpus(tmp_path)
    assert found.classes == ("neg", "pos")
    assert found.split("test").texts == ["bad test", "good test"]
    assert found.split("test").labels.tolist() == [0, 1]
    with pytest.raises(am.InputError, match="split: got 'dev'; needs one of the splits"):
        found.split("dev")
    assert am.text.read_corpus(tmp_path / "train").splits is None


def test_positive_classes_come_last_and_others_can_be_dropped(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("review,stars\nfine,positive\nawful,negative\nwell,neutral\n")
    found = am.text.read_corpus(path, "review", "stars", drop=["neutral"])
    assert found.classes == ("negative", "positive")
    assert found.labels.tolist() == [1, 0]


def test_missing_files_and_empty_folders_get_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(am.InputError, match="No such file or directory"):
        am.text.read_corpus(tmp_path / "none.csv")
    with pytest.raises(am.InputError, match=r"such as pos/\*.txt and neg/\*.txt"):
        am.text.read_corpus(tmp_path)


def test_more_than_two_classes(tmp_path: Path) -> None:
    path = tmp_path / "stars.csv"
    path.write_text("text,label\na,10\nb,9\nc,2\nd,9\n")
    own = am.text.read_corpus(path)
    assert (own.classes, own.labels.tolist()) == (("2", "9", "10"), [2, 1, 0, 1])
    assert np.bincount(balanced(own).labels).tolist() == [1, 1, 1]
    nine = own.against("9")
    assert (nine.classes, nine.labels.tolist()) == (("not 9", "9"), [0, 1, 0, 1])
    two = am.text.read_corpus(path, drop=["2"])
    assert two.against("9").classes == ("10", "9")
    with pytest.raises(am.InputError, match="positive: got '1'; needs one of 2, 9, 10"):
        own.against("1")
    path.write_text("\n".join(["text,label", *(f"x,{k}" for k in range(101))]))
    with pytest.raises(am.InputError, match=r"101 classes \(0, 1, .*labels, with 2 to 100 classes"):
        am.text.read_corpus(path)


def test_balanced_corpora_have_as_many_texts_of_either_class() -> None:
    own = am.text.Corpus(list("abcdef"), np.array([1, 0, 1, 1, 0, 1]), ("neg", "pos"))
    found = balanced(own)
    assert np.bincount(found.labels).tolist() == [2, 2]
    assert found.texts == sorted(found.texts)
    assert {"b", "e"} < set(found.texts)
    assert balanced(own).texts == found.texts
    assert np.bincount(balanced(own, most=1).labels).tolist() == [1, 1]
    assert balanced(own, most=9).texts == found.texts
    with pytest.raises(am.InputError, match="most: got 0"):
        balanced(own, most=0)


def test_texts_between_two_lengths_both_included() -> None:
    own = am.text.Corpus(["a", "bb", "ccc", "dddd"], np.array([0, 1, 0, 1]), ("neg", "pos"))
    found = between_lengths(own, 2, 3)
    assert (found.texts, found.labels.tolist()) == (["bb", "ccc"], [1, 0])
