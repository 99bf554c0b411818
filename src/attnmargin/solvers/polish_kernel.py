"""Newton's method on the held rows for p > 2, with multipliers in twice the precision.

    slope(W) = Aᵀλ,   A W = b,        slope(x) = sign(x) |x|^{p−1}

For large p, a small entry of W has a slope far below the rounding of Aᵀλ: for p = 10, an entry of
1e-2 has one of 1e-18. So λ and Aᵀλ are sums of two numbers each. The rest needs no more precision:
an entry of W is right if its own slope, not the largest one, is right up to rounding.

The curvatures of the entries differ by thirty powers of ten. The Gram matrix that they weight
would lose the heavier ones' company, so the weighted rows are factored themselves, by reflections
with exchanges of rows and columns (Powell and Reid 1969; Cox and Higham 1998).
"""

import math
from typing import NamedTuple

import numpy as np

from attnmargin.base.kernels import Bools, Floats, Ints, add, dot, jit, jit_exact, kernel

# Splits a float64 into two halves whose products are exact (Dekker).
_SPLIT = 134217729.0
# Rounding of Aᵀλ, relative to the sum of the sizes of its terms.
_ROUNDING = 2.0**-100
_STEPS, _STILL = 60, 1e-14
# Where W and what follows from λ differ by more than this share, a chord replaces the tangent.
_APART = 0.1
# Largest weight; a row of which others leave a smaller share is left out.
_HEAVIEST, _DEPENDENT = 1e60, 1e-12


class Rows(NamedTuple):
    """The held rows of one problem, of about unit length."""

    left: Floats  # (M, d)
    query: Floats  # (Q, e); row m belongs to query m // (M / Q)
    b: Floats  # (M,)
    held: Ints  # (h,)


class Doubled(NamedTuple):
    """Numbers as unevaluated sums of two."""

    high: Floats
    low: Floats


class Space(NamedTuple):
    """Room for one step."""

    keys: Doubled  # (Q, d)
    V: Doubled  # (d, e), Aᵀλ
    size: Floats  # (d, e), |A|ᵀ|λ|
    weight: Floats  # (d, e)
    move: Floats  # (d, e)
    A: Floats  # (h, d·e), the weighted rows
    C: Floats  # (h, d·e), their reflections
    R: Floats  # (h, h)
    scale: Floats  # (h,), of the reflections
    order: Ints  # (h,)
    entry: Ints  # (d·e,)
    u: Floats  # (d·e,)
    y: Floats  # (h,)


@jit_exact
def _accumulate(high: Floats, low: Floats, x_high: float, x_low: float, y: Floats) -> None:
    """Add x y in twice the precision."""
    part = _SPLIT * x_high
    x1 = part - (part - x_high)
    x2 = x_high - x1
    for j in range(y.size):
        part = _SPLIT * y[j]
        y1 = part - (part - y[j])
        y2 = y[j] - y1
        product = x_high * y[j]
        lost = x2 * y2 - (((product - x1 * y1) - x2 * y1) - x1 * y2)
        total = high[j] + product
        part = total - high[j]
        low[j] += ((high[j] - (total - part)) + (product - part)) + (lost + x_low * y[j])
        high[j] = total


@jit_exact
def _shift(dual: Doubled, m: int, x: float) -> None:
    """Add a number to a multiplier."""
    total = dual.high[m] + x
    part = total - dual.high[m]
    low = dual.low[m] + ((dual.high[m] - (total - part)) + (x - part))
    dual.high[m] = total + low
    dual.low[m] = low - (dual.high[m] - total)


@jit
def _combine(P: Rows, dual: Doubled, at: Space) -> None:
    """Compute V = Aᵀλ, and the size of its terms."""
    S, (Q, d), e = P.left.shape[0] // P.query.shape[0], at.keys.high.shape, P.query.shape[1]
    at.keys.high[:], at.keys.low[:], at.V.high[:], at.V.low[:] = 0.0, 0.0, 0.0, 0.0
    at.size[:] = 0.0
    for m in P.held:
        q = m // S
        _accumulate(at.keys.high[q], at.keys.low[q], dual.high[m], dual.low[m], P.left[m])
        for i in range(d):
            x = abs(dual.high[m] * P.left[m, i])
            for j in range(e):
                at.size[i, j] += x * abs(P.query[q, j])
    for q in range(Q):
        for i in range(d):
            key = at.keys.high[q, i], at.keys.low[q, i]
            _accumulate(at.V.high[i], at.V.low[i], key[0], key[1], P.query[q])


