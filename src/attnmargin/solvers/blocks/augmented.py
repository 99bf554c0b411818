"""Newton's method on the augmented Lagrangian: long steps where many rows compete.

    min ½‖W‖² + σ/2 Σ (b_m − ⟨a_m, W⟩ + λ_m/σ)₊²,   then  λ_m ← σ (b_m − ⟨a_m, W⟩ + λ_m/σ)₊

If nearly as many rows hold as W has entries, single rows trade places for very long. A Newton step
moves all of them at once: it solves ``(I + σ A_JᵀA_J) ΔW = −∇`` over the rows J that count, by
conjugate gradients, which the identity keeps short. Equalities count always, with any sign.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from attnmargin.base.kernels import Floats, Ints
from attnmargin.solvers.blocks.gradients import conjugate_gradients
from attnmargin.solvers.blocks.rows import Part, Scaled

# Newton steps of a stage, and the residual, relative to the move of λ, at which it ends.
_STEPS, _ENOUGH = 40, 0.3
_CONJUGATE = (300, 0.1)
# Bisections of a step, the share of the slope at which they end, and the longest step.
_BISECTIONS, _FLAT, _LONGEST = 20, 0.1, 64.0

# Multipliers by the values of the rows.
Pull = Callable[[Floats], Floats]


class Stage(NamedTuple):
    """What a stage ends with."""

    dual: Floats  # (k,)
    W: Floats


def augmented(own: Scaled, rows: Ints, dual: Floats, W: Floats, weight: float) -> Stage:
    """Minimise over W from a start, and update the multipliers of the rows.

    Args:
        rows: (k,), in increasing order.
        dual: their multipliers, ``(k,)``.
        weight: σ.
    """
    part = own.part(rows)
    free, goal = own.P.free[rows], own.P.bound[rows] + dual / weight

    def pull(value: Floats) -> Floats:
        rest = goal - value
        return weight * np.where(free, rest, np.maximum(rest, 0.0))

    value = part.apply(W)
    new = pull(value)
    for _ in range(_STEPS):
        slope = W - part.adjoint(new)
        held = own.part(rows[(new > 0.0) | free])

        step = conjugate_gradients(partial(_curved, held, weight), -slope, 1.0, *_CONJUGATE)
        change = part.apply(step)
        length = _length(partial(_derivative, W, step, pull, value, change))
        W, value = W + length * step, value + length * change
        new = pull(value)
        left = np.linalg.norm(W - part.adjoint(new))
        if left <= _ENOUGH * np.linalg.norm(new - dual) / np.sqrt(weight):
            break
    return Stage(new, W)


def _curved(held: Part, weight: float, X: Floats) -> Floats:
    """Compute ``(I + σ AᵀA) X``."""
    return X + weight * held.adjoint(held.apply(X))


def _derivative(
    W: Floats, step: Floats, pull: Pull, value: Floats, change: Floats, t: float
) -> float:
    """Compute the derivative of the objective at ``W + t step``."""
    return float(np.vdot(step, W + t * step) - pull(value + t * change) @ change)


def _length(derivative: Callable[[float], float]) -> float:
    """Find where a derivative that grows from below zero vanishes, roughly."""
    flat = _FLAT * abs(derivative(0.0))
    low, high = 0.0, 1.0
    while derivative(high) < -flat and high < _LONGEST:
        low, high = high, 2.0 * high
    t = high
    for _ in range(_BISECTIONS):
        now = derivative(t)
        if abs(now) <= flat:
            break
        low, high = (t, high) if now < 0.0 else (low, t)
        t = 0.5 * (low + high)
    return t
