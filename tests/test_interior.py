"""What the nuclear and ℓp solvers share: two implementations, warm starts, paths, the reference."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import attnmargin as am
from tests.problems import MORE_SHAPES, dense_rows, optimal_problem, random_problem

NORMS = ["nuc", 1.1, 1.75, 3.0, 10.0]
each_norm = pytest.mark.parametrize("norm", NORMS)


def mixed(seed: int, trials: int = 6) -> am.MarginProblem:
    """Tokens and sets: equality rows, masked rows, some infeasible members."""
    rng = np.random.default_rng(seed)
    X, z = rng.standard_normal((trials, 4, 4, 3)), rng.standard_normal((trials, 4, 3))
    chosen = np.zeros((trials, 4, 4), bool)
    chosen[..., 0] = True
    chosen[::2, 0, 1] = True
    mask = np.ones((trials, 4, 4), bool)
    mask[:, 1, 3] = False
    return am.token_problem(X, z, chosen, mask)


@each_norm
@pytest.mark.parametrize("shape", MORE_SHAPES)
def test_compiled_and_torch_walks_agree(norm: str | float, shape: tuple[int, int, int]) -> None:
    problem = random_problem(shape, 10, "sphere", False)
    one, other = (am.solve(problem, norm, method=m) for m in ("interior", "lockstep"))
    assert (one.status == other.status).all()
    torch.testing.assert_close(one.value, other.value, rtol=2e-9, atol=0, equal_nan=True)


@each_norm
def test_walks_agree_with_equalities_and_masks(norm: str | float) -> None:
    one, other = (am.solve(mixed(0), norm, method=m) for m in ("interior", "lockstep"))
    assert {"optimal"} <= set(one.status) <= {"optimal", "infeasible"}
    assert (one.status == other.status).all()
    torch.testing.assert_close(one.value, other.value, rtol=2e-9, atol=0, equal_nan=True)


@pytest.mark.parametrize("norm", ["fro", *NORMS])
def test_reference_brackets_the_same_value(norm: str | float) -> None:
    """Exact cones; its own accuracy is what its certificate says."""
    problem = mixed(1)
    fast, slow = am.solve(problem, norm), am.solve(problem, norm, method="reference")
    feasible = torch.from_numpy(fast.status == "optimal")
    assert bool(feasible.any())
    assert bool((slow.certificate.gap[feasible] < 1e-4).all())
    torch.testing.assert_close(fast.value[feasible], slow.value[feasible], rtol=1e-5, atol=0)


def test_reference_proves_infeasibility() -> None:
    rows = torch.tensor([[1.0, 0.0], [-1.0, 0.0]], dtype=torch.float64)
    problem = am.margin_problem(rows, rows.new_ones(2, 1))
    assert am.solve(problem, 3, method="reference").status == "infeasible"


def test_reference_of_nothing_to_do_is_zero() -> None:
    problem = am.margin_problem([[1.0, 0.0]], [[1.0]], bound=[-1.0])
    assert am.solve(problem, "nuc", method="reference").W.tolist() == [[0.0], [0.0]]


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
def test_a_warm_start_from_the_solution_is_shorter(norm: str | float) -> None:
    problem = optimal_problem(am.random_data(6, 8, 10, trials=20, name="warm"))
    cold = am.solve(problem, norm)
    warm = am.solve(problem, norm, warm_start=cold)
    assert int(warm.iterations.sum()) < 0.7 * int(cold.iterations.sum())


@each_norm
def test_a_warm_start_of_the_wrong_shape_is_refused(norm: str | float) -> None:
    problem = optimal_problem(am.random_data(2, 3, 4))
    with pytest.raises(am.InputError, match="warm_start: got multipliers"):
        am.solve(problem, norm, warm_start=torch.ones(3))


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


@each_norm
@given(seed=st.integers(0, 10**6), n=st.integers(1, 4), T=st.integers(2, 5), d=st.integers(1, 6))
@settings(max_examples=15, deadline=None)
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


@pytest.mark.parametrize("norm", ["nuc", 1.5, 3.0])
@pytest.mark.parametrize("method", ["interior", "lockstep"])
@pytest.mark.parametrize("share", [1e-3, 1e-5, 1e-7])
def test_shares_that_are_almost_equal(norm: str | float, method: str, share: float) -> None:
    """Equalities with bounds far below the size of W are met to their own digits."""
    rng = np.random.default_rng(0)
    X, z = rng.normal(size=(20, 2, 3, 6)), rng.normal(size=(20, 2, 6))
    shares = np.ones((20, 2, 3)) + share * rng.normal(size=(20, 2, 3))
    shares[:, 0, 0] += 0.5
    problem = am.finite_problem(X, z, shares / shares.sum(-1, keepdims=True))
    solution = am.solve(problem, norm, method=method)
    assert bool(solution.optimal.all())
    other = {"interior": "lockstep", "lockstep": "interior"}[method]
    exact = am.solve(problem, norm, method=other)
    torch.testing.assert_close(solution.norm.value(solution.W), exact.norm.value(exact.W))


@pytest.mark.parametrize("scale", [1e-90, 1e78])
def test_equalities_of_any_scale(scale: float) -> None:
    rng = np.random.default_rng(0)
    X, z = rng.normal(size=(2, 2, 3, 6)), rng.normal(size=(2, 2, 6))
    X[1], z[1] = X[1] * scale, z[1] * scale
    shares = np.ones((2, 2, 3)) + 1e-6 * rng.normal(size=(2, 2, 3))
    problem = am.finite_problem(X, z, shares / shares.sum(-1, keepdims=True))
    assert bool(am.solve(problem, "nuc").optimal.all())
