"""The oracles of the hunt against closed forms and other programs."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch

import attnmargin as am
from tests.formulas import plain_gradient, shortest
from tests.hunt.opinion import level_holds, opinions
from tests.hunt.oracle_exact import exact_rows, feasible_point, holds, shortest_point
from tests.hunt.oracle_lp import lp_solution
from tests.hunt.oracle_nuclear import planted_nuclear
from tests.hunt.oracle_paths import Loss, least_loss, norm
from tests.hunt.oracle_training import Setting, precise, walk_W

cp: Any = pytest.importorskip("cvxpy")
Three = tuple[Any, Any, Any]


def small_rows(seed: int, scales: bool = False) -> Three:
    rng = np.random.default_rng(seed)
    M, d, e = (int(x) for x in rng.integers(1, [8, 4, 3]))
    left, right = rng.integers(-3, 4, (M, d)) * 1.0, rng.integers(-3, 4, (M, e)) * 1.0
    if scales:
        left = rng.standard_normal((M, d)) * 10.0 ** rng.integers(-8, 9, (M, 1))
    return left, right, np.ones(M)


def test_width_one_by_hand() -> None:
    rows = exact_rows(np.array([[2.0], [3.0]]), np.array([[1.0], [0.5]]), np.array([1.0, 3.0]))
    found = shortest_point(rows)
    assert found is not None
    assert found.w == [Fraction(2)]
    assert found.slack == [Fraction(3), Fraction(0)]
    assert found.dual == [Fraction(0), Fraction(4, 3)]


def test_a_contradiction_of_one_unit_in_the_last_place_is_seen() -> None:
    eps = np.finfo(float).eps
    above = exact_rows(np.array([[1.0], [-1.0]]), np.ones((2, 1)), np.array([1.0, -1.0 - eps]))
    assert feasible_point(above) == [Fraction(1)] or holds(above, feasible_point(above) or [])
    below = exact_rows(np.array([[1.0], [-1.0]]), np.ones((2, 1)), np.array([1.0 + eps, -1.0]))
    assert feasible_point(below) is None
    assert shortest_point(below) is None


@pytest.mark.parametrize("scales", [False, True])
def test_both_exact_methods_agree_and_prove_themselves(scales: bool) -> None:
    feasible = 0
    for seed in range(150):
        rows = exact_rows(*small_rows(seed, scales))
        point, found = feasible_point(rows), shortest_point(rows)
        assert (point is None) == (found is None)
        if point is None or found is None:
            continue
        feasible += 1
        assert holds(rows, point)
        assert holds(rows, found.w)
        assert all(x >= 0 for x in found.dual)
        assert all(x * s == 0 for x, s in zip(found.dual, found.slack, strict=True))
    assert 30 < feasible < 140


def test_equalities_are_two_rows() -> None:
    rows = exact_rows(np.eye(2), np.ones((2, 1)), np.array([1.0, -2.0]), np.array([True, True]))
    found = shortest_point(rows)
    assert found is not None
    assert found.w == [Fraction(1), Fraction(-2)]


def test_the_shortest_point_is_that_of_least_squares() -> None:
    for seed in range(60):
        left, right, bound = small_rows(seed)
        rows = np.einsum("md,me->mde", left, right).reshape(len(left), -1)
        found, other = shortest_point(exact_rows(left, right, bound)), shortest(rows)
        assert (found is None) == (other is None)
        if found is not None and other is not None:
            np.testing.assert_allclose([float(x) for x in found.w], other, atol=1e-7)


@pytest.mark.parametrize("p", [1.1, 1.75, 3.0, 10.0])
def test_one_row_has_the_closed_form_of_duality(p: float) -> None:
    """min ‖w‖_p with aᵀw ≥ 1 is w ∝ sign(a) |a|^{q−1}, of norm 1/‖a‖_q."""
    a, q = np.array([3.0, -4.0, 0.5]), p / (p - 1.0)
    found = lp_solution(exact_rows(a[None], np.ones((1, 1)), np.ones(1)), p, [[1.0]])
    assert found is not None
    w = np.sign(a) * np.abs(a) ** (q - 1.0)
    np.testing.assert_allclose([float(x) for x in found.w], w / (a @ w), rtol=1e-14)


@pytest.mark.parametrize("p", [1.75, 3.0])
def test_lp_solutions_are_those_of_cvxpy(p: float) -> None:
    for seed in range(12):
        left, right, bound = small_rows(seed)
        rows = exact_rows(left, right, bound)
        start = shortest_point(rows)
        if start is None:
            continue
        found = lp_solution(rows, p, [[float(x) for x in start.dual]])
        assert found is not None
        A = np.einsum("md,me->mde", left, right).reshape(len(left), -1)
        w = cp.Variable(A.shape[1])
        value = cp.Problem(cp.Minimize(cp.pnorm(w, p)), [A @ w >= 1]).solve(solver="CLARABEL")
        own = np.array([float(x) for x in found.w])
        assert (np.abs(own) ** p).sum() ** (1 / p) == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("k", [0, 1, 3, 4])
def test_planted_nuclear_values_are_those_of_cvxpy(k: int) -> None:
    planted = planted_nuclear(3, k)
    problem = planted.group.problem()
    for g in range(3):
        if planted.group.adversarial:
            continue
        W = cp.Variable(problem.shape)
        left, right = problem.left[g].numpy(), problem.right[g].numpy()
        rows = [a @ W @ z >= 1 for a, z in zip(left, right, strict=True)]
        value = cp.Problem(cp.Minimize(cp.normNuc(W)), rows).solve(solver="CLARABEL")
        assert float(planted.value[g]) == pytest.approx(value, rel=1e-6)


def ordinary(seed: int) -> tuple[am.AttentionData, dict[str, Any]]:
    data = am.random_data(2, 3, 2, name="oracle", seed=seed)
    return data, {name: getattr(data, name).numpy() for name in ("X", "z", "y", "v")}


def test_the_gradient_is_that_of_autograd() -> None:
    for seed in range(5):
        data, arrays = ordinary(seed)
        W = torch.randn(2, 2, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        slope = Setting(arrays, "logistic").slope(precise(W))
        assert data.v is not None
        of_W = plain_gradient(data, W, data.v)[0]
        np.testing.assert_allclose(slope.gradient.astype(float), of_W.numpy(), rtol=1e-12)
        value, g = Loss(arrays, "logistic")(W.numpy().ravel())
        np.testing.assert_allclose(g, of_W.numpy().ravel(), rtol=1e-12)
        assert value == pytest.approx(float(slope.loss), rel=1e-14)


def test_a_saturated_softmax_keeps_the_direction() -> None:
    """One sequence of two tokens: the gradient is along their difference, whatever the start."""
    X, z = np.array([[[1.0, 2.0], [3.0, -1.0]]]), np.array([[1.0, 0.5]])
    arrays = {"X": X, "z": z, "y": np.ones(1), "v": np.array([1.0, 0.0])}
    W = 1e3 * np.outer(X[0, 0] - X[0, 1], z[0])
    walk = walk_W(Setting(arrays, "logistic"), precise(W), 1, 1.0, 2.0, True)
    step = (walk.weights[1] - walk.weights[0]).astype(float)
    along = np.outer(X[0, 1] - X[0, 0], z[0])
    np.testing.assert_allclose(step, along / np.linalg.norm(along), rtol=1e-12)


def test_the_least_loss_of_two_tokens_is_on_the_sphere_along_their_difference() -> None:
    X, z = np.array([[[1.0, 2.0], [3.0, -1.0]]]), np.array([[1.0, 0.5]])
    loss = Loss({"X": X, "z": z, "y": np.ones(1), "v": np.array([1.0, 0.0])}, "logistic")
    starts = list(np.random.default_rng(0).standard_normal((3, 4)))
    value, w = least_loss(loss, 2.0, 2.0, starts)
    along = np.outer(X[0, 1] - X[0, 0], z[0]).ravel()
    np.testing.assert_allclose(w, 2.0 * along / np.linalg.norm(along), rtol=1e-5)
    assert norm(w, 2.0) == pytest.approx(2.0)
    assert value == loss(w)[0]


def test_certified_points_hold_with_fifty_digits() -> None:
    found = opinions(9)
    assert sum(asked for asked, _ in found.values()) == 9
    assert all(asked == confirmed for asked, confirmed in found.values())
    data = am.random_data(5, 5, 5, name="opinion")
    assert not level_holds(data, torch.zeros(5, 5, dtype=torch.float64))
