"""Trajectories: records, files, watched measures, going on."""

from pathlib import Path

import pytest
import torch

import attnmargin as am
from tests.formulas import plain_gradient


def test_shapes_records_and_watched_measures() -> None:
    data = am.random_data(3, 4, 5, trials=6, name="records")
    data = am.AttentionData(*(x.unflatten(0, (2, 3)) for x in (data.X, data.z, data.y, data.v)))
    seen: list[tuple[int, int]] = []
    run = am.train(
        data,
        steps=25,
        record=10,
        watch={"norm": lambda W: W.flatten(-2).norm(dim=-1)},
        progress=lambda k, steps: seen.append((k, steps)),
    )
    assert run.steps.tolist() == [0, 10, 20, 25]
    assert seen == [(0, 25), (10, 25), (20, 25), (25, 25)]
    assert run.W.shape == (4, 2, 3, 5, 5)
    assert run.loss.shape == run.probability.shape == run.log_gradient.shape == (4, 2, 3)
    assert run.selection.shape == (4, 2, 3, 3)
    torch.testing.assert_close(run.watched["norm"], run.W.flatten(-2).norm(dim=-1))
    lean = am.train(data, steps=25, record=10, keep_weights=False)
    with pytest.raises(am.InputError, match="keep_weights=False"):
        _ = lean.W
    torch.testing.assert_close(lean.last[0], run.W[-1])

    expected = torch.stack([am.measures.largest_probability(data, W) for W in run.W])
    torch.testing.assert_close(run.probability, expected)


def test_resuming_goes_on_where_it_stopped() -> None:
    data = am.random_data(4, 5, 6, trials=3, name="resume")
    for options in ({}, {"parameter": "KQ"}, {"parameter": "vW"}, {"method": "mirror", "p": 1.5}):
        whole = am.train(data, steps=100, record=100, **options)
        half = am.train(data, steps=60, record=60, **options)
        rest = am.train(data, steps=40, record=40, init=half.last, **options)
        torch.testing.assert_close(rest.W[-1], whole.W[-1], rtol=1e-10, atol=1e-12)


def test_saved_trajectories(tmp_path: Path) -> None:
    data = am.random_data(3, 4, 5, trials=2, name="save")
    run = am.train(data, "vW", steps=10, watch={"n": lambda W: W.sum((-2, -1))})
    again = am.Trajectory.load(run.save(tmp_path / "run.npz"))
    for name in ("steps", "W", "loss", "probability", "selection", "log_gradient", "v"):
        assert torch.equal(getattr(again, name), getattr(run, name))
    assert torch.equal(again.watched["n"], run.watched["n"])
    assert [x.shape for x in again.last] == [x.shape for x in run.last]


def test_the_gradient_of_head_and_weights_counts_both() -> None:
    data = am.random_data(3, 4, 5, name="both")
    run = am.train(data, "vW", steps=3)
    of_W, of_v = plain_gradient(data, run.W[2], run.v[2])
    expected = (of_W.square().sum() + of_v.square().sum()).sqrt().log()
    torch.testing.assert_close(run.log_gradient[2], expected)


def test_watched_functions_cannot_touch_the_weights() -> None:
    data = am.random_data(3, 4, 5, name="watch")
    watch = {"zero": lambda W: W.zero_().sum((-2, -1))}
    runs = [am.train(data, method="mirror", p=3.0, steps=5, watch=w) for w in (watch, None)]
    assert torch.equal(runs[0].W, runs[1].W)
