"""Softmax attention: gradients against autograd, and exact directions in saturation."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import attnmargin as am
from attnmargin.attention.losses import LOSSES, as_loss

LOSS_FUNCTIONS = {
    "logistic": lambda u: torch.nn.functional.softplus(-u),
    "exponential": lambda u: torch.exp(-u),
    "linear": lambda u: -u,
    "squared": lambda u: (1 - u) ** 2,
    "log": lambda u: -torch.log(u),
}


def plain_loss(data: am.AttentionData, W: Tensor, head: Any, loss: str) -> Tensor:
    """The papers' formula, term by term, for one trial."""
    total = W.new_zeros(())
    for i in range(data.n):
        s = torch.softmax(data.X[i] @ W @ data.z[i], 0)
        total = total + LOSS_FUNCTIONS[loss](data.y[i] * head(data.X[i].T @ s))
    return total / data.n


def by_autograd(data: am.AttentionData, W: Tensor, head: Any, loss: str) -> Tensor:
    at = W.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(plain_loss(data, at, head, loss), at)
    return gradient


def true_gradient(*arguments: Any) -> Tensor:
    G, log_scale = am.gradient(*arguments)
    return G * log_scale.exp()[..., None, None]


@pytest.mark.parametrize("loss", list(LOSSES))
def test_linear_head_agrees_with_autograd(loss: str) -> None:
    data = am.random_data(4, 5, 6, name="autograd")
    if loss == "log":
        data = am.AttentionData(data.X.abs(), data.z, [1, 1, 1, 1], data.v.abs())
    W = torch.randn(6, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    expected = by_autograd(data, W, lambda o: o @ data.v, loss)
    torch.testing.assert_close(true_gradient(data, W, "linear", loss), expected, rtol=1e-12, atol=0)


def test_squared_loss_beyond_its_minimum() -> None:
    """(1 − u)² rises for u > 1: the gradient turns around."""
    data = am.random_data(4, 5, 6, name="autograd")
    data = am.AttentionData(data.X, data.z, data.y, 20 * data.v)
    W = torch.eye(6, dtype=torch.float64)
    expected = by_autograd(data, W, lambda o: o @ data.v, "squared")
    torch.testing.assert_close(
        true_gradient(data, W, "linear", "squared"), expected, rtol=1e-12, atol=0
    )


@pytest.mark.parametrize("kind", ["relu", "quadratic", "function"])
def test_other_heads_agree_with_autograd(kind: str) -> None:
    data = am.random_data(4, 5, 6, name="autograd")
    rng = torch.Generator().manual_seed(1)
    V = torch.randn(7, 6, generator=rng, dtype=torch.float64)
    functions = {
        "relu": lambda o: torch.relu(o @ V.T).sum(-1),
        "quadratic": lambda o: o @ data.v - 0.7 * (o * o).sum(-1),
        "function": lambda o: torch.tanh(o @ V.T).sum(-1),
    }
    heads = {
        "relu": am.heads.ReLUHead(V),
        "quadratic": am.heads.QuadraticHead(data.v, 0.7),
        "function": functions["function"],
    }
    W = torch.randn(6, 6, generator=rng, dtype=torch.float64)
    expected = by_autograd(data, W, functions[kind], "logistic")
    torch.testing.assert_close(
        true_gradient(data, W, heads[kind]), expected, rtol=1e-12, atol=1e-17
    )


def test_cross_entropy_agrees_with_autograd() -> None:
    data = am.random_data(4, 5, 6, name="autograd")
    rng = torch.Generator().manual_seed(1)
    C, W = (torch.randn(6, 6, generator=rng, dtype=torch.float64) for _ in range(2))
    labels = torch.tensor([0, 3, 5, 3])
    at = W.clone().requires_grad_()
    s = torch.softmax(torch.einsum("ntd,de,ne->nt", data.X, at, data.z), -1)
    o = torch.einsum("nt,ntd->nd", s, data.X)
    loss = torch.nn.functional.cross_entropy(o @ C.T, labels)
    (expected,) = torch.autograd.grad(loss, at)
    head = am.heads.VocabularyHead(C, labels)
    torch.testing.assert_close(true_gradient(data, W, head), expected, rtol=1e-12, atol=1e-17)


def test_masks_sequences_and_causal_forms_agree_with_autograd() -> None:
    """Several queries of a sequence, each with tokens of its own."""
    rng = np.random.default_rng(0)
    X, z = rng.standard_normal((3, 4, 5)), rng.standard_normal((3, 4, 5))
    y, v = rng.choice([-1.0, 1.0], (3, 4)), rng.standard_normal(5)
    mask = np.broadcast_to(np.tril(np.ones((4, 4), bool)), (3, 4, 4)).copy()
    data = am.AttentionData(X, z, y, v, mask)
    W = torch.from_numpy(rng.standard_normal((5, 5)))
    at = W.clone().requires_grad_()
    a = torch.einsum("ntd,de,nke->nkt", data.X, at, data.z)
    s = torch.softmax(a.masked_fill(~torch.from_numpy(mask), -torch.inf), -1)
    u = data.y * torch.einsum("nkt,ntd,d->nk", s, data.X, data.v)
    (expected,) = torch.autograd.grad(torch.nn.functional.softplus(-u).mean(), at)
    torch.testing.assert_close(true_gradient(data, W), expected, rtol=1e-12, atol=1e-17)
    torch.testing.assert_close(am.probabilities(data, W), s.detach())


def test_direction_is_exact_when_probabilities_are_not_representable() -> None:
    """Logits −R apart: the gradient is e^{−R} times what extended logarithms give."""
    data = am.random_data(3, 4, 5, name="saturated")
    solution = am.solve(am.token_problem(data.X, data.z, am.optimal_tokens(data)))
    W = 5000.0 * solution.W
    G, log_scale = am.gradient(data, W)
    a, gamma = am.logits(data, W), am.scores(data)
    opt = am.optimal_tokens(data)
    expected = torch.zeros(5, 5, dtype=torch.float64)
    for i in range(3):
        best = a[i, opt[i]]
        kappa = torch.sigmoid(-gamma[i, opt[i]])
        for t in range(4):
            if t != opt[i]:
                weight = torch.exp(a[i, t] - best - log_scale) * kappa / 3
                rise = gamma[i, opt[i]] - gamma[i, t]
                expected -= weight * rise * torch.outer(data.X[i, opt[i]] - data.X[i, t], data.z[i])
    assert float(log_scale) < -4900
    torch.testing.assert_close(G, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", list(LOSSES))
def test_slope_of_losses(name: str) -> None:
    u = torch.tensor([0.3, 0.9, 2.0, 5.0], dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(LOSS_FUNCTIONS[name](u).sum(), u)
    loss, at = as_loss(name), u.detach()
    torch.testing.assert_close(-loss.falls(at) * loss.log_slope(at).exp(), slope)
    torch.testing.assert_close(loss.value(at), LOSS_FUNCTIONS[name](at))


def test_bad_arguments() -> None:
    data = am.random_data(2, 3, 4)
    eye = torch.eye(4, dtype=torch.float64)
    cases: list[tuple[Any, str]] = [
        (lambda: am.logits(data, eye[:3, :3]), "W: got shape"),
        (lambda: am.gradient(data, eye, loss="hinge"), "loss: got 'hinge'"),
        (lambda: am.gradient(data, eye, head="cubic"), "head: got 'cubic'"),
        (lambda: am.gradient(data, eye, head=lambda o: o), "head: got a Tensor"),
        (lambda: am.heads.VocabularyHead(torch.eye(3), [0, 3]), "labels: got classes from 0 to 3"),
    ]
    for call, words in cases:
        with pytest.raises(am.InputError, match=words):
            call()


def test_tied_tokens_do_not_hide_the_gradient() -> None:
    """Two equal tokens share the probability; the third one still pushes, at e^{−2000}."""
    data = am.AttentionData([[[1.0, 0], [1.0, 0], [0, 1.0]]], [[1.0, 0]], [1.0], [1.0, 0])
    W = 1000.0 * torch.tensor([[1.0, 0.0], [-1.0, 0.0]], dtype=torch.float64)
    G, log_scale = am.gradient(data, W)
    torch.testing.assert_close(G / G.norm(), torch.tensor([[-1.0, 0], [1, 0]]).double() / 2**0.5)
    assert float(log_scale) < -1999


def test_a_loss_of_ones_own() -> None:
    """|1 − u|³ rises for u > 1; nothing but its methods tells."""

    class Cubic(am.losses.Loss):
        def value(self, u: Tensor) -> Tensor:
            return (1 - u).abs() ** 3

        def log_slope(self, u: Tensor) -> Tensor:
            return (3 * (1 - u) ** 2).log()

        def falls(self, u: Tensor) -> Tensor:
            return torch.where(u < 1, 1.0, -1.0).to(u)

        def constants(self, largest: Tensor) -> tuple[Tensor, Tensor]:
            raise NotImplementedError

    data = am.AttentionData([[[1.0, 0], [3.0, 0]]], [[1.0, 0]], [1.0], [1.0, 0])
    W = torch.eye(2, dtype=torch.float64)
    linear = true_gradient(data, W, "linear", Cubic())
    torch.testing.assert_close(linear, true_gradient(data, W, lambda o: o[..., 0], Cubic()))
    run = am.train(data, loss=Cubic(), steps=20, lr=0.1)
    assert float(run.loss[-1]) < float(run.loss[0])


def test_a_sequence_of_which_nothing_is_visible_pulls_nothing() -> None:
    data = am.random_data(3, 4, 5, trials=2, name="hidden")
    mask = torch.ones(2, 3, 4, dtype=torch.bool)
    mask[:, 1] = False
    hidden = am.AttentionData(data.X, data.z, data.y, data.v, mask)
    X, z, y = (x[:, [0, 2]] for x in (data.X, data.z, data.y))
    rest = am.AttentionData(X, z, y, data.v)
    for options in ({}, {"parameter": "KQ"}, {"parameter": "vW"}):
        one, two = (am.train(x, steps=20, record=20, **options) for x in (hidden, rest))
        torch.testing.assert_close(one.W, two.W)


def test_an_empty_batch() -> None:
    data = am.random_data(3, 4, 5, trials=0)
    assert am.probabilities(data, torch.zeros(5, 5).double()).shape == (0, 3, 4)
    assert am.gradient(data, torch.zeros(5, 5).double())[0].shape == (0, 5, 5)
    for options in ({}, {"parameter": "KQ"}, {"parameter": "vW"}, {"method": "mirror", "p": 3.0}):
        assert am.train(data, steps=3, **options).W.shape == (4, 0, 5, 5)
