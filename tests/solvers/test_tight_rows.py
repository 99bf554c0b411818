"""Rows that hold, met to their last digits."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import attnmargin as am
from attnmargin.solvers.tight_rows import on_tight_rows
from tests.large import realisable


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


def _classes(points: int, d: int, classes: int) -> am.MarginProblem:
    """The multiclass SVM of features that random weights separate."""
    rng = np.random.default_rng(0)
    x, W = rng.normal(size=(points, d)), rng.normal(size=(classes, d))
    return am.class_problem(x, (x @ W.T).argmax(-1), classes)


def test_rows_that_nearly_fill_the_weights() -> None:
    """Interior points alone lose digits where nearly as many rows hold as W has entries."""
    assert bool(am.solve(_classes(750, 25, 15), "nuc").optimal)


@pytest.mark.parametrize("norm", ["nuc", 3.0])
def test_small_misses_cost_no_norm(norm: str | float) -> None:
    """A W that misses its tight rows by 1e-7 is moved onto them, not scaled up by as much."""
    solution = am.solve(_classes(40, 6, 4), norm)
    problem, dual = solution.problem, solution.dual
    noise = torch.from_numpy(np.random.default_rng(0).normal(size=dual.shape))
    W = solution.W + 1e-7 * problem.adjoint(noise.where(dual > 1e-6 * dual.max(), 0.0))
    check = am.certify(problem, norm, W, dual)
    found = on_tight_rows(replace(solution, W=W, certificate=check))
    assert float(check.gap) > 1e-8
    assert bool(found.optimal)
    assert float(found.certificate.gap) < 1e-11


@pytest.mark.parametrize("seed", [1, 3])
def test_long_weights(seed: int) -> None:
    """With ‖W‖ = 800, rounding in the rows that hold would cost 1.5e-12 of the norm."""
    solution = am.solve(realisable(2000, 51, 10, seed))
    assert bool(solution.optimal)
    assert float(solution.certificate.gap) < 2e-13
