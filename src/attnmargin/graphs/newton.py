"""Which logits make the choices of the data most likely: a convex problem, solved by Newton."""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve, lstsq
from scipy.sparse import csr_array

from attnmargin.base.errors import InaccurateError

Floats = NDArray[np.float64]
_MOST, _HALVINGS = 100, 40
# What the gradient in the logits must reach.
ENOUGH = 1e-10
# Below this decrease of the value, rounding hides it, and the gradient is the judge.
_HIDDEN = 1e-9


@final
@dataclass(frozen=True, eq=False)
class Choices:
    """One of several nodes was chosen, m times: how often each stood for choice, and which it was.

    ``f(a) = Σ_i weight_i [log Σ_j counts_ij e^{a_j} − a_chosen_i] + const``, the log-loss of
    softmax attention whose scores are one at the label and zero elsewhere.
    """

    counts: csr_array  # (m, nodes)
    chosen: NDArray[np.int64]  # (m,)
    weight: Floats  # (m,), in all one

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
        return float(self.weight @ (self._shares(a)[0] - a[self.chosen]))

    def slope(self, a: Floats) -> tuple[Floats, Floats]:
        """Gradient ``(nodes,)`` and Hessian ``(nodes, nodes)``."""
        p = self._shares(a)[1]
        mass = p.T @ self.weight
        gradient = mass - np.bincount(self.chosen, self.weight, minlength=len(a))
        scaled = p.multiply(self.weight[:, None]).tocsr()
        return gradient, np.diag(mass) - (p.T @ scaled).toarray()


def gathered(counts: csr_array, chosen: NDArray[np.int64]) -> Choices:
    """Choices of m samples, those that are the same taken together.

    Rows are compared by two sums of random numbers of 64 bits, one per node and chosen node.
    """
    rng = np.random.default_rng(0)
    nodes = counts.shape[1]
    names = rng.integers(0, 1 << 63, (2 * nodes, 2), dtype=np.int64)
    times = csr_array((counts.data.astype(np.int64), counts.indices, counts.indptr), counts.shape)
    keys = times @ names[:nodes] + names[nodes + chosen]
    order = np.lexsort(keys.T)
    new = np.ones(len(order), dtype=bool)
    new[1:] = (np.diff(keys[order], axis=0) != 0).any(1)
    first = order[new]
    size = np.diff(np.append(new.nonzero()[0], len(order)))
    return Choices(counts[first], chosen[first], size / len(order))


def minimum(choices: Choices, M: Floats | None = None) -> Floats:
    """The θ ``(r,)`` with least ``f(M θ)`` for M ``(nodes, r)`` with orthonormal columns.

    Without M, the logits with mean zero. f is strictly convex on these logits. Damped Newton from
    zero, until the gradient is rounding.
    """
    theta = np.zeros(choices.counts.shape[1] if M is None else M.shape[1])
    value = choices.value(_logits(M, theta))
    g, H = _reduced(M, *choices.slope(_logits(M, theta)))
    for _ in range(_MOST):
        step = _solve(H, -g)
        slope, size = float(g @ step), float(np.linalg.norm(g))
        near = -slope <= _HIDDEN * (1.0 + abs(value))
        length = 1.0 if near else _length(choices, M, theta, step, value, slope)
        new = theta + length * step
        g_new, H_new = _reduced(M, *choices.slope(_logits(M, new)))
        if near and float(np.linalg.norm(g_new)) >= 0.5 * size:
            break  # all that is left is rounding
        theta, g, H, value = new, g_new, H_new, choices.value(_logits(M, new))
    size = float(np.linalg.norm(g))
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


def _length(
    choices: Choices, M: Floats | None, theta: Floats, step: Floats, value: float, slope: float
) -> float:
    """One, halved until the value falls by its due."""
    length = 1.0
    for _ in range(_HALVINGS):
        if choices.value(_logits(M, theta + length * step)) <= value + 1e-4 * length * slope:
            break
        length *= 0.5
    return length
