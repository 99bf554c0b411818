"""The least loss within a ball of ‖·‖_p: many starts of a minimiser, on the sphere and inside.

L(W) = (1/n) Σ_i ℓ(y_i vᵀ X_iᵀ softmax(X_i W z_i))
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from tests.hunt.answers import Arrays

Floats = NDArray[np.float64]
_VALUES: dict[str, Callable[[Any], Any]] = {
    "logistic": lambda u: np.logaddexp(0.0, -u),
    "exponential": lambda u: np.exp(-u),
}
_SLOPES: dict[str, Callable[[Any], Any]] = {
    "logistic": lambda u: -1.0 / (1.0 + np.exp(u)),
    "exponential": lambda u: -np.exp(-u),
}


class Loss:
    """The loss of one instance and its gradient, both from the formula."""

    def __init__(self, arrays: Arrays, name: str) -> None:
        X, z = arrays["X"], arrays["z"]
        self.gamma = arrays["y"][:, None] * (X @ arrays["v"])
        self.rows = np.einsum("ntd,ne->ntde", X, z).reshape(self.gamma.size, -1)  # x zᵀ
        self.hidden = ~arrays.get("mask", np.ones(self.gamma.shape, dtype=bool))
        self.value, self.slope = _VALUES[name], _SLOPES[name]

    def __call__(self, w: Floats) -> tuple[float, Floats]:
        """Return the loss and the gradient at W, flat."""
        a = (self.rows @ w).reshape(self.gamma.shape)
        a[self.hidden] = -np.inf
        s = np.exp(a - a.max(-1, keepdims=True))
        s /= s.sum(-1, keepdims=True)
        u = (s * self.gamma).sum(-1)
        c = (self.slope(u) / len(u))[:, None] * s * (self.gamma - u[:, None])
        return float(self.value(u).mean()), c.ravel() @ self.rows


def norm(w: Floats, p: float) -> float:
    """``‖w‖_p``."""
    return float((np.abs(w) ** p).sum() ** (1.0 / p))


def on_sphere(loss: Loss, radius: float, p: float, start: Floats) -> Floats:
    """Descend on the sphere from a start, by ``W = R V / ‖V‖_p``."""

    def value(V: Floats) -> tuple[float, Floats]:
        size = norm(V, p)
        unit = V / size
        L, g = loss(radius * unit)
        outward = np.sign(unit) * np.abs(unit) ** (p - 1.0)
        return L, radius * (g - (g @ unit) * outward) / size

    begin = start / norm(start, p)
    V = minimize(value, begin, jac=True, method="BFGS", options={"gtol": 1e-9}).x
    return radius * V / norm(V, p)


def inside(loss: Loss, radius: float, p: float, start: Floats) -> Floats | None:
    """Descend without a limit; None if that leaves the ball."""
    w: Floats = minimize(loss, start, jac=True, method="BFGS", options={"gtol": 1e-9}).x
    return w if np.isfinite(w).all() and norm(w, p) <= radius else None


def least_loss(loss: Loss, radius: float, p: float, starts: list[Floats]) -> tuple[float, Floats]:
    """Return the least loss that any start leads to, and where."""
    ends = [on_sphere(loss, radius, p, start) for start in starts]
    values = [loss(w)[0] for w in ends]
    for start in (0.5 * ends[int(np.argmin(values))], 1e-3 * ends[0]):
        deeper = inside(loss, radius, p, start)
        if deeper is not None:
            ends.append(deeper)
            values.append(loss(deeper)[0])
    best = int(np.argmin(values))
    return values[best], ends[best]
