"""The Frobenius solver: every method through the same tests."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import attnmargin as am
from tests.problems import (
    HARD,
    SHAPES,
    clarabel_value,
    feasible_by_linear_program,
    optimal_problem,
    plain_problem,
    planted_contradiction,
    planted_optimum,
    random_problem,
)

METHODS = ["active-set", "lockstep"]


each_method = pytest.mark.parametrize("method", METHODS)


@each_method
def test_one_pair_in_closed_form(method: str) -> None:
    x, other, z = (np.array(v) for v in ([3.0, 1.0], [1.0, 2.0], [0.5, -2.0]))
    solution = am.solve(am.token_problem([[x, other]], [z], [0]), method=method)
    u = x - other
    expected = np.outer(u, z) / (u @ u) / (z @ z)
    torch.testing.assert_close(solution.W, torch.from_numpy(expected))
    assert float(solution.value) == pytest.approx(1 / np.linalg.norm(np.outer(u, z)))
    assert float(solution.margin) == pytest.approx(np.linalg.norm(np.outer(u, z)))


@each_method
def test_orthogonal_rows_in_closed_form(method: str) -> None:
    problem = am.margin_problem(np.diag([1.0, 2.0, 4.0]), np.ones((1, 1)))
    solution = am.solve(problem, method=method)
    torch.testing.assert_close(solution.vector, torch.tensor([1.0, 0.5, 0.25]).double())
    # bᵀ dual = value and ‖Aᵀ dual‖ = 1
    assert float(solution.dual.sum()) == pytest.approx(float(solution.value))
    assert float(torch.linalg.vector_norm(problem.adjoint(solution.dual))) == pytest.approx(1.0)


def test_example_one_of_paper_b() -> None:
    X = [[[5.0, 0.0], [0.0, 1.0]], [[-5.0, 0.0], [0.0, -1.0]]]
    solution = am.solve(am.token_problem(X, [[5.0, 0.0], [-5.0, 0.0]], [0, 0]), norm=2)
    expected = torch.tensor([[1 / 26, 0], [-1 / 130, 0]], dtype=torch.float64)
    torch.testing.assert_close(solution.W, expected, rtol=0, atol=1e-9)


def test_three_separable_points() -> None:
    """The set that a soft-margin solver got wrong (scikit-learn issue 18606)."""
    points = np.array([[1.0, 1.0], [2.0, 2.0], [-1.0, -1.0]])
    v = am.solve(am.label_problem(points[:, None], [1, 1, -1], [0, 0, 0])).vector
    torch.testing.assert_close(v, torch.tensor([0.5, 0.5]).double())


@each_method
@given(
    M=st.integers(0, 14),
    equalities=st.integers(0, 4),
    seed=st.integers(0, 100_000),
    scale=st.sampled_from([1e-6, 1.0, 1e6]),
)
@settings(deadline=None, max_examples=60)
def test_planted_optimum_is_recovered(
    method: str, M: int, equalities: int, seed: int, scale: float
) -> None:
    planted = planted_optimum(M, 4, 4, seed, min(equalities, M), scale)
    solution = am.solve(planted.problem, method=method)
    assert solution.status == "optimal"
    size = float(torch.linalg.vector_norm(planted.W))
    torch.testing.assert_close(solution.W, planted.W, rtol=0, atol=1e-9 * size)
    if size > 0:
        torch.testing.assert_close(
            solution.dual * solution.value, planted.dual, rtol=1e-6, atol=1e-7
        )


@each_method
@given(rows=st.integers(2, 5), others=st.integers(0, 6), seed=st.integers(0, 100_000))
@settings(deadline=None, max_examples=60)
def test_planted_contradiction_is_recovered(method: str, rows: int, others: int, seed: int) -> None:
    problem, proof = planted_contradiction(rows, others, 12, seed)
    solution = am.solve(problem, method=method)
    assert solution.status == "infeasible"
    torch.testing.assert_close(solution.dual, proof / proof.sum(), rtol=1e-8, atol=1e-10)
    assert bool((solution.support == (proof > 0)).all())
    assert bool(torch.isnan(solution.W).all())
    assert bool(torch.isnan(solution.value))


@each_method
@given(n=st.integers(1, 5), T=st.integers(1, 5), d=st.integers(1, 4), seed=st.integers(0, 100_000))
@settings(deadline=None, max_examples=60)
def test_small_whole_numbers_agree_with_two_other_solvers(
    method: str, n: int, T: int, d: int, seed: int
) -> None:
    """Whole numbers repeat and align: degenerate rows, many of them infeasible."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, (n, T, d)).astype(float)
    z = rng.integers(-1, 2, (n, d)).astype(float)
    chosen = rng.random((n, T)) < 0.4
    chosen[:, 0] |= ~chosen.any(1)
    problem = am.token_problem(X, z, chosen)
    solution = am.solve(problem, method=method)
    if feasible_by_linear_program(problem):
        assert solution.status == "optimal"
        reference = clarabel_value(problem)
        assert reference is not None
        assert float(solution.value) == pytest.approx(reference, rel=1e-6, abs=1e-7)
    else:
        assert solution.status == "infeasible"


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("distribution", ["sphere", "gaussian"])
@pytest.mark.parametrize("self_attention", [False, True])
def test_random_instances(
    shape: tuple[int, int, int], distribution: str, self_attention: bool
) -> None:
    """Fifty instances in each of twenty settings: solved or proved infeasible, to 1e-12."""
    problem = random_problem(shape, 50, distribution, self_attention)
    solution = am.solve(problem)
    assert set(solution.status) <= {"optimal", "infeasible"}
    assert (am.solve(problem, method="lockstep").status == solution.status).all()
    for i, status in enumerate(solution.status):
        reference = clarabel_value(problem[i])
        assert (reference is None) == (status == "infeasible")
        if reference is not None:
            assert float(solution.certificate.gap[i]) <= 1e-12
            assert float(solution.value[i]) == pytest.approx(reference, rel=1e-6)


