"""Which logits make the choices of the data most likely: a convex problem, solved by Newton."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve, lstsq
from scipy.sparse import csr_array

from attnmargin.errors import InaccurateError

Floats = NDArray[np.float64]
_GRADIENT, _MOST, _HALVINGS = 1e-14, 100, 30
# What the gradient must reach.
ENOUGH = 1e-10


@final
@dataclass(frozen=True, eq=False)
class Choices:
    """m times one of several nodes was chosen: how often each stood for choice, and which it was.

    ``f(a) = (1/m) Σ_i [log Σ_j counts_ij e^{a_j} − a_chosen_i] + const``, the log-loss of softmax
    attention whose scores are one at the label and zero elsewhere.
    """

    counts: csr_array  # (m, nodes)
    chosen: NDArray[np.int64]  # (m,)

    def _shares(self, a: Floats) -> tuple[Floats, csr_array]:
        """Logarithms of the totals, and the probabilities."""
        terms = a[self.counts.indices]
        start = self.counts.indptr[:-1]
        shift = np.maximum.reduceat(terms, start)
        width = np.diff(self.counts.indptr)
        weight = self.counts.data * np.exp(terms - np.repeat(shift, width))
        total = np.add.reduceat(weight, start)
        shape, place = self.counts.shape, (self.counts.indices, self.counts.indptr)
        return shift + np.log(total), csr_array((weight / np.repeat(total, width), *place), shape)

    def value(self, a: Floats) -> float:
        """``f(a)``."""
        return float((self._shares(a)[0] - a[self.chosen]).mean())

    def slope(self, a: Floats) -> tuple[Floats, Floats]:
        """Gradient ``(nodes,)`` and Hessian ``(nodes, nodes)``."""
        p, m = self._shares(a)[1], len(self.chosen)
        mass = np.asarray(p.sum(0)).reshape(-1)
        gradient = (mass - np.bincount(self.chosen, minlength=len(a))) / m
        return gradient, (np.diag(mass) - (p.T @ p).toarray()) / m


def minimum(choices: Choices, M: Floats | None = None) -> Floats:
    """The θ ``(r,)`` with least ``f(M θ)`` for M ``(nodes, r)``; f is strictly convex on its range.

    Without M, the logits with mean zero. Damped Newton from zero, until the gradient in θ is
    rounding.
    """
    theta = np.zeros(choices.counts.shape[1] if M is None else M.shape[1])
    value, before = choices.value(_logits(M, theta)), np.inf
    for _ in range(_MOST):
        g, H = _reduced(M, *choices.slope(_logits(M, theta)))
        size = float(np.linalg.norm(g))
        if size <= _GRADIENT or (size <= ENOUGH and size > 0.5 * before):
            return theta
        step, before = _solve(H, -g), size
        found = _search(lambda t: choices.value(_logits(M, t)), theta, step, value, float(g @ step))
        if found is None:
            break
        theta, value = found
    if size > ENOUGH:
        raise InaccurateError(f"cyclic correction: the gradient is {size:.1e}, above {ENOUGH:g}")
    return theta


def _logits(M: Floats | None, theta: Floats) -> Floats:
    return theta if M is None else M @ theta


def _reduced(M: Floats | None, gradient: Floats, hessian: Floats) -> tuple[Floats, Floats]:
    """Gradient and Hessian in θ; logits with mean zero are kept so by a term along the ones."""
    if M is None:
        return gradient, hessian + 1.0 / len(gradient)
    return M.T @ gradient, M.T @ hessian @ M


def _solve(H: Floats, g: Floats) -> Floats:
    """``H⁻¹ g`` for H positive definite, or nearly so."""
    try:
        x: Floats = cho_solve(cho_factor(H), g)
    except LinAlgError:
        x = lstsq(H, g)[0]
    return x


def _search(
    value_at: Callable[[Floats], float], theta: Floats, step: Floats, value: float, slope: float
) -> tuple[Floats, float] | None:
    """Halve the step until the value falls; near the minimum rounding may keep it level."""
    length = 1.0
    for _ in range(_HALVINGS):
        new = theta + length * step
        found = value_at(new)
        if found <= value + 1e-4 * length * slope + 4e-16 * abs(value):
            return new, found
        length *= 0.5
    return None
