"""Conjugate gradients for products that are cheaper than their matrix."""

from collections.abc import Callable

import numpy as np

from attnmargin.base.kernels import Floats


def conjugate_gradients(
    times: Callable[[Floats], Floats],
    right: Floats,
    diagonal: Floats | float,
    most: int,
    enough: float,
) -> Floats:
    """Solve ``K x = right`` for a positive semidefinite K, as far as it has a solution.

    Args:
        times: multiplies by K.
        right: an array of any shape.
        diagonal: of K, or a number; steps are scaled by it.
        most: iterations.
        enough: share of the residual at which they end.
    """
    x, r = np.zeros_like(right), right.copy()
    s = r / diagonal
    p, rs = s, float(np.vdot(r, s))
    goal = enough**2 * rs
    for _ in range(most):
        if not rs > goal:
            break
        Kp = times(p)
        curve = float(np.vdot(p, Kp))
        if not curve > 0.0:
            break
        x += rs / curve * p
        r -= rs / curve * Kp
        s = r / diagonal
        before, rs = rs, float(np.vdot(r, s))
        p = s + (rs / before) * p
    return x
