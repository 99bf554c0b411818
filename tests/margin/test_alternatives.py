"""Whether the nuclear solution is unique."""

import torch

import attnmargin as am
from tests.problems import UNIT, optimal_problem


def test_two_free_entries_are_not_unique() -> None:
    assert am.uniqueness(am.solve(am.margin_problem(UNIT, UNIT), "nuc")) == "not unique"


def test_one_row_is_unique() -> None:
    problem = am.margin_problem([[3.0, 1.0]], [[2.0, 1.0]])
    assert am.uniqueness(am.solve(problem, "nuc")) == "unique"


def test_strictly_convex_norms_are_unique() -> None:
    problem = am.margin_problem([UNIT, UNIT], UNIT)
    for norm in ("fro", 1.5):
        assert list(am.uniqueness(am.solve(problem, norm))) == ["unique", "unique"]


def test_random_instances_are_unique_and_infeasible_ones_open() -> None:
    problem = optimal_problem(am.random_data(5, 5, 2, trials=12, name="unique"))
    solution = am.solve(problem, "nuc")
    found = am.uniqueness(solution)
    assert set(found[solution.status == "infeasible"]) == {"open"}
    assert all(isinstance(word, am.Uniqueness) for word in found)
    assert "unique" in set(found[solution.status == "optimal"])
    wide = am.solve(optimal_problem(am.random_data(6, 8, 10, trials=10, name="unique")), "nuc")
    assert set(am.uniqueness(wide)) == {"unique"}


def test_unique_means_that_another_method_finds_the_same() -> None:
    problem = optimal_problem(am.random_data(6, 8, 10, trials=10, name="unique"))
    one, other = (am.solve(problem, "nuc", method=m).W for m in ("interior", "lockstep"))
    torch.testing.assert_close(one, other, rtol=0, atol=1e-4)
