"""One home for checkpoints: both kinds of runs save, go on, and refuse in the same way."""

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import attnmargin as am
from attnmargin.base.safetensors import read_tensors, write_tensors
from attnmargin.text.checkpoint import Checkpoint

Train = Callable[[int, Path | None], Any]


def pieces() -> am.text.Pieces:
    texts = ["a good film", "so good", "a bad film", "so bad"] * 4
    corpus = am.text.Corpus(texts, np.array([1, 1, 0, 0] * 4), ("neg", "pos"))
    return am.text.word_pieces(corpus, am.text.word_list(texts))


def classifier(epochs: int, out: Path | None) -> am.text.TextRun:
    data = pieces()
    shape = am.text.Shape(len(data.vocabulary), layers=1, heads=2, width=8, hidden=8, length=16)
    recipe = am.text.Recipe(p=1.5, lr=1e-3, batch=4, epochs=epochs, stop=2.0)
    return am.text.train_text(data, data, shape, recipe, out=out)


def tokens(epochs: int, out: Path | None) -> am.text.TokenRun:
    recipe = am.text.TokenRecipe(d=4, epochs=epochs, drops=(1,), batch=4)
    return am.text.train_tokens(pieces(), recipe, out=out)


BOTH = pytest.mark.parametrize("train", [classifier, tokens])


@BOTH
def test_a_stopped_run_goes_on_to_the_same_bits(train: Train, tmp_path: Path) -> None:
    train(1, tmp_path)
    later, whole = train(3, tmp_path), train(3, None)
    assert [row["loss"] for row in later.history] == [row["loss"] for row in whole.history]
    for own, other in zip(later.model.parameters(), whole.model.parameters(), strict=True):
        assert torch.equal(own, other)
    copied = json.loads((tmp_path / "run.json").read_text())
    assert copied == json.loads(json.dumps(later.record()))


@BOTH
def test_rows_of_epochs_have_the_same_first_names(train: Train) -> None:
    rows = train(2, None).history
    assert [list(row)[:4] for row in rows] == [["epoch", "loss", "train", "seconds"]] * 2
    assert [row["epoch"] for row in rows] == [1.0, 2.0]


@BOTH
def test_checkpoints_without_a_copy_of_the_record_are_read(train: Train, tmp_path: Path) -> None:
    """Records may stand on one line, and alone."""
    train(1, tmp_path)
    held, notes = read_tensors(tmp_path / "model.safetensors")
    record = json.loads(notes["run"])
    write_tensors(tmp_path / "model.safetensors", held, {"run": json.dumps(record)})
    (tmp_path / "run.json").unlink()
    assert train(1, tmp_path).history == record["history"]


@BOTH
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda record: record["recipe"].update(seed=5), "a run with another seed; needs an empty"),
        (lambda record: record.update(data="x"), "a run with another corpus; needs an empty"),
        (lambda record: record.pop("history"), "without 'history'"),
        (lambda record: record.pop("recipe"), "without 'recipe'"),
        (lambda record: record.update(history=3), "a history that is no list of epochs"),
        (lambda record: record.update(recipe="x"), "needs a checkpoint of such a run"),
    ],
)
def test_other_records_get_one_sentence(
    train: Train, change: Callable[[dict[str, Any]], object], words: str, tmp_path: Path
) -> None:
    train(1, tmp_path)
    path = tmp_path / "model.safetensors"
    held, notes = read_tensors(path)
    record = json.loads(notes["run"])
    change(record)
    write_tensors(path, held, {"run": json.dumps(record)})
    with pytest.raises(am.InputError, match=words) as caught:
        train(2, tmp_path)
    assert caught.value.argument == "out"
    assert "\n" not in str(caught.value)


