"""Uniqueness in norms that are not strictly convex: closed forms, and what is not unique."""

import pytest
import torch

import attnmargin as am
from tests.problems import UNIT, optimal_problem

FLAT = ["nuc", "spectral", "max", "sum", "rows", "columns"]

# W₁₁ ≥ 1 alone: every entry, row or column that V does not touch may move.
ONE = ([[1.0, 0.0]], [[1.0, 0.0]])


@pytest.mark.parametrize(
    ("norm", "words"),
    [("nuc", "unique"), ("sum", "unique"), ("spectral", "not unique"), ("max", "not unique"),
     ("rows", "not unique"), ("columns", "not unique")],
)  # fmt: skip
def test_one_entry_at_least_one(norm: str, words: str) -> None:
    assert am.uniqueness(am.solve(am.margin_problem(*ONE), norm)) == words


@pytest.mark.parametrize(
    ("norm", "words"),
    [("sum", "unique"), ("spectral", "unique"), ("max", "not unique"), ("rows", "unique"),
     ("columns", "unique")],
)  # fmt: skip
def test_two_entries_on_the_diagonal(norm: str, words: str) -> None:
    """Only the identity has a spectral norm of one; off the diagonal, max leaves all open."""
    solution = am.solve(am.margin_problem(UNIT, UNIT), norm)
    assert float(solution.value) == pytest.approx(2.0 if norm == "sum" else 1.0)
    assert am.uniqueness(solution) == words


def test_a_choice_between_two_entries_is_not_unique() -> None:
    """W₁₁ + W₁₂ ≥ 1: any share of the sum, but one largest entry."""
    problem = am.margin_problem([[1.0]], [[1.0, 1.0]])
    assert am.uniqueness(am.solve(problem, "sum")) == "not unique"
    assert am.uniqueness(am.solve(problem, "max")) == "unique"


@pytest.mark.parametrize("norm", FLAT)
def test_what_is_unique_is_found_by_the_reference_too(norm: str) -> None:
    problem = optimal_problem(am.random_data(4, 4, 2, trials=6, name="unique in flat norms"))
    one, other = am.solve(problem, norm), am.solve(problem, norm, method="reference")
    for b, word in enumerate(am.uniqueness(one)):
        assert (word == "open") <= (one.status[b] == "infeasible")
        if word == "unique":
            torch.testing.assert_close(one.W[b], other.W[b], rtol=0, atol=1e-4)
