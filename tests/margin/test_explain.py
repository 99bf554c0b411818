"""Why a problem is infeasible, in words."""

import numpy as np
import pytest

import attnmargin as am
from tests.problems import planted_contradiction

A, B = [1.0, 0.0], [0.0, 1.0]


def words_of(problem: am.MarginProblem) -> str:
    with pytest.raises(am.InfeasibleError) as caught:
        am.solve(problem).raise_for_status()
    return str(caught.value)


def test_two_sequences_that_want_the_reverse() -> None:
    X = [[A, B], [[5.0, 5.0], [0.0, 0.0]], [A, B], [B, A]]
    problem = am.token_problem(X, [[1.0, 1.0], A, [2.0, 2.0], [3.0, 3.0]], [0, 0, 0, 0])
    assert words_of(problem) == (
        "infeasible: sequence 0 wants token 0 over token 1, "
        "sequence 3 wants token 0 over token 1, the opposite difference, with a parallel query"
    )


def test_the_same_tokens_reversed() -> None:
    problem = am.token_problem([[A, B], [A, B]], [A, A], [1, 0])
    assert words_of(problem) == (
        "infeasible: sequence 0 wants token 1 over token 0, sequence 1 the reverse, "
        "with the same query"
    )


def test_opposite_queries() -> None:
    problem = am.token_problem([[A, B], [A, B]], [A, [-1.0, 0.0]], [0, 0])
    assert words_of(problem) == (
        "infeasible: sequence 0 wants token 0 over token 1, sequence 1 wants token 0 over token 1, "
        "the same difference, with an opposite query"
    )


def test_equal_tokens_and_zero_query() -> None:
    assert words_of(am.token_problem([[A, A]], [A], [0])) == (
        "infeasible: sequence 0 wants token 0 over token 1, but the tokens are equal"
    )
    assert words_of(am.token_problem([[A, B]], [[0.0, 0.0]], [0])) == (
        "infeasible: sequence 0 wants token 0 over token 1, but its query is zero"
    )
    assert words_of(am.label_problem([[[0.0, 0.0]]], [1], [0])) == (
        "infeasible: sequence 0 wants its label from token 0, but the token is zero"
    )


def test_proofs_with_equalities_are_sums() -> None:
    X = [[[1.0], [0.0], [3.0]]]
    assert words_of(am.token_problem(X, [[1.0]], [[True, True, False]])) == (
        "infeasible: no W satisfies these 2 rows together: "
        "2 × (sequence 0 wants tokens 0 and 1 level) + 1 × (sequence 0 wants token 0 over token 2) "
        "reads 0 ≥ 1"
    )


def test_long_proofs_are_cut() -> None:
    problem, _ = planted_contradiction(15, 0, 20, 3)
    words = words_of(problem)
    assert "no W satisfies these 15 rows together" in words
    assert "… 3 more" in words
    assert "(row 0 wants ≥ 1)" in words


def test_the_member_of_a_batch_is_named() -> None:
    X = np.array([[[A, B], [B, [5.0, 5.0]]], [[A, B], [B, A]]])
    z = np.array([[A, A], [A, A]])
    problem = am.token_problem(X, z, [[0, 0], [0, 0]])
    assert words_of(problem).startswith("problem 1: infeasible: sequence 0 wants")
    deeper = am.token_problem(X[:, None], z[:, None], np.zeros((2, 1, 2), int))
    assert words_of(deeper).startswith("problem (1, 0): infeasible")
