"""Prompt attention: p as the first column of W, its SVM and the relaxed one."""

from typing import Any

import numpy as np
import pytest
import torch

import attnmargin as am
from attnmargin.base.errors import InputError

D = 4


def drawn() -> tuple[am.AttentionData, torch.Tensor]:
    data = am.random_data(2, 3, D, 2, name="prompt")
    key = torch.randn(D, D, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return data, key


def test_steps_are_those_of_autograd() -> None:
    """L = (1/n) Σ log(1 + e^{−y vᵀ Xᵀ softmax(X W_key p)}), normalised steps of p."""
    data, key = drawn()
    run = am.train(am.theory.prompt_data(data.X, key, data.y, data.v), lr=0.3, steps=8)
    assert data.y is not None
    assert data.v is not None
    for b in range(2):
        p = torch.zeros(D, dtype=torch.float64, requires_grad=True)
        for k in range(8):
            torch.testing.assert_close(run.W[k, b, :, 0], p.detach(), rtol=1e-12, atol=1e-12)
            s = torch.softmax(data.X[b] @ key @ p, -1)
            output = torch.einsum("nt,ntd,d->n", s, data.X[b], data.v[b])
            loss = torch.nn.functional.softplus(-data.y[b] * output).mean()
            torch.testing.assert_close(run.loss[k, b], loss.detach(), rtol=1e-12, atol=0)
            (g,) = torch.autograd.grad(loss, p)
            p = (p - 0.3 * g / g.norm()).detach().requires_grad_()
        assert not bool(run.W[:, b, :, 1:].any())


@pytest.mark.parametrize("relaxed", [False, True])
def test_solutions_are_those_of_a_conic_solver(relaxed: bool) -> None:
    cp: Any = pytest.importorskip("cvxpy")
    data, key = drawn()
    keys = data.X @ key
    selection = torch.tensor([[0, 2], [1, 1]])
    needed = torch.tensor([[True, False], [False, True]]) if relaxed else None
    solution = am.solve(am.prompt_problem(keys, selection, needed))
    assert bool((solution.certificate.gap < 1e-12).all())
    for b in range(2):
        p = cp.Variable(D)
        rows = [
            (keys[b, i, selection[b, i]] - keys[b, i, t]).numpy() @ p
            >= (1.0 if needed is None or needed[b, i] else 0.0)
            for i in range(2) for t in range(3) if t != selection[b, i]
        ]  # fmt: skip
        cp.Problem(cp.Minimize(cp.sum_squares(p)), rows).solve(solver="CLARABEL")
        np.testing.assert_allclose(solution.W[b, :, 0], p.value, atol=1e-6)


def test_relaxing_never_makes_p_longer() -> None:
    data, key = drawn()
    whole = am.solve(am.prompt_problem(data.X @ key, [0, 0]))
    relaxed = am.solve(am.prompt_problem(data.X @ key, [0, 0], torch.tensor([True, False])))
    assert bool((relaxed.value <= whole.value + 1e-12).all())
    assert float(relaxed.value[1]) < 0.7 * float(whole.value[1])


def test_a_batch_is_its_loop() -> None:
    data, key = drawn()
    batch = am.theory.prompt_data(data.X, key, data.y, data.v)
    assert data.y is not None
    assert data.v is not None
    assert batch.v is not None
    for b in range(2):
        one = am.theory.prompt_data(data.X[b], key, data.y[b], data.v[b])
        torch.testing.assert_close(one.X, batch.X[b])
        torch.testing.assert_close(one.v, batch.v[b])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda X: am.theory.prompt_data(X, torch.zeros(D, D), [1, 1], [1.0] * D),
            "W_key: got .* without an",
        ),
        (
            lambda X: am.theory.prompt_data(X, torch.eye(3), [1, 1], [1.0] * D),
            r"W_key: got shape \(3, 3\)",
        ),
        (
            lambda X: am.prompt_problem(X, [0, 0], torch.ones(2)),
            r"needed: got torch.float32 of shape",
        ),
        (lambda X: am.prompt_problem(X, [0, 9]), "selection"),
    ],
)
def test_bad_input(call: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        call(drawn()[0].X[0])
