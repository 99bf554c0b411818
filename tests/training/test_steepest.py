"""Steepest descent and Adam: the formulas step by step, saturation, batches, bad arguments."""

from typing import Any

import pytest
import torch
from torch import Tensor

import attnmargin as am
from tests.formulas import plain_gradient

ETA = 0.1
NORMS: list[str | float] = ["spectral", "max", "sum", "fro", "rows", "columns", "nuc", 1.5, 3.0]


def steepest(D: Tensor, norm: str | float) -> Tensor:
    """argmax ⟨D, V⟩ over ‖V‖ ≤ 1, from the definition of each norm."""
    if norm == "max":
        return torch.sign(D)
    if norm == "sum":
        V = torch.zeros_like(D)
        V.view(-1)[D.abs().argmax()] = D.view(-1)[D.abs().argmax()].sign()
        return V
    if norm == "rows":
        return D / D.norm(dim=1, keepdim=True)
    if norm == "columns":
        return D / D.norm(dim=0, keepdim=True)
    if norm == "fro":
        return D / D.norm()
    U, _, Vh = torch.linalg.svd(D, full_matrices=False)
    if norm == "spectral":
        return U @ Vh
    if norm == "nuc":
        return torch.outer(U[:, 0], Vh[0])
    q = float(norm) / (float(norm) - 1)
    return D.sign() * D.abs() ** (q - 1) / (D.abs() ** q).sum() ** (1 - 1 / q)


