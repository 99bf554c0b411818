"""Weights: compiled and plain steps agree, and stay where nothing pulls."""

import math
from typing import Any

import numpy as np
import pytest
import torch

import attnmargin as am
from attnmargin.training import weights


def test_coefficients_kernel_and_entries_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three implementations of W-GD: compiled, torch by coefficients, torch by entries."""
    data = am.random_data(5, 6, 10, trials=20, name="three")
    for options in ({}, {"normalize": False, "lr": 3.0}, {"penalty": 1e-30}):
        runs = [am.train(data, steps=500, record=500, **options)]
        monkeypatch.setattr("attnmargin.training.loop.can_compile", lambda: False)
        runs.append(am.train(data, steps=500, record=500, **options))
        monkeypatch.setattr(weights.Coefficients, "pays", staticmethod(lambda flat: False))
        runs.append(am.train(data, steps=500, record=500, **options))
        monkeypatch.undo()
        for other in runs[1:]:
            torch.testing.assert_close(other.W, runs[0].W, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    "options",
    [
        {"parameter": "KQ"},
        {"parameter": "KQ", "width": 2, "penalty": 1e-20},
        {"parameter": "KQ", "normalize": False, "lr": 1.0},
        {"parameter": "KQ", "method": "mirror", "p": 2.5},
        {"method": "mirror", "p": 1.5},
        {"method": "mirror", "p": 3.0, "penalty": 1e-10},
        {"method": "mirror", "p": 1.1, "normalize": False},
        {"method": "mirror", "p": torch.linspace(1.5, 4.0, 17)},
        {"init": torch.eye(6, dtype=torch.float64), "penalty": 1e-5},
    ],
)
def test_compiled_steps_are_those_of_torch(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few steps: normalised ones double a difference now and then."""
    data = am.random_data(4, 5, 6, trials=17, name="compiled")
    compiled = am.train(data, steps=40, record=20, **options)
    monkeypatch.setattr("attnmargin.training.loop.can_compile", lambda: False)
    plain = am.train(data, steps=40, record=20, **options)
    torch.testing.assert_close(compiled.W, plain.W, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("loss", ["exponential", "linear", "squared", "logistic"])
def test_kernel_knows_every_loss_and_masks(loss: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = am.random_data(4, 5, 8, trials=17, name="losses")
    mask = torch.ones(17, 4, 5, dtype=torch.bool)
    mask[:, 1, 3:] = False
    data = am.AttentionData(data.X, data.z, data.y, 3 * data.v, mask)
    # Around a finite minimum, as (1 − u)² has it, normalised steps are chaotic: a few only.
    steps = 20 if loss == "squared" else 200
    compiled = am.train(data, loss=loss, steps=steps, record=10)
    monkeypatch.setattr("attnmargin.training.loop.can_compile", lambda: False)
    plain = am.train(data, loss=loss, steps=steps, record=10)
    torch.testing.assert_close(compiled.W, plain.W, rtol=1e-9, atol=1e-9)


def test_mirror_with_a_single_token_or_zero_gradient_stays() -> None:
    data = am.AttentionData([[[1.0, 2.0]]], [[1.0, 1.0]], [1.0], [1.0, 0.0])
    for options in ({}, {"method": "mirror", "p": 3.0}, {"parameter": "KQ"}):
        run = am.train(data, steps=5, **options)
        torch.testing.assert_close(run.W[-1], run.W[0])


def test_float32_without_pull_or_with_a_penalty_is_finite() -> None:
    data = am.random_data(3, 4, 5, trials=2, name="single")
    single = am.AttentionData(*(x.float() for x in (data.X, data.z, data.y, data.v)))
    for options in ({"parameter": "vW", "penalty": 1e-3}, {"penalty": 1e-3}, {"parameter": "KQ"}):
        assert bool(torch.isfinite(am.train(single, steps=5, **options).W).all())
    one = am.AttentionData(single.X[:, :, :1], single.z, single.y, single.v)
    assert bool(torch.isfinite(am.train(one, steps=5).W).all())
    plain = am.train(one, steps=5, normalize=False, lr="polyak")
    assert bool(torch.isfinite(plain.W).all())


@pytest.mark.parametrize("scale", [1e-100, 1e100])
@pytest.mark.parametrize("options", [{}, {"parameter": "KQ"}, {"method": "mirror", "p": 1.5}])
def test_scales_of_tokens_do_not_stop_normalised_steps(
    scale: float, options: dict[str, Any]
) -> None:
    data = am.random_data(3, 4, 5, trials=2, name="scales")
    data = am.AttentionData(scale * data.X, data.z, data.y, data.v)
    run = am.train(data, steps=3, **options)
    moved = (run.W[-1] - run.W[0]).flatten(-2).norm(dim=-1)
    assert bool(torch.isfinite(run.W).all())
    assert bool((moved > 1e-3).all())


@pytest.mark.parametrize("record", [1, 500])
def test_weights_stay_where_the_gradient_cancels(record: int) -> None:
    """The same sequence with both labels: the loss is least for equal shares, at any distance.

    The two pulls cancel to rounding; normalising that would throw the weights away.
    """
    data = am.AttentionData([[[1.0, 0.0], [0.0, 1.0]]] * 2, [[1.0, 1.0]] * 2, [1, -1], [1.0, 0.0])
    run = am.train(data, steps=500, record=record)
    sizes = torch.linalg.matrix_norm(run.W)
    assert float(sizes[-1]) > 5.0
    assert bool((run.loss.diff() <= 1e-12).all())


@pytest.mark.parametrize(
    ("parameter", "head"), [("W", "linear"), ("W", "quadratic"), ("W", "relu"), ("vW", "linear")]
)
def test_a_query_that_sees_nothing_pulls_nowhere(parameter: str, head: str) -> None:
    """One of two queries sees no token: the other one trains alone, with half of the pull."""
    rng = np.random.default_rng(0)
    X, z, v = rng.normal(size=(1, 3, 2)), rng.normal(size=(1, 2, 2)), rng.normal(size=2)
    mask = np.array([[[True] * 3, [False] * 3]])
    both = am.AttentionData(X, z, [[1.0, 1.0]], v, mask)
    alone = am.AttentionData(X, z[:, :1], [[1.0]], v)
    heads = {
        "quadratic": am.heads.QuadraticHead(v, 0.3),
        "relu": am.heads.ReLUHead(rng.normal(size=(4, 2))),
    }
    options: dict[str, Any] = {"steps": 3, "normalize": False, "head": heads.get(head, "linear")}
    first, second = (
        am.train(data, parameter, lr=lr, **options) for data, lr in ((both, 1.0), (alone, 0.5))
    )
    torch.testing.assert_close(first.W[-1], second.W[-1])
    assert am.probabilities(both, first.W[-1])[0, 1].tolist() == [0.0, 0.0, 0.0]
    assert am.logits(both, first.W[-1])[0, 1].tolist() == [-math.inf] * 3
    torch.testing.assert_close(
        first.probability[-1], am.measures.largest_probability(both, first.W[-1])
    )


@pytest.mark.parametrize(
    "options",
    [{}, {"parameter": "KQ"}, {"method": "mirror", "p": 3.0},
     {"head": am.heads.QuadraticHead([1.0, -1.0], 0.01)}],
)  # fmt: skip
@pytest.mark.parametrize("compiled", [True, False])
def test_a_zero_query_does_not_stop_the_others(
    options: dict[str, Any], compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It pulls nowhere and never saturates; its loss is that of its mean token."""
    if not compiled:
        monkeypatch.setattr("attnmargin.training.loop.can_compile", lambda: False)
    X = [[[1.0, 0.0], [0.0, 1.0]], [[2.0, 0.0], [0.0, 1.0]]]
    both, alone = (
        am.train(am.AttentionData(X[:n], [[1.0, 0.0], [0.0, 0.0]][:n], [1] * n, [1.0, -1.0]),
                 lr=1.0, steps=400, record=400, **options)
        for n in (2, 1)
    )  # fmt: skip
    size = float(alone.W[-1].norm())
    assert float(both.W[-1].norm()) == pytest.approx(size, rel=1e-9)
    if not options:
        still = math.log1p(math.exp(-0.5))
        assert float(both.loss[-1]) == pytest.approx((float(alone.loss[-1]) + still) / 2)


def test_given_scores_of_a_query_that_sees_nothing() -> None:
    rng = np.random.default_rng(0)
    X, z, v = rng.normal(size=(2, 3, 4)), rng.normal(size=(2, 4)), rng.normal(size=4)
    data = am.AttentionData(X, z, [1.0, 1.0], v, [[True] * 3, [False] * 3])
    plain, scored = (am.train(data, steps=1, head=h) for h in ("linear", am.heads.ScoreHead(X @ v)))
    torch.testing.assert_close(plain.loss, scored.loss)
    torch.testing.assert_close(plain.W, scored.W)
