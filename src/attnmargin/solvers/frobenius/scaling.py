"""Rows of about unit length, by powers of two: nothing is rounded. Compiled with numba."""

import math

import numpy as np

from attnmargin.base.kernels import Floats, dot, jit
from attnmargin.solvers.frobenius.basis import Rows


@jit
def power_above(x: float) -> float:
    """Return the next power of two above x, so that dividing by it does not round; 1 for 0."""
    return math.ldexp(1.0, math.frexp(x)[1]) if x > 0.0 else 1.0


@jit
def _shrink(rows: Floats, i: int) -> float:
    """Divide one row by a power of two to about unit length; return the divisor, or 0.

    It scales by the largest entry first, because the length of a row with very large or small
    entries cannot be computed.
    """
    largest = 0.0
    for c in range(rows.shape[1]):
        largest = max(largest, abs(rows[i, c]))
    if largest == 0.0:
        return 0.0
    scale = power_above(largest)
    for c in range(rows.shape[1]):
        rows[i, c] /= scale
    norm = power_above(math.sqrt(dot(rows[i], rows[i], rows.shape[1])))
    for c in range(rows.shape[1]):
        rows[i, c] /= norm
    return scale * norm


@jit
def normalise(P: Rows, length: Floats) -> int:
    """Scale rows to about unit length in place; return a row 0 ≥ b that no W satisfies, or -1."""
    M, d = P.left.shape
    Q = P.query.shape[0]
    size = np.empty(Q)
    for q in range(Q):
        size[q] = _shrink(P.query, q)
        P.known[q] = False
    for i in range(M):
        norm, whole = _shrink(P.left, i), size[i // (M // Q)]
        if P.usable[i] and norm * whole == 0.0:
            P.usable[i] = False
            if P.bound[i] > 0.0 or (P.equality[i] and P.bound[i] != 0.0):
                return i
        length[i] = norm * whole if P.usable[i] else 1.0
        P.bound[i] = P.bound[i] / length[i] if P.usable[i] else 0.0
    for c in range(d):
        for i in range(M):
            P.columns[c, i] = P.left[i, c]
    return -1
