"""Status in words, files, members."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import attnmargin as am
from attnmargin.base.npz import read_npz, write_npz
from tests.problems import optimal_problem, planted_contradiction

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


def test_inaccurate_is_an_error_with_its_gap() -> None:
    problem = optimal_problem(am.random_data(3, 4, 5, name="words"))
    good = am.solve(problem)
    W = 1.001 * good.W
    certificate = am.certify(problem, "fro", W, good.dual)
    bad = am.Solution(problem, good.norm, W, good.dual, certificate, good.iterations)
    with pytest.raises(
        am.InaccurateError, match=r"\(gap 0.001, primal .*; optimal needs 1e-12 each"
    ):
        bad.raise_for_status()


def test_status_of_one_and_of_many() -> None:
    data = am.random_data(3, 4, 5, trials=2, name="status")
    many = am.solve(optimal_problem(data))
    assert isinstance(many.status, np.ndarray)
    assert isinstance(many.status[0], am.Status)
    one = am.solve(optimal_problem(data)[0])
    assert isinstance(one.status, am.Status)
    assert one.status == "optimal"


def test_vector_is_refused_for_matrices() -> None:
    with pytest.raises(am.InputError, match="needs a single column"):
        _ = am.solve(optimal_problem(am.random_data(2, 3, 4))).vector


@pytest.mark.parametrize("d", [2, 6])
def test_save_and_load(tmp_path: Path, d: int) -> None:
    """d = 2 has infeasible members."""
    solution = am.solve(optimal_problem(am.random_data(5, 5, d, trials=6, name="file")))
    loaded = am.Solution.load(solution.save(tmp_path / "s.npz"))
    assert (loaded.status == solution.status).all()
    assert torch.equal(loaded.dual, solution.dual)
    assert torch.equal(loaded.W.nan_to_num(), solution.W.nan_to_num())
    assert torch.equal(loaded.iterations, solution.iterations)
    assert loaded.norm == solution.norm


def test_a_corrupted_file_loads_as_inaccurate(tmp_path: Path) -> None:
    path = am.solve(optimal_problem(am.random_data(3, 4, 5))).save(tmp_path / "s.npz")
    arrays = read_npz(path)
    arrays["W"][1, 2] += 1e-3
    assert am.Solution.load(write_npz(path, arrays)).status == "inaccurate"


@pytest.mark.parametrize(
    ("name", "value"),
    [("rank_limit", [1, 2]), ("rank_limit", "x"), ("rank_limit", 2.7), ("iterations", [1, 2, 3])],
)
def test_damaged_extras_of_a_file(tmp_path: Path, name: str, value: Any) -> None:
    path = am.solve(am.margin_problem([[1.0]], [[1.0]]), "nuc").save(tmp_path / "s.npz")
    arrays = dict(np.load(path)) | {name: np.array(value)}
    np.savez(path, **arrays)
    with pytest.raises(am.InputError, match=f"{name}: got"):
        am.Solution.load(path)