@pytest.mark.parametrize("shape", SHAPES)
def test_both_methods_agree(shape: tuple[int, int, int]) -> None:
    problem = optimal_problem(am.random_data(*shape, trials=20, name="agree"))
    first, second = (am.solve(problem, method=method) for method in METHODS)
    assert (first.status == second.status).all()
    torch.testing.assert_close(first.W, second.W, rtol=1e-8, atol=1e-9)
    torch.testing.assert_close(first.dual, second.dual, rtol=1e-6, atol=1e-8)


def test_rank_is_at_most_the_number_of_sequences() -> None:
    """Lemma 1 of paper A: the row space lies in the span of the queries."""
    solution = am.solve(optimal_problem(am.random_data(3, 5, 8, trials=20, name="rank")))
    assert int(solution.rank.max()) <= 3


def test_rank_counts_singular_values() -> None:
    problem = am.margin_problem(np.diag([1.0, 2.0, 4.0]), np.diag([1.0, 1.0, 1.0]))
    assert int(am.solve(problem).rank) == 3
    clash = am.margin_problem([[1.0], [-1.0]], [[1.0]])
    assert int(am.solve(clash).rank) == -1
    assert int(am.solve(am.margin_problem([[1.0]], [[1.0]], [-1.0])).rank) == 0


