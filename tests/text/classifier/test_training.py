"""Training of the classifier: batches, checkpoints, randomness."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

import attnmargin as am
from attnmargin.base.seeds import seed_of
from attnmargin.text.batches import Batches
from attnmargin.text.classifier.corpus_training import train_corpus
from tests.texts import SMALL, pieces, shape


def test_batches_hold_every_text_once() -> None:
    data = pieces()
    batches = Batches(data, 0, torch.device("cpu"), 8, 32)
    for order in (batches.shuffled(7, 1), batches.ordered(7)):
        assert sorted(np.concatenate(order).tolist()) == list(range(len(data)))
    assert not np.array_equal(batches.shuffled(7, 1)[0], batches.shuffled(7, 2)[0])
    ids, labels = batches.take(np.array([3, 5]))
    assert ids.shape[1] % 8 == 0
    for row, i in zip(ids, (3, 5), strict=True):
        own = data.ids[data.start[i] : data.start[i + 1]]
        assert row[: len(own)].tolist() == own.tolist()
        assert not row[len(own) :].any()
    assert labels.tolist() == data.labels[[3, 5]].tolist()


@pytest.mark.parametrize("p", [1.1, 2.0, 3.0])
def test_it_learns_what_one_word_says(p: float) -> None:
    data = pieces(200)
    lr = {1.1: 2e-3, 2.0: 1e-2, 3.0: 1e-3}[p]
    recipe = am.text.Recipe(p=p, lr=lr, batch=20, epochs=60, stop=0.97)
    run = am.text.train_text(data, data, shape(data), recipe)
    assert run.best > 0.9
    assert run.history[0]["loss"] > run.history[-1]["loss"]


def test_a_batch_in_parts_is_the_whole_batch() -> None:
    data = pieces()
    still = am.text.Shape(len(data.vocabulary), **SMALL, dropout=0.0)
    runs = [
        am.text.train_text(
            data, data, still, am.text.Recipe(p=2.0, lr=1e-2, batch=16, epochs=2, parts=k)
        )
        for k in (1, 4)
    ]
    for one, four in zip(*(run.model.parameters() for run in runs), strict=True):
        torch.testing.assert_close(one, four, rtol=1e-4, atol=1e-5)


def test_a_stopped_run_goes_on_to_the_same_numbers(tmp_path: Path) -> None:
    data = pieces()
    recipe = am.text.Recipe(p=1.5, lr=1e-3, batch=20, epochs=4, stop=2.0)
    whole = am.text.train_text(data, data, shape(data), recipe)
    first = am.text.Recipe(p=1.5, lr=1e-3, batch=20, epochs=2, stop=2.0)
    am.text.train_text(data, data, shape(data), first, out=tmp_path)
    later = am.text.train_text(data, data, shape(data), recipe, out=tmp_path)
    for own, other in zip(whole.history, later.history, strict=True):
        assert (own["loss"], own["test"]) == (other["loss"], other["test"])
    for own_w, other_w in zip(whole.model.parameters(), later.model.parameters(), strict=True):
        assert torch.equal(own_w, other_w)
    assert json.loads((tmp_path / "run.json").read_text())["epochs"] == 4


def test_another_recipe_does_not_go_on(tmp_path: Path) -> None:
    data = pieces(20)
    am.text.train_text(data, data, shape(data), am.text.Recipe(epochs=1), out=tmp_path)
    with pytest.raises(am.InputError, match="a run with another lr, p; needs an empty folder"):
        am.text.train_text(
            data, data, shape(data), am.text.Recipe(p=2.0, lr=1.0, epochs=1), out=tmp_path
        )
    other = pieces(30).part(np.arange(20))
    with pytest.raises(am.InputError, match="a run with another corpus"):
        am.text.train_text(other, other, shape(data), am.text.Recipe(epochs=2), out=tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"\x10\0\0\0\0\0\0\0{")
    with pytest.raises(am.InputError, match=r"needs a whole \.safetensors file"):
        am.text.train_text(data, data, shape(data), am.text.Recipe(epochs=1), out=tmp_path)


def test_global_randomness_is_left_alone() -> None:
    data = pieces(20)
    torch.manual_seed(5)
    wanted = torch.rand(3)
    torch.manual_seed(5)
    am.text.train_text(data, data, shape(data), am.text.Recipe(epochs=1))
    assert torch.equal(torch.rand(3), wanted)


def test_texts_must_fit(tmp_path: Path) -> None:
    data = pieces(20)
    with pytest.raises(am.InputError, match="length: got 8 for texts of"):
        am.text.train_text(
            data, data, am.text.Shape(len(data.vocabulary), **{**SMALL, "length": 8})
        )
    with pytest.raises(am.InputError, match="epochs: got 0"):
        am.text.Recipe(epochs=0)


def test_three_classes_have_a_softmax() -> None:
    """The loss of the first epoch, of one batch, is the cross-entropy of three logits."""
    words, labels = ["good", "fair", "bad"], np.arange(60) % 3
    corpus = am.text.Corpus([f"film {words[y]} plot" for y in labels], labels, tuple(words))
    sizes = {"layers": 1, "heads": 1, "width": 12, "hidden": 12, "length": 8, "dropout": 0.0}
    recipe = am.text.Recipe(p=2.0, lr=1e-2, batch=48, epochs=1)
    found = train_corpus(corpus, sizes, recipe)
    assert found.run.model.head.out_features == 3
    start = am.text.TextClassifier(found.run.model.shape)
    ids = torch.from_numpy(found.pieces.ids.astype(np.int64)).reshape(len(found.pieces), -1)
    assert start(ids).shape == (len(found.pieces), 3)
    assert found.run.history[0]["loss"] == pytest.approx(np.log(3.0), abs=0.5)
    more = train_corpus(corpus, sizes, am.text.Recipe(p=2.0, lr=1e-2, batch=12, epochs=30))
    assert more.run.best == 1.0


def test_decay_shrinks_keys_and_queries_alone() -> None:
    """One step: the others move as without decay."""
    data = pieces(20)
    models = []
    for decay in (0.0, 5.0):
        recipe = am.text.Recipe(p=2.0, lr=0.01, batch=20, epochs=1, parts=1, decay=decay)
        models.append(am.text.train_text(data, data, shape(data), recipe).model)
    torch.manual_seed(seed_of("text model", base=0))
    start = am.text.TextClassifier(shape(data), data.vocabulary.index("[PAD]"))
    plain, decayed = (dict(model.named_parameters()) for model in models)
    for name, weights in start.named_parameters():
        expected = plain[name].detach().clone()
        if name.endswith("inner.weight"):
            keys = 2 * len(expected) // 3
            expected[:keys] -= 0.05 * weights.detach()[:keys]
        torch.testing.assert_close(decayed[name].detach(), expected, rtol=0, atol=1e-7)


def test_decay_has_limits() -> None:
    with pytest.raises(am.InputError, match="decay: got 100"):
        am.text.Recipe(lr=0.01, decay=100.0)
