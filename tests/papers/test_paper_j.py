"""J: information, entropies, and small runs."""

import math

import numpy as np
import pytest
import torch

from attnmargin.graphs.markov import ContextChain
from attnmargin.papers.engine.experiment import Task
from attnmargin.papers.j import chains
from attnmargin.papers.registry import find


def test_the_bound_of_one_choice_between_two() -> None:
    """Of n prompts 0 1 with equal weights the information is n/4 · (1, −1)(1, −1)ᵀ."""
    chain = ContextChain([[0.5, 0.5], [0.5, 0.5]])
    n = 10
    prompts = torch.tensor([[0, 1, 1, 0]] * n + [[0, 1, 0, 1]] * n)
    information = chains.fisher(chain, prompts)
    expected = n / 4 * torch.tensor([[1.0, -1.0], [-1.0, 1.0]], dtype=torch.float64)
    torch.testing.assert_close(information[0], expected)
    by_hand = 2 * float(torch.linalg.pinv(expected).trace())
    assert chains.least_error(information) == pytest.approx(by_hand)


def test_the_entropy_of_an_urn_is_the_mean_over_the_simplex() -> None:
    drawn = np.random.default_rng(0).dirichlet(np.ones(4), 200_000)
    mean = -(drawn * np.log(drawn)).sum(1).mean()
    assert chains.urn_entropy(4) == pytest.approx(mean, abs=3e-3)
    assert chains.urn_entropy(2) == 0.5


@pytest.mark.parametrize("name", ["J:chain", "J:samples"])
def test_points_have_what_claims_read(name: str) -> None:
    experiment = find(name)
    results = {
        point.key: experiment.run(Task({**point.settings, "n": 500}, 2, 0, lambda k, n: None))
        for point in experiment.points
    }
    assert all(math.isfinite(c.measured.value or 0.0) for c in experiment.claims(results))
    assert experiment.measurements(results) is not None
