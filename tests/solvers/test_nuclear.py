"""The nuclear norm: certificates, a second implementation, limits and hard input."""

import numpy as np
import pytest
import torch

import attnmargin as am
from tests.problems import HARD, optimal_problem, planted_contradiction, random_problem
from tests.problems import MORE_SHAPES as SHAPES


def test_one_pair_in_closed_form() -> None:
    """One row has rank one: the nuclear solution is the Frobenius solution."""
    problem = am.token_problem([[[3.0, 1.0], [1.0, 2.0]]], [[0.5, -2.0]], [0])
    torch.testing.assert_close(am.solve(problem, "nuc").W, am.solve(problem).W, rtol=0, atol=1e-9)


@pytest.mark.parametrize("d", [3, 256, 512])
def test_one_entry_at_least_one(d: int) -> None:
    """Others called this infeasible, or answered zero (cvxpy issue 274, scs issue 64)."""
    left, right = np.eye(d)[[1]], np.eye(d)[[2]]
    solution = am.solve(am.margin_problem(left, right), "nuc")
    assert solution.status == "optimal"
    assert float(solution.value) == pytest.approx(1.0, abs=1e-9)
    assert float(solution.W[1, 2]) == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("distribution", ["sphere", "gaussian"])
@pytest.mark.parametrize("self_attention", [False, True])
def test_random_instances_are_certified(
    shape: tuple[int, int, int], distribution: str, self_attention: bool
) -> None:
    """36 instances in each of 28 settings: 1,008."""
    problem = random_problem(shape, 36, distribution, self_attention)
    solution = am.solve(problem, "nuc")
    assert (solution.status == am.solve(problem).status).all()
    optimal = torch.from_numpy(solution.status == "optimal")
    assert float(solution.certificate.gap[optimal].max()) <= 1e-9
    # Lemma 1 of paper A, and ‖W‖_F ≤ ‖W‖_* for the shortest of each kind.
    assert int(solution.rank.max()) <= shape[0]
    assert bool((am.solve(problem).value[optimal] <= solution.value[optimal] * (1 + 1e-9)).all())


@pytest.mark.parametrize("seed", range(4))
def test_values_agree_with_a_general_solver(seed: int) -> None:
    data = am.random_data(3, 4, 4, name="nuclear reference", seed=seed)
    chosen = torch.nn.functional.one_hot(am.optimal_tokens(data), 4).bool()
    chosen[0, :2] = seed % 2 == 1 or bool(chosen[0, :2].all())  # a set, so an equality row
    chosen[0, 2] |= ~chosen[0].any()
    problem = am.token_problem(data.X, data.z, chosen)
    solution = am.solve(problem, "nuc").raise_for_status()
    reference = am.solve(problem, "nuc", method="reference")
    assert float(solution.value) == pytest.approx(float(reference.value), rel=1e-7)


@pytest.mark.parametrize("method", ["interior", "lockstep"])
@pytest.mark.parametrize("name", HARD)
def test_hard_inputs(name: str, method: str) -> None:
    make, expected = HARD[name]
    assert am.solve(make(), "nuc", method=method).status == expected


@pytest.mark.parametrize("norm", ["nuc", 1.25, 3.0])
def test_support_holds_every_row_with_a_multiplier(norm: str | float) -> None:
    solution = am.solve(optimal_problem(am.random_data(5, 5, 8, trials=20, name="support")), norm)
    assert bool(solution.support[solution.dual > 1e-4].all())
    slack = solution.problem.apply(solution.W) - 1.0
    assert not bool(solution.support[slack > 1e-3].any())


def test_infeasible_members_have_the_same_proof_in_every_norm() -> None:
    problem, proof = planted_contradiction(3, 4, 8, 1)
    solution = am.solve(problem, "nuc")
    assert solution.status == "infeasible"
    torch.testing.assert_close(solution.dual, proof / proof.sum(), rtol=1e-8, atol=1e-10)


def test_rotation() -> None:
    data = am.random_data(3, 4, 5, name="nuclear symmetry")
    rng = np.random.default_rng(0)
    U, V = (torch.from_numpy(np.linalg.qr(rng.standard_normal((5, 5)))[0]) for _ in range(2))
    alpha = am.optimal_tokens(data)
    W = am.solve(am.token_problem(data.X, data.z, alpha), "nuc").W
    turned = am.solve(am.token_problem(data.X @ U, data.z @ V, alpha), "nuc").W
    torch.testing.assert_close(turned, U.T @ W @ V, rtol=0, atol=1e-6)


def test_batch_equals_loop_with_infeasible_members() -> None:
    problem = optimal_problem(am.random_data(5, 5, 2, trials=12, name="nuclear mixed"))
    batch = am.solve(problem, "nuc")
    assert {"optimal", "infeasible"} <= set(batch.status)
    for i in range(12):
        one = am.solve(problem[i], "nuc")
        assert one.status == batch.status[i]
        torch.testing.assert_close(batch.value[i], one.value, rtol=1e-9, atol=0, equal_nan=True)


@pytest.mark.parametrize("batch", [(0,), (2, 0), (2, 3)])
def test_any_batch_shape(batch: tuple[int, ...]) -> None:
    X, z = np.random.default_rng(0).standard_normal((2, *batch, 3, 4, 4))
    problem = am.token_problem(X, z[..., 0, :], np.zeros((*batch, 3), int))
    solution = am.solve(problem, "nuc").raise_for_status()
    assert solution.W.shape == (*batch, 4, 4)
    assert solution.value.shape == batch


def test_float32_in_float32_out() -> None:
    problem = optimal_problem(am.random_data(6, 8, 10, trials=3, name="nuclear single"))
    solution = am.solve(problem.as_dtype(torch.float32), "nuc")
    assert solution.W.dtype == torch.float32
    assert (solution.status == "optimal").all()


def test_a_method_of_another_norm_is_refused() -> None:
    problem = optimal_problem(am.random_data(2, 3, 4))
    needs = "one of auto, interior, lockstep, fused, working-set, reference"
    with pytest.raises(am.InputError, match=needs):
        am.solve(problem, "nuc", method="active-set")
