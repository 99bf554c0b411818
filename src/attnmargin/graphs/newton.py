"""The logits that make the choices in the data most likely: a convex problem, by Newton."""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve, lstsq
from scipy.sparse import csr_array

from attnmargin.base.errors import InaccurateError

Floats = NDArray[np.float64]
_MOST, _HALVINGS = 100, 40
# Required norm of the gradient in the logits.
ENOUGH = 1e-10
# Rounding hides a smaller decrease of the value; then the gradient decides.
_HIDDEN = 1e-9


@final
@dataclass(frozen=True, eq=False)
class Choices:
    """m choices of one node among several: how often each was available, and which was chosen.

    ``f(a) = Σ_i weight_i [log Σ_j counts_ij e^{a_j} − a_chosen_i] + const`` is the log-loss of
    softmax attention that scores one at the label and zero elsewhere.
    """

    counts: csr_array  # (m, nodes)
    chosen: NDArray[np.int64]  # (m,)
    weight: Floats  # (m,), sums to one

    def _shares(self, a: Floats) -> tuple[Floats, csr_array]:
        """Compute the log of the totals, and the probabilities."""
        terms = a[self.counts.indices]
        start = self.counts.indptr[:-1]
        shift = np.maximum.reduceat(terms, start)
        width = np.diff(self.counts.indptr)
        weight = self.counts.data * np.exp(terms - np.repeat(shift, width))
        total = np.add.reduceat(weight, start)
        shape, place = self.counts.shape, (self.counts.indices, self.counts.indptr)
        return shift + np.log(total), csr_array((weight / np.repeat(total, width), *place), shape)

    def value(self, a: Floats) -> float:
        """Compute ``f(a)``."""
        return float(self.weight @ (self._shares(a)[0] - a[self.chosen]))

    def slope(self, a: Floats) -> tuple[Floats, Floats]:
        """Compute the gradient ``(nodes,)`` and Hessian ``(nodes, nodes)``."""
        p = self._shares(a)[1]
        mass = p.T @ self.weight
        gradient = mass - np.bincount(self.chosen, self.weight, minlength=len(a))
        scaled = p.multiply(self.weight[:, None]).tocsr()
        return gradient, np.diag(mass) - (p.T @ scaled).toarray()


def gathered(counts: csr_array, chosen: NDArray[np.int64]) -> Choices:
    """Merge identical choices among m samples.

    Rows are compared by a 128-bit random hash: two sums of 64-bit random numbers.
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
    """Minimise ``f(M θ)`` over θ ``(r,)``, for M ``(nodes, r)`` with orthonormal columns.

    Without M, minimise over logits with mean zero. f is strictly convex on these logits. Damped
    Newton runs from zero until only rounding is left in the gradient.
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
            break  # only rounding is left
        theta, g, H, value = new, g_new, H_new, choices.value(_logits(M, new))
    size = float(np.linalg.norm(g))
    if size > ENOUGH:
        raise InaccurateError(f"cyclic correction: the gradient is {size:.1e}, above {ENOUGH:g}")
    return theta


def _logits(M: Floats | None, theta: Floats) -> Floats:
    return theta if M is None else M @ theta


def _reduced(M: Floats | None, gradient: Floats, hessian: Floats) -> tuple[Floats, Floats]:
    """Compute gradient and Hessian in θ; without M, a term along the ones fixes mean zero."""
    if M is None:
        return gradient, hessian + 1.0 / len(gradient)
    return M.T @ gradient, M.T @ hessian @ M


def _solve(H: Floats, g: Floats) -> Floats:
    """Compute ``H⁻¹ g`` for H positive definite, or nearly so."""
    try:
        x: Floats = cho_solve(cho_factor(H), g)
    except LinAlgError:
        x = lstsq(H, g)[0]
    return x


def _length(
    choices: Choices, M: Floats | None, theta: Floats, step: Floats, value: float, slope: float
) -> float:
    """Backtrack from 1 until the Armijo condition holds."""
    length = 1.0
    for _ in range(_HALVINGS):
        if choices.value(_logits(M, theta + length * step)) <= value + 1e-4 * length * slope:
            break
        length *= 0.5
    return length
