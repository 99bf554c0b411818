"""Regularisation paths whose least loss lies inside of the ball."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import minimize, minimize_scalar

import attnmargin as am

LOSSES = {
    "logistic": lambda u: np.logaddexp(0.0, -u),
    "exponential": lambda u: np.exp(-u),
    "linear": lambda u: -u,
}


def contradiction(second: float) -> am.AttentionData:
    """Two sequences with opposite labels, of tokens 1 and 0, and ``second`` and 0."""
    return am.AttentionData([[[1.0], [0.0]], [[second], [0.0]]], [[1.0], [1.0]], [1, -1], [1.0])


@pytest.mark.parametrize(("parameter", "p"), [("W", 1.5), ("W", 2.0), ("W", 3.0), ("KQ", 2.0)])
def test_the_minimum_inside_has_a_closed_form(parameter: str, p: float) -> None:
    """At ``σ'(w) = 4 σ'(2w)``, ``r = e^{w/2}`` has ``r⁴ + 1 = 2r³ + 2r``: ``r + 1/r = 1 + √3``."""
    path = am.regularization_path(contradiction(2.0), [1.0, 2.0, 16.0], parameter, p, "linear")
    w = -2.0 * math.acosh((1.0 + math.sqrt(3.0)) / 2.0)
    expected = torch.tensor([-1.0, w, w]).double()
    torch.testing.assert_close(path.W.flatten(), expected, atol=1e-6, rtol=0)
    assert path.inside is not None
    assert path.inside.tolist() == [False, True, True]
    assert path.notes == (
        "at radius 16 the least loss of 1 of 1 trials lies inside of the ball: outwards it rises, "
        "or falls by less than rounding.",
    )
    assert path.summary()["inside of the ball"] == "2 of 3 minima"


def test_the_loss_does_not_rise_with_the_radius() -> None:
    def loss(w: float) -> float:
        s = 1.0 / (1.0 + np.exp(-np.array([1.0, 3.0]) * w))
        return float(np.logaddexp(0.0, s * [-1.0, 3.0]).mean())

    path = am.regularization_path(contradiction(3.0), [1.0, 4.0, 16.0])
    least = minimize_scalar(loss, bounds=(-4.0, 4.0), method="bounded", options={"xatol": 1e-10})
    expected = torch.tensor([loss(-1.0), least.fun, least.fun]).double()
    torch.testing.assert_close(path.loss, expected, rtol=1e-12, atol=0)


def test_a_constant_loss_needs_no_weights() -> None:
    path = am.regularization_path(am.AttentionData([[[2.0]]], [[1.0]], [1.0], [1.0]), [1.0, 9.0])
    assert torch.equal(path.W, torch.zeros(2, 1, 1).double())
    assert path.inside is not None
    assert bool(path.inside.all())


def test_a_joint_path_leaves_the_sphere_of_the_head() -> None:
    """A token without an alternative, with both labels: the best head is zero."""
    data = am.AttentionData([[[1.0]], [[1.0]]], [[1.0], [1.0]], [1, -1])
    path = am.regularization_path(data, [1.0, 10.0], "vW")
    torch.testing.assert_close(path.loss, torch.full((2,), math.log(2.0)).double())
    torch.testing.assert_close(path.v, torch.zeros(2, 1).double(), atol=1e-6, rtol=0)
    assert path.inside is not None
    assert bool(path.inside.all())


def crowded(seed: int, trials: int, shape: tuple[int, int, int]) -> am.AttentionData:
    """More sequences than directions, so that most selections are impossible."""
    rng, (n, T, d) = np.random.default_rng(seed), shape
    X, z = rng.integers(-3, 4, (trials, n, T, d)), rng.integers(-2, 3, (trials, n, d))
    y, v = rng.choice([-1.0, 1.0], (trials, n)), rng.standard_normal((trials, d))
    return am.AttentionData(X.astype(float), z.astype(float), y, v)


def test_minima_inside_in_a_batch_equal_a_loop() -> None:
    data, radii = crowded(1, 2, (4, 3, 1)), [0.5, 8.0]
    batch = am.regularization_path(data, radii)
    assert batch.inside is not None
    assert bool(batch.inside.any())
    for i in range(2):
        alone = am.regularization_path(data[i], radii)
        assert torch.equal(alone.inside, batch.inside[:, i])
        torch.testing.assert_close(alone.loss, batch.loss[:, i], rtol=1e-10, atol=0)
        torch.testing.assert_close(alone.W, batch.W[:, i], rtol=1e-5, atol=1e-5)


def test_minima_inside_keep_the_dtype_and_are_saved(tmp_path: Path) -> None:
    double = contradiction(3.0)
    parts = (x.float() for x in (double.X, double.z, double.y, double.v))
    path = am.regularization_path(am.AttentionData(*parts), [1.0, 16.0])
    assert path.W.dtype == path.loss.dtype == torch.float32
    assert path.inside is not None
    assert path.inside.tolist() == [False, True]
    again = am.Trajectory.load(path.save(tmp_path / "path.npz"))
    assert torch.equal(again.inside, path.inside)
    assert am.train(double, steps=2).inside is None


def plain_loss(w: NDArray[np.float64], data: am.AttentionData, loss: str) -> float:
    X, z, y, v = (x.numpy() for x in (data.X, data.z, data.y, data.v))
    a = np.einsum("ntd,de,ne->nt", X, w.reshape(len(v), -1), z)
    s = np.exp(a - a.max(-1, keepdims=True))
    u = y * ((s[..., None] * X).sum(-2) / s.sum(-1, keepdims=True) @ v)
    return float(LOSSES[loss](u).mean())


def rival(data: am.AttentionData, loss: str, p: float, radius: float) -> float:
    """Minimise over the ball by SLSQP, from many starts: a second implementation."""
    rng, found = np.random.default_rng(0), []
    ball = {"type": "ineq", "fun": lambda w: 1.0 - (np.abs(w / radius) ** p).sum()}
    for _ in range(8):
        start = rng.standard_normal(data.d**2)
        start *= radius * rng.uniform(0.01, 1.0) / np.linalg.norm(start, p)
        end = minimize(plain_loss, start, (data, loss), "SLSQP", constraints=[ball]).x
        end /= max(1.0, np.linalg.norm(end, p) / radius)
        found.append(plain_loss(end, data, loss))
    return min(found)


@settings(max_examples=6, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 10**6),
    shape=st.sampled_from([(1, 1, 1), (2, 2, 1), (4, 3, 1), (3, 2, 2), (5, 3, 2)]),
    loss=st.sampled_from(sorted(LOSSES)),
    p=st.sampled_from([1.5, 2.0, 3.0]),
)
def test_no_ball_has_a_lower_loss(
    seed: int, shape: tuple[int, int, int], loss: str, p: float
) -> None:
    data, radii = crowded(seed, 1, shape)[0], [0.5, 5.0]
    path = am.regularization_path(data, radii, p=p, loss=loss)
    size = path.loss.abs().clamp_min(1.0)
    assert bool((path.loss.diff() <= 1e-12 * size[1:]).all())
    assert bool((am.Lp(p).value(path.W) <= (1.0 + 1e-9) * torch.tensor(radii).double()).all())
    for k, radius in enumerate(radii):
        assert float(path.loss[k]) <= rival(data, loss, p, radius) + 1e-6 * float(size[k])


def test_tokens_of_equal_score_are_a_minimum_each() -> None:
    """The symmetric point selects both best tokens; preferring one of them is better."""
    data = am.AttentionData([[[-2.0, -1.0], [-2.0, 1.0], [1.0, 0.0]]], [[1.0, -2.0]], [-1], [2, 0])
    path = am.regularization_path(data, [1.0], p=3.0, loss="exponential")
    assert float(path.W[0, 1].abs().max()) > 0.1
