"""Small dense matrices and rows ``left_i query_kᵀ`` grouped by query, compiled with numba."""

import numpy as np

from attnmargin.base.kernels import Bools, Floats, Ints, add, dot, jit, mix, spread


@jit
def combine(left: Floats, query: Floats, dual: Floats, out: Floats) -> None:
    """Compute out = Σ dual_i u_i z_iᵀ, grouped by query first."""
    Q, d = query.shape[0], left.shape[1]
    S = left.shape[0] // Q
    keys = np.zeros((Q, d))
    for k in range(Q):
        mix(keys[k], dual[k * S : (k + 1) * S], left[k * S : (k + 1) * S])
    out[:] = 0.0
    spread(keys, query, out)


@jit
def product(A: Floats, B: Floats, out: Floats) -> None:
    """Compute out = A B for small matrices."""
    out[:] = 0.0
    for i in range(A.shape[0]):
        mix(out[i], A[i], B)


@jit
def factor(A: Floats, pivot: Ints) -> None:
    """Factor ``P A = L U`` in place, with the reciprocals of U's diagonal.

    A zero pivot gets the reciprocal zero, so that its unknown stays zero.
    """
    n = pivot.size
    for k in range(n):
        best = k
        for i in range(k + 1, n):
            if abs(A[i, k]) > abs(A[best, k]):
                best = i
        pivot[k] = best
        if best != k:
            for j in range(n):
                A[k, j], A[best, j] = A[best, j], A[k, j]
        A[k, k] = 1.0 / A[k, k] if A[k, k] != 0.0 else 0.0
        for i in range(k + 1, n):
            A[i, k] *= A[k, k]
            add(A[i, k + 1 :], -A[i, k], A[k, k + 1 :], n - k - 1)


@jit
def substitute(A: Floats, pivot: Ints, x: Floats) -> None:
    """Solve for the right-hand side x in place."""
    n = pivot.size
    for k in range(n):
        x[k], x[pivot[k]] = x[pivot[k]], x[k]
    for k in range(n):
        x[k] -= dot(A[k], x, k)
    for k in range(n - 1, -1, -1):
        x[k] = (x[k] - dot(A[k, k + 1 :], x[k + 1 :], n - k - 1)) * A[k, k]


@jit
def cholesky(A: Floats) -> bool:
    """Factor A = L Lᵀ in place, with reciprocal diagonal; return whether A is positive definite.

    A pivot that is not positive gets the reciprocal zero.
    """
    positive = True
    for i in range(A.shape[0]):
        for k in range(i):
            A[i, k] = (A[i, k] - dot(A[i], A[k], k)) * A[k, k]
        pivot = A[i, i] - dot(A[i], A[i], i)
        positive = positive and pivot > 0.0
        A[i, i] = 1.0 / np.sqrt(pivot) if pivot > 0.0 else 0.0
    return positive


@jit
def ratio_step(free: Bools, x: Floats, dx: Floats, longest: float) -> float:
    """Find the largest t ≤ longest with ``x + t dx ≥ 0`` on rows that are not free; x > 0."""
    step = longest
    for i in range(x.size):
        if dx[i] < 0.0 and not free[i]:
            step = min(step, -x[i] / dx[i])
    return step


@jit
def complementarity(
    free: Bools, x: Floats, dx: Floats, s: Floats, ds: Floats, step: float
) -> tuple[float, int]:
    """Sum ``(x + t dx)(s + t ds)`` over rows that are not free, and count them."""
    total, count = 0.0, 0
    for i in range(x.size):
        if not free[i]:
            total += (x[i] + step * dx[i]) * (s[i] + step * ds[i])
            count += 1
    return total, count


@jit
def shortfall(free: Bools, b: Floats, values: Floats, unit: float) -> tuple[float, float]:
    """Return the factor that W must grow by for its inequalities, and the worst equality error."""
    lift, error = 1.0, 0.0
    for i in range(b.size):
        if free[i]:
            error = max(error, abs(values[i] - b[i]) / (abs(b[i]) + unit))
        elif b[i] > 0.0:
            lift = max(lift, b[i] / values[i]) if values[i] > 0.0 else np.inf
    return lift, error
