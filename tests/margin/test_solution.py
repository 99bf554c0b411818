"""Status, support, files, members of a solution."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import attnmargin as am
from attnmargin.base.npz import read_npz, write_npz
from tests.problems import optimal_problem


def test_support_tokens_by_hand() -> None:
    """One query: of the tokens 2, 1, −5 on a line, 1 is the nearest rival of 2."""
    solution = am.solve(am.token_problem([[[2.0], [1.0], [-5.0]]], [[1.0]], [0]))
    assert am.selections.support_tokens(solution).tolist() == [[False, True, False]]


def test_support_tokens_of_several_queries() -> None:
    data = am.random_data(3, 4, 12, trials=2, name="support")
    z = torch.randn(2, 3, 2, 12, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    selection = torch.tensor([[0, 3], [1, 2], [2, 0]]).expand(2, 3, 2)
    solution = am.solve(am.token_problem(data.X, z, selection))
    support = am.selections.support_tokens(solution)
    assert support.shape == (2, 3, 2, 4)
    assert not bool(support.gather(-1, selection.unsqueeze(-1)).any())
    assert int(support.sum()) == int(solution.support.sum())
    logits = torch.einsum("bntd,bde,bnke->bnkt", data.X, solution.W, z)
    below = logits.gather(-1, selection.unsqueeze(-1)) - logits
    torch.testing.assert_close(below[support], torch.ones(int(support.sum()), dtype=torch.float64))


def test_support_tokens_need_a_token_problem() -> None:
    with pytest.raises(am.InputError, match="needs that of a token_problem"):
        am.selections.support_tokens(am.solve(am.margin_problem([[1.0]], [[1.0]])))


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
