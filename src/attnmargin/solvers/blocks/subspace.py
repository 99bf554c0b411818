"""Linear systems in the rows that hold: the last digits of block ascent.

With the multipliers of other rows fixed at zero, the best ones solve ``K λ = b`` with the Gram
matrix K of the rows. Its product with a vector costs two small matrix products. Rows may be
dependent: the system then still has a solution, and conjugate gradients find one. They need many
iterations if nearly as many rows hold as W has entries; then K is factored.
"""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from attnmargin.base.kernels import Bools, Floats
from attnmargin.solvers.blocks.gradients import conjugate_gradients
from attnmargin.solvers.blocks.rows import Part

# Iterations, and the share of the residual at which they end: while the rows that hold still
# change, and when they no longer do. While more than this share changes, other steps are better.
_ROUGH, _THOROUGH, _MANY = (40, 1e-3), (1000, 1e-11), 0.1
# Times that a step is halved.
_HALVINGS = 10
# K is factored from this share of the entries of W on, and up to so many rows. Its solutions are
# refined so many times.
_SQUARE, _MOST, _REFINEMENTS = 0.97, 6000, 3


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

    factor = _factor(held.part, W.size) if change == 0.0 else None
    if factor is None:
        limits = _ROUGH if change > 0.0 else _THOROUGH
        x = conjugate_gradients(times, missing, held.diagonal, *limits)
    else:
        x = _solved(factor, missing)
        for _ in range(_REFINEMENTS):
            x += _solved(factor, missing - times(x))
    for halving in range(_HALVINGS):
        new = dual + x * 0.5**halving
        new = np.where(held.free, new, np.maximum(new, 0.0))
        move = new - dual
        V = held.part.adjoint(move)
        if missing @ move >= 0.5 * np.vdot(V, V):
            return new, W + V
    return dual, W


def _factor(part: Part, entries: int) -> Tensor | None:
    """Factor the Gram matrix by Cholesky; None if conjugate gradients are better, or must do."""
    if not _SQUARE * entries < len(part.rows) <= _MOST:
        return None
    left = torch.from_numpy(part.left[part.rows])
    query = torch.from_numpy(part.query[part.place])
    gram = (left @ left.mT).mul_(query @ query.mT)
    factor, failed = torch.linalg.cholesky_ex(gram)
    return None if bool(failed) else factor


def _solved(factor: Tensor, right: Floats) -> Floats:
    """Solve ``K x = right`` by the factor of K."""
    return torch.cholesky_solve(torch.from_numpy(right).unsqueeze(-1), factor).squeeze(-1).numpy()