@each_method
def test_rotation_permutation_and_scale(method: str) -> None:
    data = am.random_data(4, 5, 6, name="symmetry")
    rng = np.random.default_rng(0)
    U, V = (torch.from_numpy(np.linalg.qr(rng.standard_normal((6, 6)))[0]) for _ in range(2))
    alpha = am.optimal_tokens(data)
    W = am.solve(am.token_problem(data.X, data.z, alpha), method=method).W
    turned = am.solve(am.token_problem(data.X @ U, data.z @ V, alpha), method=method).W
    torch.testing.assert_close(turned, U.T @ W @ V)
    order = torch.tensor([3, 1, 0, 2])
    mixed = am.token_problem(data.X[order], data.z[order], alpha[order])
    torch.testing.assert_close(am.solve(mixed, method=method).W, W)
    scaled = am.solve(am.token_problem(10 * data.X, 0.5 * data.z, alpha), method=method).W
    torch.testing.assert_close(scaled, W / 5)


@each_method
@pytest.mark.parametrize("name", HARD)
def test_hard_inputs(name: str, method: str) -> None:
    make, expected = HARD[name]
    problem = make()
    solution = am.solve(problem, method=method)
    assert solution.status == expected
    assert feasible_by_linear_program(problem) == (expected == "optimal") or problem.M == 0
    reference = clarabel_value(problem) if expected == "optimal" and problem.M else None
    if reference is not None and name not in ("tiny", "huge", "mixed scales"):
        assert float(solution.value) == pytest.approx(reference, rel=1e-6, abs=1e-7)


