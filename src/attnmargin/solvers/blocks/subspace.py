"""Conjugate gradients on the rows that hold: the last digits of block ascent.

With the multipliers of other rows fixed at zero, the best ones solve ``K λ = b`` with the Gram
matrix K of the rows. Its product with a vector costs two small matrix products. Rows may be
dependent: the system then still has a solution, and conjugate gradients find one.
"""

from typing import NamedTuple

import numpy as np

from attnmargin.base.kernels import Bools, Floats
from attnmargin.solvers.blocks.gradients import conjugate_gradients
from attnmargin.solvers.blocks.rows import Part

# Iterations, and the share of the residual at which they end: while the rows that hold still
# change, and when they no longer do. While more than this share changes, other steps are better.
_ROUGH, _THOROUGH, _MANY = (40, 1e-3), (1000, 1e-11), 0.1
# Times that a step is halved.
_HALVINGS = 10


class Held(NamedTuple):
    """The rows with a multiplier, and what is needed to step in them."""

    part: Part
    bound: Floats
    free: Bools
    diagonal: Floats  # of the Gram matrix


def refined(held: Held, dual: Floats, change: float) -> tuple[Floats, Floats]:
    """Step towards ``K λ = b``; return multipliers, none below zero unless free, and their W.

    The step is shortened until the dual objective rises. ``change`` is the share of rows that did
    not hold a round ago, or no longer do.
    """
    W = held.part.adjoint(dual)
    if change > _MANY:
        return dual, W
    missing = held.bound - held.part.apply(W)

    def times(x: Floats) -> Floats:
        return held.part.apply(held.part.adjoint(x))

    limits = _ROUGH if change > 0.0 else _THOROUGH
    x = conjugate_gradients(times, missing, held.diagonal, *limits)
    for halving in range(_HALVINGS):
        new = dual + x * 0.5**halving
        new = np.where(held.free, new, np.maximum(new, 0.0))
        move = new - dual
        V = held.part.adjoint(move)
        if missing @ move >= 0.5 * np.vdot(V, V):
            return new, W + V
    return dual, W
