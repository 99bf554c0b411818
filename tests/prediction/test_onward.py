"""Runs that are followed on after their last step, in steps that grow with the weights."""

import torch

import attnmargin as am


def test_open_runs_are_led_to_where_they_end() -> None:
    """Few steps leave all of them open; long steps lead where 20,000 steps prove that they end."""
    data = am.random_data(6, 8, 10, trials=100, name="onward")
    short, whole = am.predict(data, steps=100), am.predict(data)
    assert short.ending is not None
    assert not bool(short.ending.proved.any())
    assert set(map(str, short.verdict)) == {"conjectured"}
    assert set(map(str, whole.verdict)) == {"guaranteed from this start"}
    assert torch.equal(short.selection, whole.selection)
    assert "nothing has settled; followed on, in steps of 1/200" in short[0].explain()


def test_what_may_stay_is_not_moved() -> None:
    """Some runs that have settled early change later: none of them is wrong and conjectured."""
    data = am.random_data(6, 8, 10, trials=100, name="onward")
    short, whole = am.predict(data, steps=300), am.predict(data)
    guess = short.verdict == am.Verdict.CONJECTURED
    same = (short.selection == whole.selection).all(-1).numpy()
    assert guess.sum() >= 20
    assert same[guess].all()
    parted = short.ending.parted  # type: ignore[union-attr]
    for k in parted.nonzero()[:, 0].tolist():
        assert "the weights go over to others; train longer" in short[k].explain()


def test_mirror_descent_and_factors_are_followed_on() -> None:
    data = am.random_data(4, 5, 12, trials=10, name="onward")
    for parameter, p in (("W", 3.0), ("KQ", 2.0)):
        short = am.predict(data, parameter, p, steps=30)
        assert short.ending is not None
        found = torch.isfinite(short.ending.onward)
        assert bool(found.any())
        assert torch.equal(short.selection[found], short.best[found])