@jit
def _root(x: float, p: float) -> float:
    """Solve slope(w) = x."""
    return math.copysign(abs(x) ** (1.0 / (p - 1.0)), x)


@jit
def _weigh(at: Space, W: Floats, p: float) -> None:
    """Compute the weights of the entries, and the move of each by itself."""
    for i in range(W.shape[0]):
        for j in range(W.shape[1]):
            w, V = W[i, j], at.V.high[i, j] + at.V.low[i, j]
            slope = math.copysign(abs(w) ** (p - 1.0), w)
            rest, follows = (at.V.high[i, j] - slope) + at.V.low[i, j], _root(V, p)
            if abs(follows - w) > _APART * max(abs(w), abs(follows)) and rest != 0.0:
                weight = (follows - w) / rest
            else:
                weight = abs(w) / max((p - 1.0) * abs(slope), 1.0 / _HEAVIEST)
            at.weight[i, j] = math.sqrt(min(weight, _HEAVIEST))
            at.move[i, j] = weight * rest


@jit
def _missing(P: Rows, W: Floats, at: Space, missing: Floats) -> None:
    """Compute b − A (W + move) of the held rows."""
    (d, e), S = W.shape, P.left.shape[0] // P.query.shape[0]
    for a in range(P.held.size):
        m = P.held[a]
        total = 0.0
        for i in range(d):
            inner = 0.0
            for j in range(e):
                inner += (W[i, j] + at.move[i, j]) * P.query[m // S, j]
            total += P.left[m, i] * inner
        missing[a] = P.b[m] - total


@jit
def _fill(P: Rows, at: Space) -> None:
    """Write the weighted rows."""
    (d, e), S = at.weight.shape, P.left.shape[0] // P.query.shape[0]
    for a in range(P.held.size):
        m = P.held[a]
        at.order[a] = a
        for i in range(d):
            for j in range(e):
                x = at.weight[i, j] * P.left[m, i] * P.query[m // S, j]
                at.A[a, i * e + j], at.C[a, i * e + j] = x, x
    for c in range(d * e):
        at.entry[c] = c


@jit
def _pivot(at: Space, k: int, h: int) -> float:
    """Bring the longest row, and its largest entry, to place k; return its length.

    It is zero if only dependent rows are left.
    """
    n, best, longest = at.entry.size, k, 0.0
    for a in range(k, h):
        size = dot(at.C[a, k:], at.C[a, k:], n - k)
        whole = dot(at.A[a, k:], at.A[a, k:], n - k)
        if size > longest and size > _DEPENDENT * _DEPENDENT * whole:
            best, longest = a, size
    if best != k:
        for c in range(n):
            at.A[k, c], at.A[best, c] = at.A[best, c], at.A[k, c]
            at.C[k, c], at.C[best, c] = at.C[best, c], at.C[k, c]
        for c in range(k):
            at.R[c, k], at.R[c, best] = at.R[c, best], at.R[c, k]
        at.order[k], at.order[best] = at.order[best], at.order[k]
    top = k
    for c in range(k, n):
        if abs(at.C[k, c]) > abs(at.C[k, top]):
            top = c
    if top != k:
        for a in range(h):
            at.A[a, k], at.A[a, top] = at.A[a, top], at.A[a, k]
            at.C[a, k], at.C[a, top] = at.C[a, top], at.C[a, k]
        at.entry[k], at.entry[top] = at.entry[top], at.entry[k]
    return math.sqrt(longest)


@jit
def _factor(at: Space, h: int) -> int:
    """Reflect the rows to a triangle; return how many are independent."""
    n = at.entry.size
    for k in range(h):
        length = _pivot(at, k, h) if k < n else 0.0
        if not length > 0.0:
            return k
        v = at.C[k]
        corner = -math.copysign(length, v[k])
        v[k] -= corner
        at.R[k, k], at.scale[k] = corner, -1.0 / (corner * v[k])
        for a in range(k + 1, h):
            share = -at.scale[k] * dot(v[k:], at.C[a, k:], n - k)
            add(at.C[a, k:], share, v[k:], n - k)
            at.R[k, a] = at.C[a, k]
    return h


@jit
def _solve(at: Space, missing: Floats, rank: int, change: Floats) -> None:
    """Compute the change of the multipliers, and add the response of W to the move."""
    y, u, n, e = at.y, at.u, at.u.size, at.move.shape[1]
    change[:] = 0.0
    u[:] = 0.0
    for k in range(rank):
        total = missing[at.order[k]]
        for c in range(k):
            total -= at.R[c, k] * y[c]
        y[k] = total / at.R[k, k]
        u[k] = y[k]
    for k in range(rank - 1, -1, -1):
        add(u[k:], -at.scale[k] * dot(at.C[k, k:], u[k:], n - k), at.C[k, k:], n - k)
    for c in range(n):
        i, j = at.entry[c] // e, at.entry[c] % e
        at.move[i, j] += at.weight[i, j] * u[c]
    for k in range(rank - 1, -1, -1):
        total = y[k]
        for c in range(k + 1, rank):
            total -= at.R[k, c] * y[c]
        y[k] = total / at.R[k, k]
        change[at.order[k]] = y[k]


@jit
def _take(at: Space, W: Floats) -> float:
    """Take the move, no entry by more than the largest; return its size relative to that."""
    largest, moved = 1e-300, 0.0
    for value in W.flat:
        largest = max(largest, abs(value))
    for i in range(W.shape[0]):
        for j in range(W.shape[1]):
            step = min(max(at.move[i, j], -0.5 * largest), 0.5 * largest)
            W[i, j] += step
            moved = max(moved, abs(step))
    return moved / largest


@jit
def _apart(at: Space, W: Floats, p: float, off: Floats) -> None:
    """Bound by how much W differs from what follows from the multipliers."""
    for i in range(W.shape[0]):
        for j in range(W.shape[1]):
            V, noise = at.V.high[i, j] + at.V.low[i, j], _ROUNDING * at.size[i, j]
            low, high = _root(V - noise, p), _root(V + noise, p)
            off[i, j] = max(abs(W[i, j] - low), abs(W[i, j] - high))


@jit
def _polish(P: Rows, p: float, W: Floats, dual: Doubled, at: Space, off: Floats) -> int:
    """Iterate until W is still; return the number of steps."""
    h, still, step = P.held.size, 0, 0
    missing, change = np.empty(h), np.empty(h)
    while step < _STEPS and still < 2:
        _combine(P, dual, at)
        _weigh(at, W, p)
        _missing(P, W, at, missing)
        _fill(P, at)
        _solve(at, missing, _factor(at, h), change)
        moved = _take(at, W)
        for a in range(h):
            _shift(dual, P.held[a], change[a])
        still = still + 1 if moved <= _STILL else 0
        step += 1
    _combine(P, dual, at)
    _apart(at, W, p, off)
    return step


@kernel("last digits of ℓp solutions", 3)
def polish_rows(
    left: Floats,
    query: Floats,
    b: Floats,
    held: Bools,
    power: Floats,
    W: Floats,
    dual: Floats,
    off: Floats,
    steps: Ints,
) -> None:
    """Polish a batch of unit rows with ``‖W‖_p`` about one, in place.

    Args:
        left, query, b, held: ``(B, M, d)``, ``(B, Q, e)``, ``(B, M)``, ``(B, M)``.
        power: p > 2, ``(B,)``.
        W: ``(B, d, e)``; dual: ``(B, M)``, zero on rows that are not held.
        off: bounds ``|W − slope⁻¹(Aᵀλ)|``, ``(B, d, e)``.
        steps: ``(B,)``.
    """
    _, M, d = left.shape
    _, Q, e = query.shape
    n, most = d * e, 0
    for i in range(len(b)):
        most = max(most, held[i].sum())
    square = np.empty((6, d, e))
    at = Space(
        Doubled(np.empty((Q, d)), np.empty((Q, d))),
        Doubled(square[0], square[1]),
        square[2],
        square[3],
        square[4],
        np.empty((most, n)),
        np.empty((most, n)),
        np.empty((most, most)),
        np.empty(most),
        np.empty(most, np.int64),
        np.empty(n, np.int64),
        np.empty(n),
        np.empty(most),
    )
    for i in range(len(b)):
        P = Rows(left[i], query[i], b[i], np.nonzero(held[i])[0])
        own = Doubled(dual[i], np.zeros(M))
        steps[i] = _polish(P, power[i], W[i], own, at, off[i])
