"""What the nuclear and ℓp solvers share: two implementations, warm starts."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import attnmargin as am
from tests.problems import MORE_SHAPES, dense_rows, optimal_problem, random_problem, tokens_and_sets

NORMS = ["nuc", 1.1, 1.75, 3.0, 10.0]


each_norm = pytest.mark.parametrize("norm", NORMS)


@each_norm
@pytest.mark.parametrize("shape", MORE_SHAPES)
def test_compiled_and_torch_walks_agree(norm: str | float, shape: tuple[int, int, int]) -> None:
    problem = random_problem(shape, 10, "sphere", False)
    one, other = (am.solve(problem, norm, method=m) for m in ("interior", "lockstep"))
    assert (one.status == other.status).all()
    torch.testing.assert_close(one.value, other.value, rtol=2e-9, atol=0, equal_nan=True)


@each_norm
def test_walks_agree_with_equalities_and_masks(norm: str | float) -> None:
    one, other = (am.solve(tokens_and_sets(0), norm, method=m) for m in ("interior", "lockstep"))
    assert {"optimal"} <= set(one.status) <= {"optimal", "infeasible"}
    assert (one.status == other.status).all()
    torch.testing.assert_close(one.value, other.value, rtol=2e-9, atol=0, equal_nan=True)


@each_norm
def test_a_warm_start_changes_no_answer(norm: str | float) -> None:
    problem = optimal_problem(am.random_data(6, 8, 10, trials=5, name="warm"))
    cold = am.solve(problem, norm)
    other = optimal_problem(am.random_data(6, 8, 10, trials=5, name="warm from elsewhere"))
    starts = [
        cold,
        am.solve(problem),
        am.solve(other, norm),
        am.solve(problem, 1.3),
        torch.ones(problem.M),
        -torch.ones(problem.M),
        torch.full((problem.M,), torch.nan),
        torch.arange(problem.M) < 3,
        torch.full((problem.M,), 1e300, dtype=torch.float64),
    ]
    for start in starts:
        warm = am.solve(problem, norm, warm_start=start)
        assert (warm.status == "optimal").all()
        torch.testing.assert_close(warm.value, cold.value, rtol=2e-9, atol=0)


@each_norm
def test_a_warm_start_from_the_solution_is_not_longer(norm: str | float) -> None:
    """Paths of ℓp get shorter; nuclear ones, whose start is near the Frobenius solution, do not."""
    problem = optimal_problem(am.random_data(6, 8, 10, trials=20, name="warm"))
    cold = am.solve(problem, norm)
    warm = am.solve(problem, norm, warm_start=cold)
    share = int(warm.iterations.sum()) / int(cold.iterations.sum())
    assert share < (1.05 if norm == "nuc" else 0.95)


@each_norm
def test_a_warm_start_of_the_wrong_shape_is_refused(norm: str | float) -> None:
    problem = optimal_problem(am.random_data(2, 3, 4))
    with pytest.raises(am.InputError, match="warm_start: got multipliers"):
        am.solve(problem, norm, warm_start=torch.ones(3))


@each_norm
@given(seed=st.integers(0, 10**6), n=st.integers(1, 4), T=st.integers(2, 5), d=st.integers(1, 6))
@settings(max_examples=25, deadline=None)
def test_every_small_instance_is_settled(
    norm: str | float, seed: int, n: int, T: int, d: int
) -> None:
    """Optimal with a certified gap, or infeasible with the proof of the Frobenius solver."""
    problem = optimal_problem(am.random_data(n, T, d, seed=seed, name="small"))
    solution = am.solve(problem, norm)
    assert solution.status == am.solve(problem).status
    if solution.status == "optimal":
        A, b, _ = dense_rows(problem)
        assert (A @ solution.W.flatten().numpy() >= b - 1e-8 * np.abs(b)).all()
        assert float(solution.certificate.gap) <= 1e-9
