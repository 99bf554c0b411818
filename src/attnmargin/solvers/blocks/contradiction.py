"""Farkas proofs from multipliers that diverge: ``Σ λ_m left_m queryᵀ = 0`` with ``bᵀλ > 0``.

If no W satisfies the rows, block ascent never ends: the multipliers grow in the direction of a
proof, while W stays bounded. Their projection onto ``Aᵀλ = 0`` moves them little. Rows that would
turn negative leave, until none does.
"""

import numpy as np

from attnmargin.base.kernels import Floats, Ints
from attnmargin.solvers.blocks.gradients import conjugate_gradients
from attnmargin.solvers.blocks.rows import Scaled

# Projections, rounds of refinement in each, and iterations in a round.
_TRIES, _REFINEMENTS, _ITERATIONS = 12, 4, 300
_ENOUGH = 1e-8  # share of the residual at which they end
# A projection that keeps less than this share of bᵀλ has found no proof.
_KEPT = 0.1
# Size of Aᵀλ, relative to bᵀλ and the norm that one row needs, that counts as zero.
_ZERO = 16 * float(np.finfo(np.float64).eps)


def contradiction(own: Scaled, rows: Ints, dual: Floats) -> tuple[Ints, Floats] | None:
    """Turn multipliers of some rows into a proof that no W exists: rows, and λ with ``bᵀλ = 1``.

    Return None if the rows do not contradict each other, or the proof is not exact.
    """
    bound = own.P.bound[rows]
    gain = float(bound @ dual)
    for _ in range(_TRIES):
        total, dual = _projected(own, rows, dual)
        negative = (dual < 0.0) & ~own.P.free[rows]
        left = float(bound @ np.where(negative, 0.0, dual))
        if not left > _KEPT * gain:
            return None
        if not negative.any():
            return (rows, dual / left) if _cancels(own, rows, total / left) else None
        kept = ~negative
        rows, dual, bound = rows[kept], dual[kept], bound[kept]
    return None


def _projected(own: Scaled, rows: Ints, dual: Floats) -> tuple[float, Floats]:
    """Project onto ``Aᵀλ = 0``; return ``‖Aᵀλ‖`` and λ."""
    part = own.part(rows)

    def times(Y: Floats) -> Floats:
        return part.adjoint(part.apply(Y))

    for _ in range(_REFINEMENTS):
        Y = conjugate_gradients(times, part.adjoint(dual), 1.0, _ITERATIONS, _ENOUGH)
        dual = dual - part.apply(Y)
    return float(np.linalg.norm(part.adjoint(dual))), dual


def _cancels(own: Scaled, rows: Ints, size: float) -> bool:
    """Check whether ``Aᵀλ`` of this size, for ``bᵀλ = 1``, is zero up to rounding."""
    needs = np.abs(own.P.bound[rows]) / np.sqrt(own.squares(rows))
    return size * float(np.max(needs)) <= _ZERO
