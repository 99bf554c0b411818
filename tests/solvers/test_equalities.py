"""Equality rows of any size."""

import numpy as np
import pytest
import torch

import attnmargin as am


@pytest.mark.parametrize("norm", ["nuc", 1.5, 3.0])
@pytest.mark.parametrize("method", ["interior", "lockstep"])
@pytest.mark.parametrize("share", [1e-3, 1e-5, 1e-7])
def test_shares_that_are_almost_equal(norm: str | float, method: str, share: float) -> None:
    """Equalities with bounds far below the size of W are met to their own digits."""
    rng = np.random.default_rng(0)
    X, z = rng.normal(size=(20, 2, 3, 6)), rng.normal(size=(20, 2, 6))
    shares = np.ones((20, 2, 3)) + share * rng.normal(size=(20, 2, 3))
    shares[:, 0, 0] += 0.5
    problem = am.finite_problem(X, z, shares / shares.sum(-1, keepdims=True))
    solution = am.solve(problem, norm, method=method)
    assert bool(solution.optimal.all())
    other = {"interior": "lockstep", "lockstep": "interior"}[method]
    exact = am.solve(problem, norm, method=other)
    torch.testing.assert_close(solution.norm.value(solution.W), exact.norm.value(exact.W))


@pytest.mark.parametrize("scale", [1e-90, 1e78])
def test_equalities_of_any_scale(scale: float) -> None:
    rng = np.random.default_rng(0)
    X, z = rng.normal(size=(2, 2, 3, 6)), rng.normal(size=(2, 2, 6))
    X[1], z[1] = X[1] * scale, z[1] * scale
    shares = np.ones((2, 2, 3)) + 1e-6 * rng.normal(size=(2, 2, 3))
    problem = am.finite_problem(X, z, shares / shares.sum(-1, keepdims=True))
    assert bool(am.solve(problem, "nuc").optimal.all())
