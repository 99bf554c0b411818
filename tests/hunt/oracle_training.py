"""Steps of training with 60 digits, written from the formulas of the papers.

a = X W z,  s = softmax(a),  γ = y X v,  u = sᵀγ
∇L(W) = (1/n) Σ_i ℓ'(u_i) Σ_t s_it (γ_it − u_i) x_it z_iᵀ
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from mpmath import mp, mpf
from numpy.typing import NDArray

from tests.hunt.answers import Arrays

DIGITS = 60
# Beyond this, nothing can be said in float64, and exponentials would take for ever.
_HUGE = mpf(10) ** 30
EPS = float(np.finfo(float).eps)
Precise = NDArray[Any]  # an array of mpf

# ℓ'(u), from u and 1 − u
SLOPES = {
    "logistic": lambda u, rest: -1 / (1 + mp.exp(u)),
    "exponential": lambda u, rest: -mp.exp(-u),
    "squared": lambda u, rest: -2 * rest,
    "linear": lambda u, rest: mpf(-1),
}
_VALUES = {
    "logistic": lambda u: mp.log1p(mp.exp(-u)),
    "exponential": lambda u: mp.exp(-u),
    "squared": lambda u: (1 - u) ** 2,
    "linear": lambda u: -u,
}


def precise(x: Any) -> Precise:
    """Convert floats to numbers with many digits."""
    flat = np.asarray(x, dtype=float)
    out = np.empty(flat.shape, dtype=object)
    for index, value in np.ndenumerate(flat):
        out[index] = mpf(float(value))
    return out


@dataclass(frozen=True)
class Slope:
    """The gradient, the loss, and how far float64 can know the direction."""

    gradient: Precise  # (d, d)
    loss: Any
    doubt: float  # relative error that rounding of differences makes


class Setting:
    """One instance and its loss."""

    def __init__(self, arrays: Arrays, loss: str) -> None:
        self.X, self.z, self.y, self.v = (precise(arrays[name]) for name in ("X", "z", "y", "v"))
        shape = arrays["X"].shape[:2]
        self.mask = arrays.get("mask", np.ones(shape, dtype=bool))
        self.slope_of, self.value_of = SLOPES[loss], _VALUES[loss]

    def slope(self, W: Precise, known: float = EPS) -> Slope:
        """Compute the gradient at W, which is known up to a relative error."""
        n, d = len(self.X), W.shape[0]
        total, loss, terms, off = precise(np.zeros((d, d))), mpf(0), mpf(0), 0.0
        if _size(W) > _HUGE:
            return Slope(total, mpf("inf"), float("inf"))
        for X, z, y, mask in zip(self.X, self.z, self.y, self.mask, strict=True):
            X = X[mask]
            if len(X) == 0:
                loss += self.value_of(mpf(0)) / n
                continue
            a, gamma = X @ (W @ z), y * (X @ self.v)
            weight = np.array([mp.exp(x - max(a)) for x in a], dtype=object)
            s = weight / sum(weight)
            u = s @ gamma
            # 1 − u and γ − u as sums of differences: a saturated softmax loses no digit
            c = (
                self.slope_of(u, s @ (1 - gamma))
                * s
                * np.array([s @ (g - gamma) for g in gamma])
                / n
            )
            total = total + np.outer(X.T @ c, z)
            loss += self.value_of(u) / n
            near = X - X[0]
            terms += sum(abs(x) for x in c) * _size(near) * _size(z)
            reach = float(_size(near) * _size(W) * _size(z))
            off = max(off, known * reach + EPS * (abs(float(u)) + _flatness(gamma)))
        size = _size(total)
        return Slope(total, loss, (EPS + off) * float(terms / size) if size else float("inf"))


def _size(x: Precise) -> Any:
    return mp.sqrt(sum(v * v for v in x.ravel()))


def _flatness(gamma: Precise) -> float:
    """How much larger scores are than their differences: cancellation that floats cannot avoid."""
    spread = max(abs(g - gamma[0]) for g in gamma)
    return float(abs(gamma[0]) / spread) if spread > 0 else 0.0


@dataclass(frozen=True)
class Walk:
    """Weights after every step, and the relative error of each that rounding explains."""

    weights: list[Precise]
    loss: Any  # at the start
    doubt: list[float]


def mirror(x: Precise, power: Any) -> Precise:
    """``sign(x) |x|^power``, entry by entry."""
    return np.vectorize(lambda v: mp.sign(v) * abs(v) ** power if v else v, otypes=[object])(x)


def _largest(x: Precise) -> Any:
    return max(abs(v) for v in x.ravel())


def walk_W(setting: Setting, W: Precise, steps: int, lr: float, p: float, normalize: bool) -> Walk:
    """Take steps ``∇ψ(W⁺) = ∇ψ(W) − η ∇L / ‖∇L‖_q``; p = 2 is gradient descent."""
    power, q = mpf(p) - 1, mpf(p) / (mpf(p) - 1)
    weights, loss, doubt = [W], None, [EPS]
    for _ in range(steps):
        slope = setting.slope(W, doubt[-1])
        loss = slope.loss if loss is None else loss
        g = slope.gradient
        if normalize:
            size = sum(abs(x) ** q for x in g.ravel() if x) ** (1 / q)
            g = g / size if size > 0 else g
        before, move = mirror(W, power), mpf(lr) * g
        after = before - move
        W = mirror(after, 1 / power)
        weights.append(W)
        doubt.append(_step_doubt(before, move, after, W, power, (doubt[-1], slope.doubt)))
    return Walk(weights, loss, doubt)


def _step_doubt(
    before: Precise,
    move: Precise,
    after: Precise,
    W: Precise,
    power: Any,
    known: tuple[float, float],
) -> float:
    """The error of W⁺ relative to its largest entry, from those of W and the gradient."""
    of_W, of_g = known
    largest = _largest(W)
    if largest == 0 or not 1e-290 < _largest(move) < 1e290 or not np.isfinite([of_W, of_g]).all():
        return float("inf")
    worst, size = 0.0, _largest(move)
    for b, a, w in zip(before.ravel(), after.ravel(), W.ravel(), strict=True):
        error = float(power) * of_W * abs(b) + of_g * size + EPS * abs(a)
        low, high = (abs(a) - error, abs(a) + error)
        spread = high ** (1 / power) - (low ** (1 / power) if low > 0 else 0)
        worst = max(worst, float(spread / largest), float(EPS * abs(w) / largest))
    return worst


def walk_KQ(setting: Setting, K: Precise, Q: Precise, steps: int, lr: float) -> Walk:
    """Take normalised steps on both factors of ``W = K Qᵀ``."""
    weights, loss, doubt, known = [K @ Q.T], None, [EPS], EPS
    for _ in range(steps):
        W = K @ Q.T
        inner = _size(K) * _size(Q) / _size(W) if _size(W) else mpf("inf")
        slope = setting.slope(W, min(float(known * inner), 1.0))
        loss = slope.loss if loss is None else loss
        of_K, of_Q = slope.gradient @ Q, slope.gradient.T @ K
        sizes = [_size(g) for g in (of_K, of_Q)]
        if min(sizes) == 0:
            return Walk([*weights, W], loss, [*doubt, float("inf")])
        lost = max(_size(slope.gradient) * _size(B) / s
                   for B, s in zip((Q, K), sizes, strict=True))  # fmt: skip
        known = float((slope.doubt + known) * lost)
        K, Q = K - mpf(lr) * of_K / sizes[0], Q - mpf(lr) * of_Q / sizes[1]
        weights.append(K @ Q.T)
        doubt.append(known * float(_size(K) * _size(Q) / (_size(weights[-1]) or 1)))
    return Walk(weights, loss, doubt)