@each_method
def test_scale_changes_nothing_but_the_scale(method: str) -> None:
    plain, tiny, huge = (
        am.solve(plain_problem(scale), method=method).W for scale in (1.0, 1e-6, 1e6)
    )
    torch.testing.assert_close(tiny * 1e-12, plain, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(huge * 1e12, plain, rtol=1e-9, atol=1e-12)


def test_tokens_of_very_different_scale() -> None:
    """The scale of each sequence is drawn from 1e-4 … 1e4."""
    rng = np.random.default_rng(0)
    scale = 10.0 ** rng.integers(-4, 5, (100, 4, 1, 1))
    X, z = rng.standard_normal((100, 4, 4, 6)) * scale, rng.standard_normal((100, 4, 6))
    solution = am.solve(am.token_problem(X, z, np.zeros((100, 4), int)))
    assert int((solution.status == "optimal").sum()) >= 98
    assert "infeasible" not in solution.status


def test_a_contradiction_beside_a_much_smaller_sequence() -> None:
    X = [[[1e-6, 0, 0], [0, 0, 0]], [[0, 1e6, 0], [0, 0, 0]], [[0, 0, 0], [0, 1e6, 0]]]
    solution = am.solve(am.token_problem(X, [[1.0, 2.0, 3.0]] * 3, [0, 0, 0]))
    assert solution.status == "infeasible"
    assert solution.support.tolist() == [False, True, True]


@each_method
def test_batch_equals_loop_with_infeasible_members(method: str) -> None:
    data = am.random_data(5, 5, 3, trials=60, name="mixed")
    problem = optimal_problem(data)
    batch = am.solve(problem, method=method)
    assert {"optimal", "infeasible"} <= set(batch.status)
    for i in range(60):
        one = am.solve(problem[i], method=method)
        assert one.status == batch.status[i]
        torch.testing.assert_close(batch.W[i], one.W, rtol=1e-12, atol=1e-12, equal_nan=True)
        torch.testing.assert_close(batch.dual[i], one.dual, rtol=1e-12, atol=1e-12)
    optimal = torch.from_numpy(batch.status == "optimal")
    assert bool(torch.isfinite(batch.W[optimal]).all())
    assert bool(torch.isfinite(batch.dual).all())


@each_method
@pytest.mark.parametrize("batch", [(0,), (2, 0), (2, 3)])
def test_any_batch_shape(batch: tuple[int, ...], method: str) -> None:
    X, z = np.random.default_rng(0).standard_normal((2, *batch, 3, 4, 4))
    problem = am.token_problem(X, z[..., 0, :], np.zeros((*batch, 3), int))
    solution = am.solve(problem, method=method)
    assert solution.W.shape == (*batch, 4, 4)
    assert solution.status.shape == solution.value.shape == batch
    assert solution.support.shape == solution.dual.shape == (*batch, 9)
    assert solution.raise_for_status() is solution


@each_method
def test_float32_in_float32_out(method: str) -> None:
    data = am.random_data(6, 8, 10, trials=10, name="single")
    double = optimal_problem(data)
    solution = am.solve(double.as_dtype(torch.float32), method=method)
    assert solution.W.dtype == solution.dual.dtype == solution.value.dtype == torch.float32
    assert (solution.status == "optimal").all()
    exact = am.solve(double, method=method)
    gap = solution.certificate.gap
    assert float(gap.max()) < 1e-5
    error = (solution.value.double() / exact.value - 1).abs()
    assert bool((error <= gap + 1e-6).all())
    assert torch.equal(solution.support, exact.support)


@each_method
def test_same_input_same_bits(method: str) -> None:
    problem = optimal_problem(am.random_data(6, 8, 10, trials=100, name="bits"))
    first, second = (am.solve(problem, method=method) for _ in range(2))
    assert torch.equal(first.W, second.W)
    assert torch.equal(first.dual, second.dual)


def test_warm_start_changes_the_time_not_the_answer() -> None:
    data = am.random_data(6, 8, 10, trials=10, name="warm")
    problem = optimal_problem(data)
    cold = am.solve(problem)
    warm = am.solve(problem, warm_start=cold)
    torch.testing.assert_close(warm.W, cold.W, rtol=1e-11, atol=1e-12)
    assert int(warm.iterations.max()) == 1 < int(cold.iterations.max())
    wrong = (torch.rand(10, problem.M, generator=torch.Generator().manual_seed(0)) < 0.5).double()
    lost = am.solve(problem, warm_start=wrong)
    torch.testing.assert_close(lost.W, cold.W, rtol=1e-11, atol=1e-12)


def test_support_is_the_set_of_tight_rows() -> None:
    problem = optimal_problem(am.random_data(5, 5, 8, trials=5, name="support"))
    solution = am.solve(problem)
    rows = problem.apply(solution.W)
    assert torch.equal(solution.support, (rows - 1).abs() < 1e-8)
    assert bool((rows >= 1 - 1e-12).all())
    assert bool(solution.support[solution.dual > 1e-9].all())


def test_equalities_are_no_support() -> None:
    data = am.random_data(2, 4, 6, name="sets")
    chosen = torch.tensor([[True, True, False, False]] * 2)
    solution = am.solve(am.token_problem(data.X, data.z, chosen))
    assert solution.support[0] == solution.support[3] == False  # noqa: E712
    torch.testing.assert_close(
        solution.problem.apply(solution.W)[[0, 3]], torch.zeros(2).double(), atol=1e-14, rtol=0
    )


def test_selecting_more_costs_more() -> None:
    """Each further equality or row can only lengthen W."""
    data = am.random_data(4, 5, 10, trials=10, name="monotone")
    one = torch.nn.functional.one_hot(am.optimal_tokens(data), 5).bool()
    visible = torch.ones_like(one)
    visible[..., 4] = one[..., 4]
    full = am.solve(am.token_problem(data.X, data.z, one)).value
    less = am.solve(am.token_problem(data.X, data.z, one, visible)).value
    assert bool((less <= full * (1 + 1e-12)).all())


@each_method
@pytest.mark.parametrize("scale", [1e-150, 1e-60, 1e60, 1e99])
def test_extreme_scales(scale: float, method: str) -> None:
    solution = am.solve(plain_problem(1.0), method=method)
    rng = np.random.default_rng(7)
    X, z = rng.standard_normal((3, 4, 6)), rng.standard_normal((3, 6))
    extreme = am.solve(am.token_problem(scale * X, z, [0, 1, 2]), method=method)
    assert extreme.status == "optimal"
    torch.testing.assert_close(extreme.W * scale, solution.W, rtol=1e-9, atol=1e-12)
