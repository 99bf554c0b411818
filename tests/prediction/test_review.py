"""Answers that were wrong once: ties behind an offset, factors of a batch, odd starts."""

from pathlib import Path

import numpy as np
import pytest
import torch

import attnmargin as am
from tests.commands import command


@pytest.mark.parametrize("columns", [[0, 1, 2], [0, 2, 1], [2, 1, 0]])
def test_ties_behind_an_offset_are_ties(columns: list[int]) -> None:
    """Two tokens of the same numbers in another order, and equal entries of the head."""
    X = np.array([[[2.0, 1.4, 1.9], [1.4, 1.9, 2.0], [1.1, 1.0, 1.0]]])[..., columns]
    data = am.AttentionData(X, np.array([[1.0, 0.3, 0.2]])[:, columns], [1], [0.1] * 3)
    assert bool(am.selections.tied_tokens(data).all())
    prediction = am.predict(data, steps=3000)
    assert prediction.selection.tolist() == [[True, True, False]]
    assert prediction.verdict == am.Verdict.FROM_START
    assert "tie for the best score" in prediction.explain()


def test_shares_of_ties_count_copies() -> None:
    X = [[[1.0, 1.0]] * 3 + [[1.0, -3.0], [-1.0, 0.0]]]
    tied = am.predict(am.AttentionData(X, [[1.0, 0.0]], [1], [1.0, 0.0]), steps=500)
    assert "tokens [0, 3] of sequence 0 tie" in tied.explain()
    assert "they have 0.75, 0.25 of it" in tied.explain()


def test_members_of_a_batch_keep_their_factors() -> None:
    data = am.random_data(5, 5, 4, trials=12, name="kq2")
    together = am.predict(data, "KQ", steps=1000)
    for k in (3, 7):
        one = together[k]
        again = am.predict(data[k], "KQ", init=one.course.init, steps=1000)
        assert torch.equal(again.selection, one.selection)
        assert bool(am.confirm(one, steps=1000).agrees) == bool(
            am.confirm(together, steps=1000).agrees[k]
        )
    sweep = am.predict(data[0], "KQ", lr=[0.1, 0.1], steps=200)
    assert sweep.ending is not None
    assert torch.equal(sweep.ending.W[0], sweep.ending.W[1])


def test_tokens_with_the_same_sums_are_told_apart() -> None:
    a, b = 5.0 * np.eye(17)[0], 4.0 * np.eye(17)[9]
    for tokens in ([a, b, a], [a, a, b]):
        data = am.AttentionData([tokens], [np.ones(17)], [1], np.eye(17)[0])
        assert am.predict(data).verdict == am.Verdict.FROM_START


def test_a_sequence_that_sees_nothing() -> None:
    base = am.random_data(3, 4, 5, name="x")
    X, mask = base.X.clone(), torch.ones(3, 4, dtype=torch.bool)
    X[0, 3], mask[1] = X[0, 0], False
    data = am.AttentionData(X, base.z, base.y, base.v, mask)
    prediction = am.predict(data)
    assert bool(am.confirm(prediction).agrees)
    W = am.train(data, steps=500, record=500).W[-1]
    assert bool(am.theory.guarantee(data, W, prediction.selection).proved)


def test_reasons_are_those_of_the_norm_and_the_steps() -> None:
    data = am.random_data(5, 5, 4, trials=60, name="kq2")[18]
    words = am.predict(data, "KQ", steps=4000).explain()
    assert "Assumption A" not in words
    short = am.predict(am.random_data(3, 4, 5, name="short"), steps=60)
    assert "too long" not in short.explain()
    plain = am.predict(am.random_data(5, 5, 20, name="theory"), lr=10.0, normalize=False)
    if plain.verdict == am.Verdict.FROM_START:
        assert "rates of up to" in plain.explain()


def test_heads_that_mix_are_indexed() -> None:
    data = am.random_data(2, 3, 4, trials=3, name="mix")
    head = am.heads.QuadraticHead(data.v, [0.2, 0.3, 0.4])
    prediction = am.predict(data, head=head)
    assert am.confirm(prediction[2], steps=20).steps == 20
    for options in ({"random_starts": 5}, {"lr": [[0.1], [0.2]]}):
        with pytest.raises(am.InputError, match="head: got a head that mixes tokens with"):
            am.predict(data, head=head, **options)


def test_an_empty_batch_is_confirmed() -> None:
    prediction = am.predict(am.random_data(2, 2, 3, trials=2, name="empty")[:0])
    assert am.confirm(prediction, steps=3).agrees.shape == (0,)
    with pytest.raises(am.InputError, match="prediction: got a batch of them"):
        prediction.explain()


def test_odd_starts_on_the_command_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = am.random_data(3, 4, 5, name="odd").save(tmp_path / "one.npz")
    W, batch = tmp_path / "W.npy", tmp_path / "batch.npy"
    np.save(W, np.zeros((5, 5), dtype=np.float32))
    np.save(batch, np.zeros((3, 5, 5)))
    np.save(tmp_path / "bad.npy", np.zeros((4, 5)))
    np.savez(tmp_path / "narrow.npz", K=np.zeros((5, 0)), Q=np.zeros((5, 0)))
    assert command(capsys, "predict", file, "--start", W)[0] == 0
    odd = {
        ("--start", W, "--csv", W): "--csv: got",
        ("--start", batch, "--html", tmp_path / "o.html"): "--html: got a batch of starts",
        ("--start", tmp_path / "bad.npy"): "--start: got shape (4, 5)",
        ("--start", file): "--start: got",
        ("--parameter", "KQ", "--start", tmp_path / "narrow.npz"): "--start: got shape (5, 0)",
        ("--limit", 0): "--limit: got 0",
    }
    for words, sentence in odd.items():
        code, out, err = command(capsys, "predict", file, *words)
        assert (code, out) == (2, "")
        assert sentence in err
    random = command(capsys, "predict", file, "--start", "random")[1]
    assert "on W from random weights, steps of length 0.1)" in random
    empty = am.random_data(2, 2, 3, trials=2, name="empty")[:0].save(tmp_path / "empty.npz")
    assert command(capsys, "predict", empty, "--verify")[0] == 0