def example() -> tuple[am.AttentionData, Tensor]:
    """More sequences than tokens are wide, so that gradients have full rank."""
    W = torch.randn(4, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return am.random_data(8, 5, 4, name="steepest"), W


def two_tokens() -> tuple[am.AttentionData, Tensor]:
    """One row: every gradient is a multiple of ``W = (x₁ − x₂) zᵀ``."""
    data = am.AttentionData([[[1.0, 0.2], [-0.3, 1.0]]], [[3.0, 4.0]], [1.0], [1.0, 0.0])
    return data, torch.outer(data.X[0, 0] - data.X[0, 1], data.z[0])


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("norm", NORMS)
def test_w_descends_by_the_definition(norm: str | float, normalize: bool) -> None:
    data, W = example()
    run = am.train(data, method="steepest", norm=norm, lr=ETA, steps=60, normalize=normalize,
                   init=W)  # fmt: skip
    for k in range(61):
        torch.testing.assert_close(run.W[k], W, rtol=1e-9, atol=1e-9)
        D = -plain_gradient(data, W, data.v)[0]
        V = steepest(D, norm)
        W = W + ETA * (1.0 if normalize else (D * V).sum()) * V


@pytest.mark.parametrize("norm", ["spectral", "max"])
def test_factors_descend_each_by_its_own_direction(norm: str) -> None:
    data, _ = example()
    rng = torch.Generator().manual_seed(0)
    K, Q = (torch.randn(4, 3, generator=rng, dtype=torch.float64) for _ in range(2))
    run = am.train(data, "KQ", "steepest", norm=norm, lr=ETA, steps=60, init=(K, Q))
    for k in range(61):
        torch.testing.assert_close(run.W[k], K @ Q.T, rtol=1e-9, atol=1e-9)
        D = -plain_gradient(data, K @ Q.T, data.v)[0]
        K, Q = K + ETA * steepest(D @ Q, norm), Q + ETA * steepest(D.T @ K, norm)


@pytest.mark.parametrize("nesterov", [False, True])
@pytest.mark.parametrize("normalize", [True, False])
def test_momentum_is_taken_before_the_steepest_direction(normalize: bool, nesterov: bool) -> None:
    data, W = example()
    method = am.methods.Steepest("spectral", momentum=0.8, nesterov=nesterov)
    run = am.train(data, method=method, lr=ETA, steps=60, normalize=normalize, init=W)
    M = torch.zeros_like(W)
    for k in range(61):
        torch.testing.assert_close(run.W[k], W, rtol=1e-9, atol=1e-9)
        G = -plain_gradient(data, W, data.v)[0]
        M = 0.8 * M + G
        D = G + 0.8 * M if nesterov else M
        V = steepest(D, "spectral")
        W = W + ETA * (1.0 if normalize else (D * V).sum()) * V


@pytest.mark.parametrize("eps", [1e-8, 1e-3, 0.0])
def test_adam_is_that_of_torch(eps: float) -> None:
    data, start = example()
    method = am.methods.Adam((0.7, 0.9), eps)
    run = am.train(data, method=method, lr=ETA, steps=60, init=start)
    W = torch.nn.Parameter(start.clone())
    theirs = torch.optim.Adam([W], lr=ETA, betas=(0.7, 0.9), eps=eps)
    for k in range(61):
        torch.testing.assert_close(run.W[k], W.data, rtol=1e-9, atol=1e-9)
        W.grad = plain_gradient(data, W.data, data.v)[0]
        theirs.step()


def test_adam_trains_factors_and_the_head() -> None:
    data, _ = example()
    for parameter in ("KQ", "vW"):
        start = am.train(data, parameter, steps=0).last
        run = am.train(data, parameter, "adam", lr=ETA, steps=20, init=start)
        parts = [torch.nn.Parameter(part.clone()) for part in start]
        theirs = torch.optim.Adam(parts, lr=ETA)
        for _ in range(20):
            v, W = parts if parameter == "vW" else (data.v, parts[0] @ parts[1].T)
            of_W, of_v = plain_gradient(data, W.data, v.data)
            K, Q = (part.data for part in parts) if parameter == "KQ" else (v, W)
            given = (of_v, of_W) if parameter == "vW" else (of_W @ Q, of_W.T @ K)
            for part, gradient in zip(parts, given, strict=True):
                part.grad = gradient
            theirs.step()
        for ours, part in zip(run.last, parts, strict=True):
            torch.testing.assert_close(ours, part.data, rtol=1e-9, atol=1e-9)


def test_penalties_are_part_of_the_gradient() -> None:
    data, W = example()
    run = am.train(data, method="steepest", norm="max", lr=ETA, steps=30, penalty=0.03, init=W)
    for k in range(31):
        torch.testing.assert_close(run.W[k], W, rtol=1e-9, atol=1e-9)
        W = W - ETA * torch.sign(plain_gradient(data, W, data.v)[0] + 0.06 * W)


def test_frobenius_is_gradient_descent_to_the_last_bit() -> None:
    data = am.random_data(4, 5, 6, trials=3, name="fro")
    for parameter in ("W", "KQ"):
        for normalize in (True, False):
            options: Any = {"steps": 50, "normalize": normalize}
            one = am.train(data, parameter, "steepest", norm="fro", **options)
            two = am.train(data, parameter, **options)
            assert torch.equal(one.W, two.W)


def test_sign_descent_is_adam_without_memory() -> None:
    data = am.random_data(4, 5, 6, trials=3, name="signs")
    one = am.train(data, method="steepest", norm="max", steps=1000, record=500)
    two = am.train(data, method=am.methods.Adam((0.0, 0.0), 0.0), steps=1000, record=500)
    torch.testing.assert_close(one.W, two.W, rtol=1e-12, atol=1e-12)
    assert float(one.log_gradient.max(0).values.min()) < 0


@pytest.mark.parametrize("norm", ["spectral", "max"])
def test_saturated_runs_keep_their_direction(norm: str) -> None:
    data, W = two_tokens()
    for size in (1.0, 1e3, 1e6):
        for normalize in (True, False):
            run = am.train(data, method="steepest", norm=norm, init=size * W, steps=1,
                           normalize=normalize)  # fmt: skip
            moved = run.W[1] - run.W[0]
            if normalize:
                unit = am.norms.as_norm(norm).steepest(W)
                torch.testing.assert_close(moved, 0.1 * unit, rtol=1e-9, atol=1e-9 * size)
            elif size > 1.0:  # the gradient is zero in float64
                assert float(run.log_gradient[0]) < -745
                assert not bool(moved.any())


@pytest.mark.parametrize("norm", ["spectral", "max", "rows"])
def test_training_goes_on_where_gradients_vanish(norm: str) -> None:
    data = am.random_data(4, 5, 6, name="steepest far")
    run = am.train(data, method="steepest", norm=norm, steps=400, record=200, lr=20.0)
    assert float(run.log_gradient[-1]) < -745
    length = am.norms.as_norm(norm).value(run.W)
    assert float(length[2]) > 1.8 * float(length[1])


def test_adam_stops_where_gradients_are_below_epsilon_and_only_there() -> None:
    data, W = two_tokens()
    W = 100.0 * W
    for eps, moves in ((1e-8, False), (0.0, True)):
        method = am.methods.Adam(eps=eps)
        run = am.train(data, method=method, init=W, steps=20, record=20)
        assert float(run.log_gradient[0]) < -200
        assert bool((run.W[1] - run.W[0]).abs().max() > 0.1) == moves


def test_moments_span_a_thousand_orders_of_magnitude() -> None:
    """A gradient that falls by e^{-50} a step: m and √v then fall by β₁ and √β₂ a step."""
    from attnmargin.training.steepest import AdamRule

    rule, x = AdamRule((0.5, 0.25), 0.0, None), torch.zeros(1, 2, 2, dtype=torch.float64)
    D, one = torch.ones_like(x), torch.ones(1, 1, 1, dtype=torch.float64)
    moved = [rule.step(x, D, -50.0 * k * one, one) for k in range(60)]
    # m = (1 − β₁) β₁ᵏ, √v = √(1 − β₂) √β₂ᵏ = √(3/4) / 2ᵏ; the hats tend to one.
    torch.testing.assert_close(moved[-1], D / 3**0.5, rtol=1e-12, atol=0)


@pytest.mark.parametrize(
    "options",
    [
        {"norm": "spectral"},
        {"norm": "max", "parameter": "KQ"},
        {"norm": "spectral", "parameter": "vW"},
        {"norm": "nuc", "normalize": False},
        {"method": am.methods.Steepest("columns", momentum=0.9)},
        {"method": "adam"},
        {"method": "adam", "parameter": "KQ", "lr": am.methods.Decaying(0.1)},
    ],
)
def test_batch_equals_loop(options: dict[str, Any]) -> None:
    data = am.random_data(6, 5, 4, trials=3, name="loop of steepest")
    options = {"method": "steepest", "steps": 50, "record": 25, **options}
    start = am.train(data, options.get("parameter", "W"), steps=0).last
    batch = am.train(data, init=start, **options)
    for i in range(3):
        alone = am.train(data[i], init=tuple(x[i] for x in start), **options)
        torch.testing.assert_close(batch.W[:, i], alone.W, rtol=1e-10, atol=1e-10)


def test_same_seed_same_bits_and_dtype_is_kept() -> None:
    data = am.random_data(6, 5, 4, trials=3, name="bits of steepest")
    for method in (am.methods.Steepest("spectral", 0.9), am.methods.Adam()):
        one, two = (am.train(data, "KQ", method, steps=30) for _ in range(2))
        assert torch.equal(one.W, two.W)
    single = am.AttentionData(*(x.float() for x in (data.X, data.z, data.y, data.v)))
    assert am.train(single, method="steepest", norm="max", steps=5).W.dtype == torch.float32
    assert am.train(single, method="adam", steps=5).W.dtype == torch.float32


def test_steps_have_length_lr_in_their_norm_and_decay() -> None:
    data, _ = example()
    for norm in NORMS:
        run = am.train(data, method="steepest", norm=norm, steps=9, lr=am.methods.Decaying(0.6))
        lengths = am.norms.as_norm(norm).value(run.W.diff(dim=0))
        expected = 0.6 / torch.arange(1, 10, dtype=torch.float64).sqrt()
        torch.testing.assert_close(lengths, expected)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "steepest"}, "norm: got None with method 'steepest'; needs a norm"),
        ({"method": "steepest", "norm": "odd"}, "norm: got 'odd'"),
        ({"norm": "max"}, "norm: got 'max' with method 'gd'; needs method 'steepest'"),
        ({"method": "adam", "norm": "max"}, "norm: got 'max' with method 'adam'"),
        ({"method": "sgd"}, "method: got 'sgd'; needs 'gd', 'mirror', 'steepest', 'adam'"),
        ({"method": "steepest", "norm": "max", "p": 3.0}, "p: got a power other than 2"),
        ({"method": "adam", "p": 3.0}, "p: got a power other than 2 with method Adam("),
        ({"method": "adam", "lr": "auto"}, "lr: got 'auto'; needs plain descent"),
        ({"method": "adam", "lr": am.Guarded(0.1)}, "lr: got a guarded rate"),
        ({"method": "steepest", "norm": "max", "fixed": torch.eye(4)[None].double()},
         "fixed: got directions; needs gradient descent on W"),
    ],
)  # fmt: skip
def test_bad_arguments(options: dict[str, Any], words: str) -> None:
    with pytest.raises(am.InputError) as caught:
        am.train(am.random_data(2, 3, 4, name="bad"), steps=2, **options)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda: am.methods.Steepest("max", momentum=1.0), "momentum: got 1.0"),
        (lambda: am.methods.Steepest("max", nesterov=True), "nesterov: got True with momentum 0"),
        (lambda: am.methods.Steepest("odd"), "norm: got 'odd'"),
        (lambda: am.methods.Adam((0.9, 1.0)), "betas: got 1.0; needs a number from 0 to below 1"),
        (lambda: am.methods.Adam(0.9), "betas: got 0.9; needs a pair"),
        (lambda: am.methods.Adam(eps=-1.0), "eps: got -1.0"),
        (lambda: am.methods.Decaying(0.1, -1.0), "power: got -1.0"),
    ],
)
def test_bad_settings(made: Any, words: str) -> None:
    with pytest.raises(am.InputError) as caught:
        made()
    assert words in str(caught.value)
