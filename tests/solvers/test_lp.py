"""The ℓp norms: certificates, exact power cones as second implementation, limits, hard input."""

import numpy as np
import pytest
import torch

import attnmargin as am
from tests.problems import HARD, optimal_problem, random_problem
from tests.problems import MORE_SHAPES as SHAPES

POWERS = [1.1, 1.25, 1.75, 3.0, 6.0, 10.0]


each_power = pytest.mark.parametrize("p", POWERS)


def test_example_one_of_paper_b() -> None:
    """The paper prints the p = 2 solution for p = 3."""
    X = [[[5.0, 0.0], [0.0, 1.0]], [[-5.0, 0.0], [0.0, -1.0]]]
    problem = am.token_problem(X, [[5.0, 0.0], [-5.0, 0.0]], [0, 0])
    W = am.solve(problem, norm=3).raise_for_status().W
    # 5·(5 w₁ − w₂) = 1 and |w₂|² / w₁² = 1/5
    ratio = 5.0**-0.5
    first = 1 / (25 + 5 * ratio)
    expected = torch.tensor([[first, 0.0], [-ratio * first, 0.0]], dtype=torch.float64)
    torch.testing.assert_close(W, expected, rtol=0, atol=1e-8)
    assert float(W[0, 0]) == pytest.approx(0.0367, abs=1e-4)
    assert float(W[1, 0]) == pytest.approx(-0.0164, abs=1e-4)


@each_power
def test_one_row_in_closed_form(p: float) -> None:
    """The shortest W against one row is the dual direction of the row."""
    u, z = np.array([2.0, -1.0, 0.5]), np.array([1.0, 3.0])
    solution = am.solve(am.margin_problem(u[None], z[None]), p).raise_for_status()
    a = np.outer(u, z)
    q = p / (p - 1)
    W = np.sign(a) * np.abs(a) ** (q - 1)
    torch.testing.assert_close(solution.W, torch.from_numpy(W / (W * a).sum()), rtol=0, atol=1e-7)
    assert float(solution.value) == pytest.approx(1 / (np.abs(a) ** q).sum() ** (1 / q), rel=1e-9)


@each_power
@pytest.mark.parametrize("shape", SHAPES)
def test_random_instances_are_certified(p: float, shape: tuple[int, int, int]) -> None:
    """With seven shapes, 504 instances for every p."""
    for distribution in ("sphere", "gaussian"):
        for self_attention in (False, True):
            problem = random_problem(shape, 18, distribution, self_attention)
            solution = am.solve(problem, p)
            assert (solution.status == am.solve(problem).status).all()
            assert float(solution.certificate.gap.nan_to_num(posinf=0.0).max()) <= 1e-9


@each_power
def test_values_agree_with_power_cones(p: float) -> None:
    data = am.random_data(3, 4, 3, name="lp reference")
    chosen = torch.tensor([[True, True, False, False], *[[True, False, False, False]] * 2])
    problem = am.token_problem(data.X, data.z, chosen)
    solution = am.solve(problem, p).raise_for_status()
    reference = am.solve(problem, p, method="reference")
    assert float(solution.value) == pytest.approx(float(reference.value), rel=1e-6)


def test_near_two_is_near_frobenius() -> None:
    problem = optimal_problem(am.random_data(6, 8, 10, trials=5, name="lp two"))
    W = am.solve(problem).W
    torch.testing.assert_close(am.solve(problem, 2.0).W, W, rtol=1e-10, atol=1e-10)
    for p in (1.9999, 2.0001):
        torch.testing.assert_close(am.solve(problem, p).W, W, rtol=0, atol=2e-3)


@pytest.mark.parametrize("method", ["interior", "lockstep"])
@pytest.mark.parametrize("p", [1.1, 3.0])
@pytest.mark.parametrize("name", HARD)
def test_hard_inputs(name: str, p: float, method: str) -> None:
    make, expected = HARD[name]
    assert am.solve(make(), p, method=method).status == expected


@pytest.mark.parametrize("p", [1.25, 6.0])
def test_batch_equals_loop_with_infeasible_members(p: float) -> None:
    problem = optimal_problem(am.random_data(5, 5, 2, trials=8, name="lp mixed"))
    batch = am.solve(problem, p)
    assert {"optimal", "infeasible"} <= set(batch.status)
    for i in range(8):
        one = am.solve(problem[i], p)
        assert one.status == batch.status[i]
        torch.testing.assert_close(batch.value[i], one.value, rtol=1e-9, atol=0, equal_nan=True)


@pytest.mark.parametrize("p", [1.5, 4.0])
def test_label_margin_of_the_head(p: float) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((4, 3, 6)), np.array([1, -1, 1, -1])
    solution = am.solve(am.label_problem(X, y, [0, 1, 2, 0]), p).raise_for_status()
    chosen = torch.from_numpy(X[np.arange(4), [0, 1, 2, 0]] * y[:, None])
    assert float((chosen @ solution.vector).min()) == pytest.approx(1.0)


def test_permutation_of_entries() -> None:
    """ℓp is not invariant under rotations, but under permutations of coordinates."""
    data = am.random_data(3, 4, 5, name="lp symmetry")
    order = torch.tensor([4, 2, 0, 1, 3])
    alpha = am.optimal_tokens(data)
    W = am.solve(am.token_problem(data.X, data.z, alpha), 3).W
    mixed = am.solve(am.token_problem(data.X[..., order], data.z[..., order], alpha), 3).W
    torch.testing.assert_close(mixed, W[order][:, order], rtol=0, atol=1e-6)
