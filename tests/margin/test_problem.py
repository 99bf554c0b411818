"""MarginProblem: values, adjoint, members, files."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import attnmargin as am


def random_problem(B: tuple[int, ...], Q: int, S: int, seed: int = 0) -> am.MarginProblem:
    rng = np.random.default_rng(seed)
    left, query = rng.standard_normal((*B, Q * S, 3)), rng.standard_normal((*B, Q, 2))
    return am.margin_problem(left, query, 1.0, rng.random((*B, Q * S)) < 0.2)


@given(Q=st.integers(1, 4), S=st.integers(0, 3), seed=st.integers(0, 100))
def test_values_and_adjoint_are_those_of_the_dense_rows(Q: int, S: int, seed: int) -> None:
    problem = random_problem((2,), Q, S, seed)
    generator = torch.Generator().manual_seed(seed)
    W = torch.randn(2, 3, 2, generator=generator, dtype=torch.float64)
    dual = torch.randn(2, Q * S, generator=generator, dtype=torch.float64)
    rows = torch.einsum("bmd,bde,bme->bm", problem.left, W, problem.right)
    torch.testing.assert_close(problem.apply(W), rows)
    total = torch.einsum("bm,bmd,bme->bde", dual, problem.left, problem.right)
    torch.testing.assert_close(problem.adjoint(dual), total)
    dense = torch.einsum("bmd,bme->bmde", problem.left, problem.right)
    torch.testing.assert_close(problem.lengths(), torch.linalg.vector_norm(dense, dim=(-2, -1)))


def test_members_are_the_problems_of_the_loop() -> None:
    data = am.random_data(3, 4, 5, trials=4)
    problem = am.token_problem(data.X, data.z, am.optimal_tokens(data))
    for i in range(4):
        one = am.token_problem(data.X[i], data.z[i], am.optimal_tokens(data)[i])
        for name, value in one.arrays().items():
            assert torch.equal(problem[i].arrays()[name].expand(value.shape), value)


@pytest.mark.parametrize("batch", [(), (2,), (2, 0), (2, 3)])
def test_save_and_load(batch: tuple[int, ...], tmp_path: Path) -> None:
    problem = random_problem(batch, 2, 3)
    loaded = am.MarginProblem.load(problem.save(tmp_path / "p.npz"))
    for name, value in problem.arrays().items():
        assert torch.equal(loaded.arrays()[name], value)


def test_names_survive_a_file(tmp_path: Path) -> None:
    data = am.random_data(3, 4, 5)
    problem = am.token_problem(data.X, data.z, [3, 2, 1])
    loaded = am.MarginProblem.load(problem.save(tmp_path / "p.npz"))
    assert torch.equal(loaded.names.chosen, problem.names.chosen)


def test_other_dtype() -> None:
    problem = random_problem((), 2, 2).as_dtype(torch.float32)
    assert problem.left.dtype == problem.query.dtype == problem.bound.dtype == torch.float32
