"""Problems that floating point alone leaves open."""

from typing import Any

import numpy as np
import pytest
import torch
from mpmath import mp, mpf

import attnmargin as am
from attnmargin.decoders import random_next_words
from attnmargin.margin.exact.rows import exact_rows
from attnmargin.solvers.exact.powers import solve_powers

NORMS: list[str | float] = ["fro", "nuc", 1.1, 1.75, 3.0, 10.0]


def nearly_contradicting(relative: float, trials: int) -> am.MarginProblem:
    """Two sequences, the second the mirror image of the first up to a relative difference."""
    rng = np.random.default_rng(3)
    x, z = rng.standard_normal((trials, 1, 3, 4)), rng.standard_normal((trials, 1, 4))
    mirror = -x + relative * rng.standard_normal(x.shape)
    X, Z = np.concatenate((x, mirror), 1), np.concatenate((z, z), 1)
    return am.token_problem(X, Z, np.zeros((trials, 2), int))


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("relative", [1e-5, 1e-9])
def test_near_contradictions_are_solved(norm: str | float, relative: float) -> None:
    problem = nearly_contradicting(relative, 6)
    solution = am.solve(problem, norm)
    assert bool(solution.optimal.all())
    assert bool(solution.feasible.all())
    assert bool((problem.apply(solution.W) > 0.9).all())


@pytest.mark.parametrize("norm", NORMS)
def test_different_scales_have_their_exact_solution(norm: str | float) -> None:
    solution = am.solve(am.margin_problem([[1e-8, 0.0], [0.0, 1e8]], [[1.0]]), norm)
    assert solution.status == am.Status.OPTIMAL
    expected = torch.tensor([1e8, 1e-8], dtype=torch.float64)
    torch.testing.assert_close(solution.vector, expected, rtol=1e-12, atol=0.0)


def test_feasibility_does_not_depend_on_the_norm() -> None:
    for second in ([-1.0, 1e-10], [-1.0, 1e-13], [-1.0, 0.0]):
        problem = am.margin_problem([[1.0, 0.0], second], [[1.0]])
        answers = {bool(am.solve(problem, norm).feasible) for norm in NORMS}
        assert answers == {second[1] > 0}


@pytest.mark.parametrize("norm", NORMS)
def test_contradictions_among_very_different_bounds_are_found(norm: str | float) -> None:
    left = [[-3.0, 0, 1], [-2, -1, -2], [-1, -1, -2], [-1, -1, -2], [-1, -1, -1]]
    right = [[0.0, 1], [-1, 0], [0, 1], [0, -3], [-1, 1]]
    problem = am.margin_problem(left, right, [0.0, 1, 1e-8, 0, 1e8])  # rows 2 and 3 contradict
    assert bool(am.solve(problem, norm).infeasible)


def test_float32_near_contradictions_are_not_contradictions() -> None:
    """Multipliers in float32 cancel these rows, the rows themselves do not."""
    left = torch.tensor([[1.0, 0.0], [-1.0, 1e-4]], dtype=torch.float32)
    solution = am.solve(am.margin_problem(left, torch.ones(1, 1, dtype=torch.float32)))
    assert not bool(solution.infeasible)
    assert bool(solution.feasible)


@pytest.mark.parametrize("p", [1.1, 1.5, 3.0, 7.0])
def test_high_precision_solutions_satisfy_their_conditions(p: float) -> None:
    """λ ≥ 0, A W ≥ b, λ (A W − b) = 0 and ∇(‖W‖_p^p / p) = Aᵀλ, to 30 digits."""
    data = am.random_data(3, 3, 3, name="digits")
    problem = am.token_problem(data.X, data.z, am.optimal_tokens(data))
    rows = exact_rows(problem)
    found = solve_powers(rows, p, [], am.solve(problem, p).W.flatten().tolist())
    assert found is not None
    with mp.workdps(60):
        A = _products(rows)
        for m, bound in enumerate(rows.bound):
            slack = mp.fdot(zip(A[m], found.W, strict=True)) - bound
            assert slack >= -(mpf(10) ** -30) * bound
            assert m not in found.dual or abs(slack) <= mpf(10) ** -30 * bound
        assert all(x > 0 for x in found.dual.values())
        largest = max(abs(w) for w in found.W) ** (p - 1)
        for j, w in enumerate(found.W):
            pull = sum((x * A[m][j] for m, x in found.dual.items()), mpf(0))
            assert abs(mp.sign(w) * abs(w) ** (mpf(p) - 1) - pull) <= mpf(10) ** -30 * largest


def _products(rows: Any) -> list[list[Any]]:
    pairs = zip(rows.left, rows.right, strict=True)
    return [[mpf(x * y) for x in left for y in right] for left, right in pairs]


def test_inaccurate_is_not_infeasible() -> None:
    """A W with positive margins proves feasibility, whatever its gap."""
    data = am.AttentionData([[[1.0, 0.0], [0.0, 0.0]]], [[1.0, 0.0]], [1], [1.0, 0.0])
    problem = am.token_problem(data.X, data.z, [0])
    W = torch.tensor([[2.0, 1.0], [0.0, 0.0]], dtype=torch.float64)
    dual = torch.ones(1, dtype=torch.float64)
    check = am.certify(problem, "fro", W, dual)
    solution = am.Solution(problem, am.solve(problem).norm, W, dual, check, torch.tensor(0))
    assert solution.status == am.Status.INACCURATE
    assert bool(solution.feasible)
    assert not bool(solution.infeasible)


@pytest.mark.parametrize("k", [67, 80])
def test_contradictions_among_many_rows_are_proved_exactly(k: int) -> None:
    """Equalities leave nothing of a row, but floating point leaves more than rounding of it."""
    problem = random_next_words(8, 2, 8, 3, 100, name="E:conditions d=2").problem[k]
    assert int(problem.mask.sum()) == 56
    solution = am.solve(problem)
    assert solution.status == "infeasible"
    few = int((solution.dual != 0).sum())
    assert 1 < few < 20
    assert am.certify(problem, "fro", solution.W, solution.dual).status == "infeasible"
