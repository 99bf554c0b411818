"""Dual active-set kernel for the Frobenius margin problem, compiled with numba.

    min ½‖W‖²  subject to  ⟨a_i, W⟩ ≥ b_i  or  ⟨a_i, W⟩ = b_i,   a_i = left_i queryᵀ

The method is that of Goldfarb and Idnani (1983) on the Gram matrix of the rows. The
iterate is always the exact solution for the active rows alone; a violated row enters,
rows whose multiplier would turn negative leave. So the answer is a basis, not an
approximation, and when no step exists, the active rows and the new one are a Farkas proof
with as few rows as its rank allows. Rows are scaled to unit length first, so the scale of
the data does not matter. Steps are taken on the Gram matrix; the end is refined on `W`
itself, where rounding is smaller.

All functions work on one problem; :func:`solve_rows` loops over a batch.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from attnmargin.solvers.outcome import INFEASIBLE, SOLVED, STALLED

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

# A row closer than this to the span of the active rows counts as lying in it.
_DEPENDENT = 1e-11
# Below this squared distance the Gram matrix has lost the digits: measure it on the rows.
_DOUBTFUL = 1e-7
# A violation that no independent row can cause is rounding when it is smaller than this.
_ROUNDING = 1e-9
# Violations that count: while stepping on the Gram matrix, and at the refined W.
_COARSE, _FINE = 1e-11, 1e-15

_jit = njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"}, error_model="numpy")


class Rows(NamedTuple):
    """One problem with unit rows; ``columns`` is ``left`` transposed."""

    left: Floats  # (M, d)
    columns: Floats  # (d, M)
    query: Floats  # (Q, e); row i belongs to query i // (M / Q)
    gram_query: Floats  # (Q, Q)
    bound: Floats  # (M,)
    equality: Bools
    usable: Bools


class Basis(NamedTuple):
    """Active rows with their multipliers and the Cholesky factor of their Gram matrix."""

    row: Ints  # (most,)
    slot: Ints  # (most,) where in ``gram`` the row stands
    dual: Floats  # (most,)
    L: Floats  # (most, most), lower
    r: Floats  # (most,) coefficients of an entering row on the active ones
    gram: Floats  # (most, M) inner products of the active rows with all rows


@_jit
def _dot(x: Floats, y: Floats, size: int) -> float:
    total = 0.0
    for i in range(size):
        total += x[i] * y[i]
    return total


@_jit
def _add(x: Floats, factor: float, y: Floats, size: int) -> None:
    for i in range(size):
        x[i] += factor * y[i]


@_jit
def _mix(out: Floats, weight: Floats, rows: Floats) -> None:
    """out += Σ_c weight_c rows_c, four rows at a time to spare memory traffic."""
    fours = weight.size - weight.size % 4
    for c in range(0, fours, 4):
        w0, w1, w2, w3 = weight[c], weight[c + 1], weight[c + 2], weight[c + 3]
        for i in range(out.size):
            out[i] += (
                w0 * rows[c, i] + w1 * rows[c + 1, i] + w2 * rows[c + 2, i] + w3 * rows[c + 3, i]
            )
    for c in range(fours, weight.size):
        factor = weight[c]
        for i in range(out.size):
            out[i] += factor * rows[c, i]


@_jit
def _place(P: Rows, basis: Basis, k: int, row: int) -> None:
    """Put a row at place k, with its inner products ⟨a_row, a_i⟩ for all i."""
    Q = P.query.shape[0]
    S = P.left.shape[0] // Q
    basis.row[k] = row
    out = basis.gram[basis.slot[k]]
    out[:] = 0.0
    _mix(out, P.left[row], P.columns)
    for q in range(Q):
        factor = P.gram_query[row // S, q]
        for i in range(q * S, (q + 1) * S):
            out[i] *= factor


@_jit
def _swap(basis: Basis, a: int, c: int) -> None:
    basis.row[a], basis.row[c] = basis.row[c], basis.row[a]
    basis.slot[a], basis.slot[c] = basis.slot[c], basis.slot[a]


@_jit
def _combine(P: Rows, basis: Basis, weight: Floats, k: int, W: Floats) -> None:
    """W += Σ weight_a a_a over the active rows, gathered by query first."""
    Q = P.query.shape[0]
    d = P.left.shape[1]
    S = P.left.shape[0] // Q
    keys = np.zeros((d, Q))
    for a in range(k):
        row = basis.row[a]
        q = row // S
        for i in range(d):
            keys[i, q] += weight[a] * P.left[row, i]
    for i in range(d):
        _mix(W[i], keys[i], P.query)


@_jit
def _apply(P: Rows, W: Floats, values: Floats) -> None:
    """values_i = ⟨a_i, W⟩."""
    M, d = P.left.shape
    Q, e = P.query.shape
    S = M // Q
    image = np.empty(d)
    for q in range(Q):
        for i in range(d):
            total = 0.0
            for j in range(e):
                total += W[i, j] * P.query[q, j]
            image[i] = total
        for row in range(q * S, (q + 1) * S):
            total = 0.0
            for i in range(d):
                total += P.left[row, i] * image[i]
            values[row] = total


@_jit
def _lower(L: Floats, y: Floats, k: int) -> None:
    """Solve L x = y in place."""
    for a in range(k):
        total = y[a]
        for c in range(a):
            total -= L[a, c] * y[c]
        y[a] = total / L[a, a]


@_jit
def _upper(L: Floats, y: Floats, k: int) -> None:
    """Solve Lᵀ x = y in place."""
    for a in range(k - 1, -1, -1):
        y[a] /= L[a, a]
        factor = y[a]
        for c in range(a):
            y[c] -= factor * L[a, c]


@_jit
def _coefficients(basis: Basis, k: int) -> None:
    """r of the row at place k, from its factor row."""
    for a in range(k):
        basis.r[a] = basis.L[k, a]
    _upper(basis.L, basis.r, k)


@_jit
def _measure(P: Rows, basis: Basis, k: int) -> float:
    """Distance² of the row at place k to the active rows, on the rows themselves; refines r."""
    values, weight = np.empty(P.left.shape[0]), np.empty(k + 1)
    distance = 0.0
    for _ in range(3):
        for a in range(k):
            weight[a] = -basis.r[a]
        weight[k] = 1.0
        R = np.zeros((P.left.shape[1], P.query.shape[1]))
        _combine(P, basis, weight, k + 1, R)
        _apply(P, R, values)
        for a in range(k):
            weight[a] = values[basis.row[a]]
        _lower(basis.L, weight, k)
        _upper(basis.L, weight, k)
        _add(basis.r, 1.0, weight, k)
        distance = 0.0
        for i in range(R.shape[0]):
            distance += _dot(R[i], R[i], R.shape[1])
    size = 1.0
    for a in range(k):
        size += abs(basis.r[a])
    return distance if math.sqrt(distance) > _DEPENDENT * size else 0.0


@_jit
def _project(P: Rows, basis: Basis, k: int) -> float:
    """Factor the row at place k on the active rows; returns its distance² to them."""
    L, slot, new = basis.L, basis.slot[k], basis.row[k]
    square = 0.0
    for a in range(k):
        total = basis.gram[slot, basis.row[a]]
        for c in range(a):
            total -= L[a, c] * L[k, c]
        L[k, a] = total / L[a, a]
        square += L[k, a] * L[k, a]
    distance = basis.gram[slot, new] - square
    if distance < _DOUBTFUL:
        _coefficients(basis, k)
        distance = _measure(P, basis, k)
    L[k, k] = math.sqrt(distance)
    return distance


@_jit
def _subset(P: Rows, basis: Basis, size: int) -> int:
    """Keep rows, of the first ``size``, whose own solution has no negative multiplier."""
    while True:
        k = 0
        for c in range(size):
            _swap(basis, k, c)
            if _project(P, basis, k) > 0.0:
                k += 1
        for a in range(k):
            basis.dual[a] = P.bound[basis.row[a]]
        _lower(basis.L, basis.dual, k)
        _upper(basis.L, basis.dual, k)
        size = 0
        for a in range(k):
            if P.equality[basis.row[a]] or basis.dual[a] >= 0.0:
                _swap(basis, size, a)
                size += 1
        if size == k:
            return k


@_jit
def _slack(P: Rows, basis: Basis, k: int, slack: Floats) -> float:
    """slack_i = ⟨a_i, W⟩ − b_i at W = Σ dual_a a_a; returns ‖W‖."""
    square = 0.0
    for i in range(slack.size):
        slack[i] = -P.bound[i]
    for a in range(k):
        factor, slot = basis.dual[a], basis.slot[a]
        square += P.bound[basis.row[a]] * factor
        for i in range(slack.size):
            slack[i] += factor * basis.gram[slot, i]
    return math.sqrt(max(square, 0.0))


@_jit
def _violated(P: Rows, slack: Floats, norm: float, tolerance: float) -> int:
    """The row that is violated most, equalities first; -1 if there is none."""
    worst, row = 0.0, -1
    for i in range(slack.size):
        if P.usable[i]:
            allowed = tolerance * (abs(P.bound[i]) + norm)
            if P.equality[i] and abs(slack[i]) > allowed:
                return i
            if not P.equality[i] and slack[i] < worst and slack[i] < -allowed:
                worst, row = slack[i], i
    return row


@_jit
def _blocking(P: Rows, basis: Basis, k: int, sign: float) -> tuple[float, int]:
    """The longest step that keeps the multipliers ≥ 0, and the row that ends it."""
    step, blocking, size = np.inf, -1, 0.0
    for a in range(k):
        size = max(size, abs(basis.r[a]))
    for a in range(k):
        rate = sign * basis.r[a]
        if not P.equality[basis.row[a]] and rate > 1e-12 * size and basis.dual[a] < step * rate:
            step, blocking = basis.dual[a] / rate, a
    return step, blocking


@_jit
def _drop(basis: Basis, k: int, p: int) -> None:
    """Move active row p behind place k; rotations make the factor triangular again."""
    L = basis.L
    for a in range(p, k):
        _swap(basis, a, a + 1)
    for a in range(p, k - 1):
        basis.dual[a] = basis.dual[a + 1]
        for c in range(a + 2):
            L[a, c] = L[a + 1, c]
    for a in range(p, k - 1):
        x, y = L[a, a], L[a, a + 1]
        length = math.sqrt(x * x + y * y)
        cosine, sine = x / length, y / length
        L[a, a] = length
        for i in range(a + 1, k - 1):
            x, y = L[i, a], L[i, a + 1]
            L[i, a] = cosine * x + sine * y
            L[i, a + 1] = cosine * y - sine * x


@_jit
def _enter(P: Rows, basis: Basis, k: int, new: int, slack: float, noise: float) -> tuple[int, int]:
    """Bring a violated row in; returns the number of active rows and the outcome.

    SOLVED: the row is active. STALLED: its violation is rounding. INFEASIBLE: the basis
    up to and with place k is the Farkas proof.
    """
    sign = 1.0 if slack < 0.0 else -1.0
    missing, entering = abs(slack), 0.0
    _place(P, basis, k, new)
    while True:
        distance = _project(P, basis, k)
        if distance >= _DOUBTFUL:
            _coefficients(basis, k)
        step, blocking = _blocking(P, basis, k, sign)
        full = missing / distance if distance > 0.0 else np.inf
        if full == np.inf and missing <= noise:
            return k, STALLED
        if full == np.inf and blocking < 0:
            for a in range(k):
                basis.dual[a] = -sign * basis.r[a]
            basis.dual[k] = sign
            return k, INFEASIBLE
        step = min(step, full)
        _add(basis.dual, -sign * step, basis.r, k)
        entering += step
        if step == full:
            basis.dual[k] = sign * entering
            return k + 1, SOLVED
        missing -= step * distance
        _drop(basis, k, blocking)
        k -= 1


@_jit
def _refine(P: Rows, basis: Basis, k: int, W: Floats, slack: Floats) -> None:
    """Make the active rows tight at W itself; slack is left at the refined W."""
    W[:] = 0.0
    _combine(P, basis, basis.dual, k, W)
    g = np.empty(k)
    for round in range(3):
        _apply(P, W, slack)
        worst = 0.0
        for a in range(k):
            g[a] = P.bound[basis.row[a]] - slack[basis.row[a]]
            worst = max(worst, abs(g[a]) / (abs(P.bound[basis.row[a]]) + 1e-300))
        if worst <= _FINE or round == 2:
            break
        _lower(basis.L, g, k)
        _upper(basis.L, g, k)
        _add(basis.dual, 1.0, g, k)
        _combine(P, basis, g, k, W)
    for i in range(slack.size):
        slack[i] -= P.bound[i]


@_jit
def _iterate(P: Rows, basis: Basis, k: int, W: Floats) -> tuple[int, int, int]:
    """The main loop: returns active rows, outcome, iterations."""
    slack = np.empty(P.left.shape[0])
    for iteration in range(1, 100 + 20 * slack.size):
        norm = _slack(P, basis, k, slack)
        new = _violated(P, slack, norm, _COARSE)
        if new < 0:
            _refine(P, basis, k, W, slack)
            new = _violated(P, slack, norm, _FINE)
        if new < 0:
            return k, SOLVED, iteration
        noise = _ROUNDING * (abs(P.bound[new]) + norm)
        k, outcome = _enter(P, basis, k, new, slack[new], noise)
        if outcome == INFEASIBLE:
            return k + 1, INFEASIBLE, iteration
        if outcome == STALLED:
            P.usable[new] = False
    _refine(P, basis, k, W, slack)
    return k, STALLED, iteration


@_jit
def _normalise(P: Rows, length: Floats) -> int:
    """Unit rows and bounds in place; returns a row 0 ≥ b that no W satisfies, or -1."""
    M, d = P.left.shape
    Q, e = P.query.shape
    size = np.empty(Q)
    for q in range(Q):
        size[q] = math.sqrt(_dot(P.query[q], P.query[q], e))
        for j in range(e):
            P.query[q, j] /= size[q] if size[q] > 0.0 else 1.0
    for q in range(Q):
        for c in range(Q):
            P.gram_query[q, c] = _dot(P.query[q], P.query[c], e)
    for i in range(M):
        norm = math.sqrt(_dot(P.left[i], P.left[i], d))
        length[i] = norm * size[i // (M // Q)]
        if P.usable[i] and length[i] == 0.0:
            P.usable[i] = False
            if P.bound[i] > 0.0 or (P.equality[i] and P.bound[i] != 0.0):
                return i
        if not P.usable[i]:
            norm, length[i], P.bound[i] = 1.0, 1.0, 0.0
        P.bound[i] /= length[i]
        for c in range(d):
            P.left[i, c] /= norm
            P.columns[c, i] = P.left[i, c]
    return -1


@_jit
def _solve(P: Rows, basis: Basis, start: Bools, dual: Floats, W: Floats) -> tuple[int, int]:
    M = dual.size
    dual[:] = 0.0
    W[:] = 0.0
    length = np.empty(M)
    impossible = _normalise(P, length)
    if impossible >= 0:
        dual[impossible] = 1.0 if P.bound[impossible] > 0.0 else -1.0
        return INFEASIBLE, 0
    unit = 0.0
    for i in range(M):
        unit = max(unit, abs(P.bound[i]))
    if unit == 0.0:
        return SOLVED, 0
    for i in range(M):
        P.bound[i] /= unit
    size = 0
    for first in (True, False):
        for i in range(M):
            chosen = start[i] and P.usable[i] and P.equality[i] == first
            if chosen and size + 1 < basis.row.size:
                _place(P, basis, size, i)
                size += 1
    k, outcome, iterations = _iterate(P, basis, _subset(P, basis, size), W)
    for a in range(k):
        row = basis.row[a]
        value = basis.dual[a] * unit / length[row]
        dual[row] = value if P.equality[row] else max(value, 0.0)
    for i in range(W.shape[0]):
        for j in range(W.shape[1]):
            W[i, j] *= unit
    return outcome, iterations


@_jit
def solve_rows(
    left: Floats,
    query: Floats,
    bound: Floats,
    equality: Bools,
    usable: Bools,
    start: Bools,
    dual: Floats,
    W: Floats,
    outcome: Ints,
    iterations: Ints,
) -> None:
    """Solve a batch; the last four arrays receive the answer, all but two others are spent."""
    _, M, d = left.shape
    _, Q, e = query.shape
    most = min(M, d * e) + 1
    basis = Basis(
        np.empty(most, np.int64),
        np.arange(most),
        np.empty(most),
        np.empty((most, most)),
        np.empty(most),
        np.empty((most, M)),
    )
    columns, gram_query = np.empty((d, M)), np.empty((Q, Q))
    for b in range(left.shape[0]):
        P = Rows(left[b], columns, query[b], gram_query, bound[b], equality[b], usable[b])
        outcome[b], iterations[b] = _solve(P, basis, start[b], dual[b], W[b])
