"""Training: the papers' formulas step by step, batches, and what is refused."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import attnmargin as am
from tests.formulas import plain_gradient
from tests.problems import optimal_problem

ETA = 0.1


def mirror_step(w: Tensor, g: Tensor, p: float) -> Tensor:
    up = w.abs() ** (p - 1) * w.sign() - ETA * g
    return up.abs() ** (1 / (p - 1)) * up.sign()


def dual_norm(g: Tensor, p: float) -> Tensor:
    return (g.abs() ** (p / (p - 1))).sum() ** ((p - 1) / p)


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("p", [2.0, 1.75, 3.0])
def test_w_descends_as_in_the_papers(p: float, normalize: bool) -> None:
    """W-GD for p = 2, ℓp-AttGD else."""
    data = am.random_data(4, 5, 6, name="formula")
    W = torch.randn(6, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    method = "gd" if p == 2.0 else "mirror"
    run = am.train(data, method=method, p=p, lr=ETA, steps=60, normalize=normalize, init=W)
    for k in range(60):
        torch.testing.assert_close(run.W[k], W, rtol=1e-9, atol=1e-9)
        g = plain_gradient(data, W, data.v)[0]
        W = mirror_step(W, g / dual_norm(g, p) if normalize else g, p)


@pytest.mark.parametrize("normalize", [False, True])
def test_factors_descend_as_in_paper_a(normalize: bool) -> None:
    """KQ-GD; each factor's gradient is normalised by its own norm."""
    data = am.random_data(4, 5, 6, name="formula")
    rng = torch.Generator().manual_seed(0)
    K, Q = (torch.randn(6, 3, generator=rng, dtype=torch.float64) for _ in range(2))
    run = am.train(data, "KQ", lr=ETA, steps=60, normalize=normalize, init=(K, Q))
    for k in range(61):
        torch.testing.assert_close(run.W[k], K @ Q.T, rtol=1e-9, atol=1e-9)
        g = plain_gradient(data, K @ Q.T, data.v)[0]
        of_K, of_Q = g @ Q, g.T @ K
        if normalize:
            of_K, of_Q = of_K / of_K.norm(), of_Q / of_Q.norm()
        K, Q = K - ETA * of_K, Q - ETA * of_Q
    torch.testing.assert_close(run.last[0] @ run.last[1].T, run.W[-1])


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("p", [1.75, 2.0, 3.0])
def test_head_and_weights_descend_as_in_paper_b(p: float, normalize: bool) -> None:
    """ℓp-JointGD."""
    data = am.random_data(4, 5, 6, name="formula")
    W, v = torch.zeros(6, 6, dtype=torch.float64), torch.zeros(6, dtype=torch.float64)
    method = "gd" if p == 2.0 else "mirror"
    run = am.train(data, "vW", method, p=p, lr=ETA, steps=60, normalize=normalize)
    for k in range(60):
        torch.testing.assert_close(run.W[k], W, rtol=1e-9, atol=1e-9)
        torch.testing.assert_close(run.v[k], v, rtol=1e-9, atol=1e-9)
        of_W, of_v = plain_gradient(data, W, v)
        if normalize:
            size = dual_norm(of_W, p)
            of_W, of_v = of_W / (size if size > 0 else 1.0), of_v / dual_norm(of_v, p)
        W, v = mirror_step(W, of_W, p), mirror_step(v, of_v, p)


@pytest.mark.parametrize("parameter", ["W", "KQ", "vW"])
def test_gradients_of_all_parts_are_those_of_autograd(parameter: str) -> None:
    """One plain step with rate one is the gradient, to 1e-12 of its size."""
    data = am.random_data(4, 5, 6, name="parts")
    rng = torch.Generator().manual_seed(0)
    A, B = (torch.randn(6, 6, generator=rng, dtype=torch.float64) for _ in range(2))
    init: Any = {"W": A, "KQ": (A, B), "vW": (B[0], A)}[parameter]
    run = am.train(data, parameter, lr=1.0, steps=1, normalize=False, init=init)
    of_W, of_v = plain_gradient(data, A @ B.T if parameter == "KQ" else A, data.v)
    if parameter == "vW":
        of_W, of_v = plain_gradient(data, A, B[0])
    expected = {"W": (of_W,), "KQ": (of_W @ B, of_W.T @ A), "vW": (of_v, of_W)}[parameter]
    start = (init,) if parameter == "W" else init
    for before, after, gradient in zip(start, run.last, expected, strict=True):
        error = (before - after - gradient).norm() / gradient.norm()
        assert float(error) < 1e-12


