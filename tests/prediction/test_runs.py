"""Predictions of given runs: starts, rates, sweeps, random starts."""

from typing import Any

import numpy as np
import pytest
import torch

import attnmargin as am
from tests.instances import contradiction, counterexample_to_theorem_4


def test_the_start_decides() -> None:
    """From zero the run is trapped; beside the best direction it is not."""
    data = counterexample_to_theorem_4()
    inits = np.array([[[0.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [40.0, 0.0]]])
    both = am.predict(data, init=inits)
    assert both.selection.tolist() == [[1, 0], [0, 0]]
    assert [str(v) for v in both.verdict] == ["guaranteed from this start"] * 2
    assert int(both.since[1]) <= 32  # proved nearly where it begins
    assert both.best.tolist() == [[0, 0], [0, 0]]
    for k in range(2):
        run = am.train(data, init=inits[k], steps=50_000, record=50_000)
        assert run.selection[-1].tolist() == both.selection[k].tolist()


def test_rates_and_starts_broadcast_with_the_data() -> None:
    data = am.random_data(3, 4, 5, trials=4, name="sweep")
    rates = torch.tensor([[0.05], [0.1], [0.2]], dtype=torch.float64)
    sweep = am.predict(data, lr=rates)
    assert sweep.verdict.shape == sweep.since.shape == (3, 4)
    assert sweep.selection.shape == (3, 4, 3)
    for r, lr in enumerate((0.05, 0.1, 0.2)):
        alone = am.predict(data, lr=lr)
        assert torch.equal(alone.selection, sweep.selection[r])
        assert torch.equal(alone.since, sweep.since[r])
    member = sweep[2, 1]
    assert member.course.words() == "from zero, steps of length 0.2"
    assert int(member.since) == int(am.predict(data[1], lr=0.2).since)


def test_a_guarantee_holds_for_longer_steps_up_to_the_longest() -> None:
    data = am.random_data(5, 5, 10, trials=20, name="longest")
    found = am.predict(data)
    assert found.ending is not None
    assert bool((found.longest[found.ending.proved] >= 0.1).all())
    run = am.train(data, init=found.ending.W, lr=found.longest, steps=5000, record=100)
    kept = (run.selection[-1] == found.selection).all(-1)
    assert bool(kept[found.ending.proved].all())
    share = torch.stack([am.probabilities(data, W).amax(-1).amin(-1) for W in run.W[-5:]])
    assert bool((share >= found.share)[:, found.ending.proved].all())


def test_plain_descent_is_proved_too() -> None:
    data = am.random_data(5, 5, 20, trials=20, name="plain")
    found = am.predict(data, lr=10.0, normalize=False)
    assert found.ending is not None
    assert int(found.ending.proved.sum()) >= 15
    run = am.train(data, lr=10.0, normalize=False, steps=100_000, record=100_000)
    proved = found.ending.proved
    assert torch.equal(run.selection[-1][proved], found.selection[proved])


def test_random_starts_are_counted() -> None:
    data = am.random_data(5, 5, 5, trials=100, name="quickstart")[1]
    prediction = am.predict(data, random_starts=100, seed=3)
    starts = prediction.starts
    assert int(starts.count.sum()) == 100
    assert bool((starts.count[:-1] >= starts.count[1:]).all())
    assert bool((starts.proved <= starts.count).all())
    assert bool((starts.interval[:, 0] < starts.share).all())
    assert bool((starts.interval[:, 1] > starts.share).all())
    again = am.predict(data, random_starts=100, seed=3).starts
    assert torch.equal(starts.count, again.count)
    many = am.predict(am.random_data(3, 3, 3, trials=2, name="starts"), random_starts=5)
    assert int(many[1].starts.count.sum()) == 5


def test_the_flow_of_factors_and_mirrors_is_named() -> None:
    data = am.random_data(5, 5, 20, name="theory", min_gap=0.1)
    mirror = am.predict(data, p=3.0, steps=2000)
    assert mirror.verdict == am.Verdict.CONJECTURED
    assert mirror.explain().endswith("too long for the proof here; mirror flow is covered.")
    factors = am.predict(data, parameter="KQ", steps=2000)
    assert factors.explain().endswith("gradient flow from here keeps these tokens for ever.")
    start = (np.eye(20), np.zeros((20, 20)))
    assert am.predict(data, parameter="KQ", init=start, steps=10).course.init is not None


def test_runs_that_rest_select_nothing() -> None:
    prediction = am.predict(contradiction())
    assert prediction.ending is not None
    assert bool(prediction.ending.resting)
    assert prediction.verdict == am.Verdict.UNDECIDED
    assert not prediction.feasible


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"lr": 0.0}, "lr: got 0; needs positive numbers"),
        ({"lr": "auto"}, "lr: got 'auto'; needs a number, or an array of them"),
        ({"lr": [0.1, float("nan")]}, "lr: got nan"),
        ({"steps": 0}, "steps: got 0; needs"),
        ({"normalize": "no"}, "normalize: got 'no'; needs True or False"),
        ({"method": "sgd"}, "method: got 'sgd', which is unknown; needs one of gd, mirror"),
        ({"method": "mirror"}, "method: got 'mirror'; needs 'gd' for p = 2"),
        ({"init": np.zeros((2, 3))}, "init: got shape (2, 3); needs (*B, 2, 2)"),
        ({"init": (np.zeros((2, 2)),) * 2}, "init: got 2 arrays with parameter 'W'; needs"),
        ({"parameter": "KQ", "init": np.zeros((2, 2))}, "init: got 1 array with parameter 'KQ'"),
        ({"init": np.zeros((5, 2, 2)), "lr": [0.1, 0.2]}, "shapes that broadcast"),
        ({"random_starts": -1}, "random_starts: got -1"),
    ],
)
def test_odd_runs_are_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises(am.InputError) as error:
        am.predict(am.random_data(2, 2, 2, name="odd"), **options)
    assert text in str(error.value)


def test_what_was_not_asked_for_is_not_there() -> None:
    prediction = am.predict(am.random_data(2, 2, 2, trials=2, name="odd"))
    with pytest.raises(am.InputError, match="starts: got a prediction without random starts"):
        _ = prediction.starts
    with pytest.raises(am.InputError, match="search: got a batch of predictions"):
        _ = prediction.alternatives
