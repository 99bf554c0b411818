"""Linear systems in the rows that hold: the last digits of block ascent.

With the multipliers of other rows fixed at zero, the best ones solve ``K λ = b`` with the Gram
matrix K of the rows. Its product with a vector costs two small matrix products. Rows may be
dependent: the system then still has a solution, and conjugate gradients find one. They need many
iterations if nearly as many rows hold as W has entries; then K is factored.
"""

from typing import NamedTuple, final

import numpy as np

from attnmargin.base.kernels import Bools, Floats
from attnmargin.solvers.blocks.factored import Factored
from attnmargin.solvers.blocks.gradients import conjugate_gradients
from attnmargin.solvers.blocks.rows import Part

# Iterations, and the share of the residual at which they end: while the rows that hold still
# change, and when they no longer do. While more than this share changes, other steps are better.
_ROUGH, _THOROUGH, _MANY = (40, 1e-3), (1000, 1e-11), 0.1
# Times that a step is halved.
_HALVINGS = 10
# K is factored if the rows are from this share of the entries of W to all of them, and no more than
# so many; and while less than this share of them changes.
_SQUARE, _MOST, _SETTLED = 0.97, 6000, 5e-3


class Held(NamedTuple):
    """The rows with a multiplier, and what is needed to step in them."""

    part: Part
    bound: Floats
    free: Bools
    diagonal: Floats  # of the Gram matrix


@final
class Subspace:
    """Steps towards ``K λ = b``, round by round; a factor of K serves as long as it can."""

    def __init__(self) -> None:
        self._factored: Factored | None = None

    def refined(self, held: Held, dual: Floats, change: float) -> tuple[Floats, Floats]:
        """Return multipliers, none below zero unless free, and their W.

        The step is shortened until the dual objective rises. ``change`` is the share of rows that
        did not hold a round ago, or no longer do.
        """
        W = held.part.adjoint(dual)
        if change > _MANY:
            return dual, W
        missing = held.bound - held.part.apply(W)
        x = self._factor_solution(held, missing, W.size) if change < _SETTLED else None
        if x is None:
            x = _plain_solution(held, missing, _ROUGH if change > 0.0 else _THOROUGH)
        for halving in range(_HALVINGS):
            new = dual + x * 0.5**halving
            new = np.where(held.free, new, np.maximum(new, 0.0))
            move = new - dual
            V = held.part.adjoint(move)
            if missing @ move >= 0.5 * np.vdot(V, V):
                return new, W + V
        return dual, W

    def _factor_solution(self, held: Held, missing: Floats, entries: int) -> Floats | None:
        """Solve by the factor; None if conjugate gradients are better, or must do."""
        part = held.part
        if not _SQUARE * entries < len(part.rows) <= min(entries, _MOST):
            return None
        if self._factored is None or not self._factored.fits(part.rows):
            self._factored = Factored(part)
        return self._factored.solved(part, missing)


def _plain_solution(held: Held, missing: Floats, limits: tuple[int, float]) -> Floats:
    """Solve by conjugate gradients."""

    def times(x: Floats) -> Floats:
        return held.part.apply(held.part.adjoint(x))

    return conjugate_gradients(times, missing, held.diagonal, *limits)
