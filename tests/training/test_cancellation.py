"""Normalised steps where the coefficients of the gradient cancel."""

import numpy as np
import pytest
import torch

import attnmargin as am
from attnmargin.training import loop


@pytest.fixture(params=["compiled", "torch"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Train with the compiled kernel, and with torch alone."""
    if request.param == "torch":
        monkeypatch.setattr(loop, "can_compile", lambda: False)
    return str(request.param)


def test_tokens_that_are_nearly_equal_still_pull(way: str) -> None:
    """Closed form: in one dimension a normalised step is ± lr, however small the gradient."""
    data = am.AttentionData([[[1.0], [-1.0], [1.0 + 2.0**-40]]], [[1.0]], [-1], [1.0])
    run = am.train(data, lr=2.0**40, steps=3, record=1, init=[[2.0**44]])
    torch.testing.assert_close(
        run.W.flatten(), 2.0**44 - 2.0**40 * torch.arange(4, dtype=torch.float64), rtol=0, atol=1e-3
    )


@pytest.mark.parametrize("power", [-5, -6, -7])
def test_sequences_that_nearly_cancel_give_the_exact_direction(way: str, power: int) -> None:
    """Against the formula in extended precision."""
    rng = np.random.default_rng(power + 10)
    x, z, v = rng.standard_normal((3, 2)), rng.standard_normal(2), rng.standard_normal(2)
    X = np.stack((x, -x + 10.0**power * rng.standard_normal((3, 2))))
    data = am.AttentionData(X, [z, z], [1, -1], v)
    run = am.train(data, lr=0.5, steps=1, record=1, loss="linear")
    exact = X.astype(np.longdouble)
    lift = exact @ v.astype(np.longdouble) * np.array([[1.0], [-1.0]])
    c = (lift - lift.mean(-1, keepdims=True)) / 3
    D = np.einsum("nt,ntd,e->de", c, exact, z.astype(np.longdouble))
    expected = (0.5 * D / np.sqrt((D**2).sum())).astype(np.float64)
    np.testing.assert_allclose(run.W[1].numpy(), expected, rtol=0, atol=1e-14 * 10.0**-power)


def test_a_gradient_that_is_rounding_does_not_move(way: str) -> None:
    """Two opposite sequences: the exact gradient is zero."""
    x = [[0.1, 0.7], [0.3, -0.2], [0.9, 0.4]]
    data = am.AttentionData(
        [x, [[-a for a in row] for row in x]], [[0.3, 0.1]] * 2, [1, -1], [1, 3]
    )
    run = am.train(data, lr=0.5, steps=5, record=5, loss="linear")
    assert torch.equal(run.W[-1], torch.zeros(2, 2, dtype=torch.float64))


def test_the_start_that_is_given_is_left_alone(way: str) -> None:
    data = am.AttentionData([[[1.0], [-1.0], [1.0 + 2.0**-40]]], [[1.0]], [-1], [1.0])
    start = torch.tensor([[2.0**44]], dtype=torch.float64)
    am.train(data, lr=2.0**40, steps=2, init=start)
    assert float(start) == 2.0**44
