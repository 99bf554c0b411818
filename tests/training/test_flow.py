"""Gradient flow: agreement with descent, rest, and astronomical times."""

from typing import Any

import pytest
import torch

import attnmargin as am


def test_flow_and_small_steps_follow_the_same_path() -> None:
    data = am.random_data(4, 5, 6, trials=5, name="flow")
    flow = am.gradient_flow(data, 20.0, record=4)
    descent = am.train(data, lr=0.001, steps=20_000, record=5000)
    assert float((flow.W - descent.W).flatten(-2).norm(dim=-1).max()) < 0.01
    torch.testing.assert_close(flow.steps, torch.tensor([0.0, 5.0, 10.0, 15.0, 20.0]).double())


def test_flow_of_factors_follows_small_steps() -> None:
    """With one common step for both factors."""
    data = am.random_data(3, 4, 5, name="flow")
    flow = am.gradient_flow(data, 3.0, "KQ", record=1)
    K, Q = flow_start = am.train(data, "KQ", steps=0).last
    for _ in range(3000):
        G, _ = am.gradient(data, K @ Q.T)
        of_K, of_Q = G @ Q, G.T @ K
        size = (of_K.square().sum() + of_Q.square().sum()).sqrt()
        K, Q = K - 0.001 * of_K / size, Q - 0.001 * of_Q / size
    assert flow_start[0].shape == K.shape
    assert float((flow.W[-1] - K @ Q.T).norm()) < 0.01


def test_mirror_flow_follows_small_steps() -> None:
    data = am.random_data(3, 4, 5, name="flow")
    start = torch.full((5, 5), 0.1, dtype=torch.float64)
    flow = am.gradient_flow(data, 2.0, p=3.0, init=start, record=1)
    small = am.train(data, method="mirror", p=3.0, lr=0.0005, steps=4000, record=4000, init=start)
    assert float((flow.W[-1] - small.W[-1]).norm()) < 0.01


def test_flow_reaches_norms_where_time_would_be_astronomical() -> None:
    """Arc length 4000: time e^{1000} and the SVM direction."""
    data = am.random_data(4, 5, 6, trials=3, name="flow")
    run = am.gradient_flow(data, 4000.0, record=4)
    assert bool((run.log_gradient[-1] < -900).all())
    solution = am.solve(am.token_problem(data.X, data.z, run.selection[-1]))
    assert bool((am.measures.misalignment(run.W[-1], solution.W) < 1e-3).all())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"length": -1.0}, "length: got -1.0"),
        ({"record": 0}, "record: got 0"),
        ({"tolerance": 0.0}, "tolerance: got 0.0"),
        ({"parameter": "vW"}, "parameter: got 'vW'"),
        ({"p": 1.0}, "p: got 1.0 for W"),
    ],
)
def test_bad_flows(options: dict[str, Any], words: str) -> None:
    with pytest.raises(am.InputError, match=words):
        am.gradient_flow(am.random_data(2, 3, 4), **{"length": 1.0, **options})


def test_flow_comes_to_rest_where_the_gradient_vanishes() -> None:
    """(1 − u)² with scores 0 and 3 is least at u = 1, with the probability 1/3."""
    data = am.AttentionData([[[0.0, 1.0], [3.0, 0.0]]], [[1.0, 0.0]], [1.0], [1.0, 0.0])
    run = am.gradient_flow(data, 50.0, loss="squared", record=1)
    assert "came to rest" in run.notes[0]
    assert float(am.measures.token_probability(data, run.W[-1], [1])) == pytest.approx(
        1 / 3, abs=1e-3
    )
