"""Limited rank (paper A, Lemma 3)."""

from itertools import pairwise
from pathlib import Path

import pytest
import torch

import attnmargin as am
from tests.problems import UNIT, optimal_problem


def test_the_convex_solution_is_the_answer_where_it_has_the_rank() -> None:
    """Lemma 3: same objective, same solution."""
    problem = optimal_problem(am.random_data(5, 5, 20, trials=6, name="lemma 3"))
    convex = am.solve(problem, "nuc")
    limited = am.solve(problem, "nuc", rank=int(convex.rank.max()))
    assert torch.equal(limited.W, convex.W)
    assert (limited.status == "optimal").all()


def test_rank_one_of_equal_norm_is_optimal() -> None:
    """W₁₁, W₂₂ ≥ 1: the identity and the all-ones matrix have nuclear norm two."""
    solution = am.solve(am.margin_problem(UNIT, UNIT), "nuc", rank=1)
    assert solution.status == "optimal"
    assert int(solution.rank) == 1
    assert float(solution.value) == pytest.approx(2.0, rel=1e-9)


def test_rank_one_in_closed_form() -> None:
    """W₁₁, W₂₂ ≥ 1 and W₁₂ = 0 have no W of rank one; with W₁₂ ≥ 4 the limit costs something.

    Of rank one: W = u vᵀ with u₁v₁ = u₂v₂ = 1 and u₁v₂ = 4, so W = [[1, 4], [1/4, 1]].
    """
    left, right = [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]
    problem = am.margin_problem(left, right, bound=[1.0, 1.0, 4.0])
    solution = am.solve(problem, "nuc", rank=1)
    expected = torch.tensor([[1.0, 4.0], [0.25, 1.0]], dtype=torch.float64)
    torch.testing.assert_close(solution.W, expected, rtol=0, atol=1e-6)
    none = am.margin_problem(left, right, [1.0, 1.0, 0.0], [False, False, True])
    refused = am.solve(none, "nuc", rank=1)
    assert refused.status == "inaccurate"
    with pytest.raises(am.InaccurateError, match="no solution of rank ≤ 1 was found"):
        refused.raise_for_status()


def test_local_solutions_obey_rows_rank_and_bound() -> None:
    problem = optimal_problem(am.random_data(6, 8, 10, trials=5, name="local"))
    convex = am.solve(problem, "nuc")
    values = [convex.value]
    for m in (3, 2, 1):
        solution = am.solve(problem, "nuc", rank=m).raise_for_status()
        assert set(solution.status) <= {"optimal", "local"}
        assert int(solution.rank.max()) <= m
        assert float(solution.certificate.primal.max()) <= 1e-9
        gap = 1 - convex.value / solution.value
        torch.testing.assert_close(solution.certificate.gap, gap, rtol=0, atol=1e-8)
        values.append(solution.value)
    for more, less in pairwise(values):
        assert bool((less >= more * (1 - 1e-9)).all())
    assert "local" in set(solution.status)


def test_local_solutions_are_stationary() -> None:
    """K = V Q and Q = Vᵀ K with V = Σ λ_i a_i, λ ≥ 0 on tight rows: least squares finds such λ."""
    problem = optimal_problem(am.random_data(5, 5, 20, trials=4, name="stationary"))
    solution = am.solve(problem, "nuc", rank=1)
    for i in range(4):
        U, S, Vh = torch.linalg.svd(solution.W[i])
        k, q = U[:, :1] * S[0].sqrt(), Vh[:1].mT * S[0].sqrt()
        rows, W = problem[i], solution.W[i]
        tight = (rows.apply(W) - rows.bound).abs() < 1e-5
        left, right = rows.left[tight], rows.right[tight]
        columns = torch.cat((left * (right @ q), right * (left @ k)), -1).mT
        target = torch.cat((k, q))
        dual = torch.linalg.lstsq(columns, target).solution
        assert float((columns @ dual - target).abs().max()) < 1e-4
        assert float(dual.min()) > -1e-4


def test_saved_local_solutions_are_local(tmp_path: Path) -> None:
    problem = optimal_problem(am.random_data(6, 8, 10, trials=2, name="local"))
    solution = am.solve(problem, "nuc", rank=1)
    loaded = am.Solution.load(solution.save(tmp_path / "local.npz"))
    assert loaded.rank_limit == 1
    assert (loaded.status == solution.status).all()


@pytest.mark.parametrize(
    ("norm", "rank", "words"),
    [("fro", 1, "needs the nuclear norm"), ("nuc", 0, "at least 1"), ("nuc", 1.5, "whole number")],
)
def test_a_bad_rank_is_refused(norm: str, rank: int, words: str) -> None:
    with pytest.raises(am.InputError, match=f"rank: .*{words}"):
        am.solve(am.margin_problem(UNIT, UNIT), norm, rank=rank)
