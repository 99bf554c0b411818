"""Solutions along a list of norms."""

import torch

import attnmargin as am
from tests.problems import optimal_problem


def test_path_equals_single_solutions() -> None:
    problem = optimal_problem(am.random_data(6, 8, 10, trials=4, name="path"))
    norms: list[str | float] = [10, "nuc", 1.1, 3, "fro", 1.5, 2.0]
    for norm, solution in zip(norms, am.solve_path(problem, norms), strict=True):
        alone = am.solve(problem, norm)
        assert solution.norm == alone.norm
        assert (solution.status == "optimal").all()
        torch.testing.assert_close(solution.value, alone.value, rtol=2e-9, atol=0)


def test_a_path_through_an_infeasible_problem() -> None:
    rows = torch.tensor([[1.0, 0.0], [-1.0, 0.0]], dtype=torch.float64)
    problem = am.margin_problem(rows, rows.new_ones(2, 1))
    assert [s.status for s in am.solve_path(problem, [2, 3, 1.5])] == ["infeasible"] * 3


def test_an_empty_path_is_empty() -> None:
    assert am.solve_path(optimal_problem(am.random_data(2, 3, 4)), []) == []