@pytest.mark.parametrize("parameter", ["W", "KQ"])
def test_penalty_as_in_the_formula(parameter: str) -> None:
    data = am.random_data(4, 5, 6, name="formula")
    start = am.train(data, "KQ", steps=0)
    init: Any = start.last if parameter == "KQ" else None
    run = am.train(data, parameter, lr=ETA, steps=40, normalize=False, penalty=0.03, init=init)
    W = torch.zeros(6, 6, dtype=torch.float64)
    K, Q = start.last
    for k in range(40):
        torch.testing.assert_close(run.W[k], W if parameter == "W" else K @ Q.T)
        g = plain_gradient(data, run.W[k], data.v)[0]
        W = W - ETA * (g + 0.06 * W)
        K, Q = K - ETA * (g @ Q + 0.06 * K), Q - ETA * (g.T @ K + 0.06 * Q)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"parameter": "KQ", "width": 3},
        {"method": "mirror", "p": 3.0},
        {"parameter": "vW"},
        {"normalize": False, "lr": "auto"},
        {"normalize": False, "lr": "polyak"},
        {"penalty": 1e-40},
    ],
)
def test_batch_equals_loop(options: dict[str, Any]) -> None:
    data = am.random_data(4, 5, 6, trials=4, name="loop")
    start = am.train(data, steps=0, **options).last
    batch = am.train(data, steps=50, record=25, init=start, **options)
    for i in range(4):
        own = am.AttentionData(data.X[i], data.z[i], data.y[i], data.v[i])
        alone = am.train(own, steps=50, record=25, init=tuple(x[i] for x in start), **options)
        torch.testing.assert_close(batch.W[:, i], alone.W, rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(batch.loss[:, i], alone.loss, rtol=1e-12, atol=0)


def test_same_seed_same_bits() -> None:
    data = am.random_data(4, 5, 6, trials=40, name="bits")
    for parameter in ("W", "KQ"):
        one, two = (am.train(data, parameter, steps=100, record=50) for _ in range(2))
        assert torch.equal(one.W, two.W)
    other = am.train(data, "KQ", steps=100, record=50, seed=1)
    assert not torch.equal(other.W, two.W)


def test_float32_works_and_says_what_it_loses() -> None:
    data = am.random_data(6, 8, 10, trials=5, name="single")
    single = am.AttentionData(*(x.float() for x in (data.X, data.z, data.y, data.v)))
    run, reference = am.train(single, steps=300, record=300), am.train(data, steps=300, record=300)
    assert run.W.dtype == torch.float32
    assert bool((am.correlation(run.W[-1].double(), reference.W[-1]) > 0.999).all())
    assert "float32: logits are rounded by 1e-07" in run.notes[0]
    assert reference.notes == ()


def test_nonlinear_heads_train() -> None:
    data = am.random_data(3, 4, 8, trials=3, name="heads")
    V = torch.randn(8, 8, generator=torch.Generator().manual_seed(0)).double()
    for head in (am.heads.ReLUHead(V), am.heads.QuadraticHead(data.v, 0.1), lambda o: o.sum(-1)):
        run = am.train(data, head=head, steps=50, record=50)
        assert bool((run.loss[-1] < run.loss[0]).all())


def test_one_row_in_closed_form() -> None:
    """n = 1, T = 2: every step of normalised descent goes along (x₁ − x₂) zᵀ."""
    data = am.AttentionData([[[1.0, 0.0], [0.0, 1.0]]], [[3.0, 4.0]], [1.0], [1.0, 0.0])
    run = am.train(data, steps=10)
    unit = np.outer([1.0, -1.0], [3.0, 4.0]) / (5 * np.sqrt(2))
    np.testing.assert_allclose(run.W[-1].numpy(), 10 * ETA * unit, rtol=1e-12)
    assert optimal_problem(data).M == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"parameter": "X"}, "parameter: got 'X'"),
        ({"method": "newton"}, "method: got 'newton'"),
        ({"p": 3.0}, "needs method='mirror'"),
        ({"method": "mirror", "p": 1.0}, "p: got 1; needs finite powers"),
        ({"method": "mirror", "p": [1.5, 2.0]}, "p: got shape (2,)"),
        ({"lr": -1.0}, "lr: got -1"),
        ({"lr": "fast"}, "lr: got 'fast'"),
        ({"lr": "auto"}, "normalize=False"),
        ({"lr": [0.1, 0.1]}, "lr: got shape (2,)"),
        ({"steps": -1}, "steps: got -1"),
        ({"record": 0}, "record: got 0"),
        ({"penalty": -1.0}, "penalty: got -1"),
        ({"init": [[1.0]]}, "init: got shape (1, 1)"),
        ({"parameter": "KQ", "init": [[1.0]]}, "a pair (K, Q)"),
        ({"parameter": "KQ", "width": 0}, "width: got 0"),
        ({"parameter": "vW", "head": lambda o: o.sum(-1)}, "the linear head, trained"),
    ],
)
def test_bad_arguments(options: dict[str, Any], words: str) -> None:
    data = am.random_data(2, 3, 4, name="bad")
    with pytest.raises(am.InputError) as caught:
        am.train(data, **{"steps": 2, **options})
    assert words in str(caught.value)