@BOTH
@pytest.mark.parametrize("note", ["{", "[]", "3"])
def test_notes_that_are_no_record_get_one_sentence(train: Train, note: str, tmp_path: Path) -> None:
    train(1, tmp_path)
    path = tmp_path / "model.safetensors"
    write_tensors(path, read_tensors(path)[0], {"run": note})
    with pytest.raises(am.InputError, match="needs a checkpoint of such a run"):
        train(2, tmp_path)
    write_tensors(path, {}, {})
    with pytest.raises(am.InputError, match=r"model\.safetensors \(without 'run'\)"):
        train(2, tmp_path)


@BOTH
def test_missing_tensors_get_one_sentence(train: Train, tmp_path: Path) -> None:
    train(1, tmp_path)
    path = tmp_path / "model.safetensors"
    write_tensors(path, {}, read_tensors(path)[1])
    with pytest.raises(am.InputError, match="needs a checkpoint of such a run") as caught:
        train(2, tmp_path)
    assert "\n" not in str(caught.value)


def test_a_run_of_the_other_kind_is_refused(tmp_path: Path) -> None:
    tokens(1, tmp_path / "tokens")
    with pytest.raises(am.InputError, match="without 'shape'"):
        classifier(1, tmp_path / "tokens")
    classifier(1, tmp_path / "text")
    with pytest.raises(am.InputError, match="a run with another"):
        tokens(1, tmp_path / "text")


def test_more_epochs_are_the_same_run(tmp_path: Path) -> None:
    own = {"recipe": asdict(am.text.TokenRecipe(epochs=3)), "history": [], "data": "x"}
    checkpoint = Checkpoint.at(tmp_path / "new")
    assert checkpoint.load(own) is None
    checkpoint.save({"a": torch.ones(2)}, own)
    found = checkpoint.load(own | {"recipe": asdict(am.text.TokenRecipe(epochs=9))})
    assert found is not None
    assert (found[0]["a"].tolist(), found[1]) == ([1.0, 1.0], [])


def own_record(epochs: int, seed: int = 0) -> dict[str, Any]:
    history = [{"epoch": k + 1.0} for k in range(epochs)]
    return {"recipe": asdict(am.text.TokenRecipe(seed=seed)), "history": history, "data": "x"}


def test_a_process_that_is_behind_does_not_undo_the_epochs_of_another(tmp_path: Path) -> None:
    checkpoint = Checkpoint.at(tmp_path)
    checkpoint.save({"a": torch.full((), 3.0)}, own_record(3))
    checkpoint.save({"a": torch.full((), 2.0)}, own_record(2))
    found = checkpoint.load(own_record(0))
    assert found is not None
    assert (float(found[0]["a"]), len(found[1])) == (3.0, 3)
    checkpoint.save({"a": torch.full((), 4.0)}, own_record(4))
    assert json.loads((tmp_path / "run.json").read_text())["history"] == own_record(4)["history"]


def test_a_run_that_another_process_began_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    checkpoint = Checkpoint.at(tmp_path)
    checkpoint.save({"a": torch.ones(1)}, own_record(1, seed=1))
    with pytest.raises(am.InputError, match="a run with another seed"):
        checkpoint.save({"a": torch.zeros(1)}, own_record(1, seed=2))
    held, _ = read_tensors(checkpoint.path)
    assert held["a"].tolist() == [1.0]


@BOTH
def test_a_kill_between_both_files_is_made_good(train: Train, tmp_path: Path) -> None:
    train(2, tmp_path)
    newer = (tmp_path / "run.json").read_text()
    (tmp_path / "run.json").write_text("{}")
    train(2, tmp_path)
    assert (tmp_path / "run.json").read_text() == newer


def test_a_folder_that_is_removed_meanwhile_gets_one_sentence(tmp_path: Path) -> None:
    checkpoint = Checkpoint.at(tmp_path / "run")
    (tmp_path / "run").rmdir()
    with pytest.raises(am.InputError, match=r"run \(No such file or directory\); needs the folder"):
        checkpoint.save({"a": torch.ones(1)}, own_record(1))
