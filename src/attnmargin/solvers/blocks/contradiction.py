"""Farkas proofs from multipliers that diverge: ``Σ λ_m left_m queryᵀ = 0`` with ``bᵀλ > 0``.

If no W satisfies the rows, block ascent never ends: the multipliers grow in the direction of a
proof, while W stays bounded. Their projection onto ``Aᵀλ = 0`` moves them little. Rows that would
turn negative leave, until none does.
"""

import numpy as np

from attnmargin.base.kernels import Floats, Ints
from attnmargin.solvers.blocks.rows import Part, Scaled

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
    for _ in range(_REFINEMENTS):
        total = part.adjoint(dual)
        dual = dual - part.apply(_inverse(part, total))
    return float(np.linalg.norm(part.adjoint(dual))), dual


def _inverse(part: Part, total: Floats) -> Floats:
    """Solve ``Aᵀ A Y = total`` by conjugate gradients, as far as it has a solution."""
    Y, r = np.zeros_like(total), total.copy()
    p, rr = r, float(np.vdot(r, r))
    goal = _ENOUGH**2 * rr
    for _ in range(_ITERATIONS):
        if not rr > goal:
            break
        Np = part.adjoint(part.apply(p))
        curve = float(np.vdot(p, Np))
        if not curve > 0.0:
            break
        step = rr / curve
        Y = Y + step * p
        r = r - step * Np
        before, rr = rr, float(np.vdot(r, r))
        p = r + (rr / before) * p
    return Y


def _cancels(own: Scaled, rows: Ints, size: float) -> bool:
    P = own.P
    length = np.sqrt(P.weight[rows] * P.size[rows // own.per])
    return size * float(np.max(np.abs(P.bound[rows]) / length)) <= _ZERO
