"""Weight decay of two factors: closed forms, autograd, a conic solver."""

import math
from importlib import import_module
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import attnmargin as am
from attnmargin.training.decay import decayed_flow, factor_gradients, shrunk


def normal(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def test_gradients_are_those_of_autograd() -> None:
    A, B, M = normal(2, 4, 3), normal(2, 5, 3, seed=1), normal(2, 4, 5, seed=2)
    for x in (A, B):
        x.requires_grad_()
    loss = 0.5 * (A @ B.mT - M).square().sum() + 0.35 * (A.square().sum() + B.square().sum())
    expected = torch.autograd.grad(loss, (A, B))
    found = factor_gradients(lambda W: W - M, A.detach(), B.detach(), 0.7)
    for one, two in zip(found, expected, strict=True):
        torch.testing.assert_close(one, two, rtol=0, atol=1e-12)


def test_shrinking_minimises_the_nuclear_penalty() -> None:
    cvxpy: Any = import_module("cvxpy")
    M = normal(4, 3)
    W = cvxpy.Variable((4, 3))
    cost = 0.5 * cvxpy.sum_squares(W - M.numpy()) + 0.8 * cvxpy.normNuc(W)
    cvxpy.Problem(cvxpy.Minimize(cost)).solve(solver="CLARABEL")
    np.testing.assert_allclose(shrunk(M, 0.8).numpy(), W.value, atol=1e-6)


def test_the_flow_ends_where_a_conic_solver_does() -> None:
    """Not a multiple of the identity: L = ½ ‖X W − Y‖², whose minimum has no closed form."""
    cvxpy: Any = import_module("cvxpy")
    X, Y = normal(6, 4), normal(6, 3, seed=1)
    W = cvxpy.Variable((4, 3))
    cost = 0.5 * cvxpy.sum_squares(X.numpy() @ W - Y.numpy()) + 1.5 * cvxpy.normNuc(W)
    cvxpy.Problem(cvxpy.Minimize(cost)).solve(solver="CLARABEL")
    A, B = decayed_flow(lambda V: X.mT @ (X @ V - Y), normal(4, 3, seed=2), normal(3, 3, seed=3),
                        1.5, [100.0])  # fmt: skip
    found = A[-1] @ B[-1].mT
    np.testing.assert_allclose(found.numpy(), W.value, atol=1e-4)
    nuclear = torch.linalg.svdvals(found).sum()
    assert float(0.5 * (X @ found - Y).square().sum() + 1.5 * nuclear) <= cost.value + 1e-9
    gradient = X.mT @ (X @ found - Y)
    assert all(
        check.outcome == "holds" for check in am.theory.check_decay(gradient, A[-1], B[-1], 1.5)
    )


def test_balance_decays_exactly_whatever_the_loss() -> None:
    A, B = normal(3, 4, 2), normal(3, 5, 2, seed=1)
    times = [0.0, 0.5, 1.0, 2.0]
    found = decayed_flow(torch.sin, A, B, 0.3, times)
    gap = found[0].mT @ found[0] - found[1].mT @ found[1]
    expected = torch.tensor([math.exp(-0.6 * t) for t in times])[:, None, None, None] * gap[0]
    torch.testing.assert_close(gap, expected, rtol=1e-6, atol=1e-6)


def test_one_by_one_factors_in_closed_form() -> None:
    """L = 0: both factors decay like e^{−λt}."""
    A, B = decayed_flow(torch.zeros_like, [[2.0]], [[-1.0]], 0.25, [0.0, 4.0])
    torch.testing.assert_close(A[:, 0, 0], torch.tensor([2.0, 2.0 / math.e]).double())
    torch.testing.assert_close(B[:, 0, 0], torch.tensor([-1.0, -1.0 / math.e]).double())


def test_a_batch_is_its_loop() -> None:
    A, B, M = normal(3, 2, 2), normal(3, 2, 2, seed=1), normal(2, 2, seed=2)
    whole = decayed_flow(lambda W: W - M, A, B, 0.3, [1.0, 5.0])
    for k in range(3):
        alone = decayed_flow(lambda W: W - M, A[k], B[k], 0.3, [1.0, 5.0])
        for one, many in zip(alone, whole, strict=True):
            torch.testing.assert_close(one, many[:, k], rtol=0, atol=1e-9)


def test_the_penalty_of_the_abstract() -> None:
    """With λ(‖A‖² + ‖B‖²) the values are (s − 2λ)₊."""
    M = torch.diag(torch.tensor([1.0, 0.5, 0.2], dtype=torch.float64))
    A, B = decayed_flow(lambda W: W - M, normal(3, 3), normal(3, 3, seed=1), 2 * 0.15, [300.0])
    values = torch.linalg.svdvals(A[-1] @ B[-1].mT)
    torch.testing.assert_close(values, torch.tensor([0.7, 0.2, 0.0]).double(), rtol=0, atol=1e-6)


def test_measures_of_balance() -> None:
    K, Q = normal(3, 4, 2), normal(3, 5, 2, seed=1)
    assert bool((am.measures.nuclear_excess(K, Q) > 0).all())
    U, s, Vh = torch.linalg.svd(K @ Q.mT, full_matrices=False)
    balanced = (U * s.sqrt().unsqueeze(-2), Vh.mT * s.sqrt().unsqueeze(-2))
    assert float(am.measures.imbalance(*balanced).max()) < 1e-12
    assert float(am.measures.nuclear_excess(*balanced).abs().max()) < 1e-12


def test_bad_arguments() -> None:
    with pytest.raises(am.InputError, match="amount: got -1"):
        shrunk([[1.0]], -1.0)
    with pytest.raises(am.InputError, match="times: got"):
        decayed_flow(torch.sin, [[1.0]], [[1.0]], 0.1, [1.0, 0.5])
    with pytest.raises(am.InputError, match="decay: got -1"):
        decayed_flow(torch.sin, [[1.0]], [[1.0]], -1.0, [1.0])
    with pytest.raises(am.InputError, match="K and Q: got shapes"):
        am.measures.imbalance([[1.0, 2.0]], [[1.0]])
