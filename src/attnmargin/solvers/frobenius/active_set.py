"""Dual active-set kernel for the Frobenius margin problem, compiled with numba.

    min ½‖W‖²  subject to  ⟨a_i, W⟩ ≥ b_i  or  ⟨a_i, W⟩ = b_i,   a_i = left_i queryᵀ

The method is Goldfarb and Idnani (1983) on the Gram matrix of the rows. The iterate is always
the exact solution for the active rows alone. A violated row enters; rows whose multiplier would
turn negative leave. So the answer is a basis, not an approximation. If no step exists, the
active rows and the entering one form a Farkas proof with as few rows as its rank allows. Rows are
first scaled to about unit length by powers of two, so that the scale of the data does not matter
and nothing is rounded. Steps use the Gram matrix; the final refinement uses `W` itself, where
rounding is smaller.

All functions work on one problem; :func:`solve_rows` loops over a batch.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnmargin.base.kernels import Bools, Floats, Ints, add, dot, jit, jit_inline, kernel
from attnmargin.solvers.frobenius.basis import (
    SMALL,
    Basis,
    Rows,
    apply,
    coefficients,
    combine,
    drop,
    lower,
    place,
    project,
    swap,
    upper,
)
from attnmargin.solvers.outcome import INFEASIBLE, SOLVED, STALLED

# A violation by a dependent row is rounding if it is smaller than this.
_ROUNDING = 1e-9
# Violations that count: _COARSE of |b| and ‖W‖ while stepping on the Gram matrix; _FINE of |b| and
# _ULP of ‖W‖, the rounding of W itself, at the refined W.
_COARSE, _FINE, _ULP = 1e-11, 1e-14, 2e-16
# Relative growth of ‖W‖² that protecting a row from rounding may cost.
_CHEAP = 1e-13
# Sweeps of coordinate ascent that choose the rows to start with.
_SWEEPS = 5
# A coefficient below this share of the largest is rounding.
_NOTHING = 1e-12
# A counter that starts at a literal 0 makes numba compile the functions it is passed to twice.
_ZERO: Any = np.int64(0)


@jit
def _factor(P: Rows, basis: Basis, size: int) -> int:
    """Factor the independent rows among the first ``size``; return how many there are."""
    k = _ZERO
    for c in range(size):
        swap(basis, k, c)
        if project(P, basis, k) > 0.0:
            k += 1
    return k


@jit
def _subset(P: Rows, basis: Basis, size: int) -> int:
    """Reduce the first ``size`` rows to a set whose solution has no negative multiplier."""
    k = _factor(P, basis, size)
    while True:
        negative = 0
        for a in range(k):
            basis.dual[a] = P.bound[basis.row[a]]
        lower(basis.L, basis.dual, k)
        upper(basis.L, basis.dual, k)
        for a in range(k):
            if basis.dual[a] < 0.0 and not P.equality[basis.row[a]]:
                negative += 1
        if negative == 0:
            return k
        k = _shed(P, basis, k, few=4 * negative < k)


@jit
def _shed(P: Rows, basis: Basis, k: int, few: bool) -> int:
    """Drop all inequalities with a negative multiplier: by rotations if few, else refactor."""
    if few:
        for a in range(k - 1, -1, -1):
            if basis.dual[a] < 0.0 and not P.equality[basis.row[a]]:
                drop(basis, k, a)
                k -= 1
        return k
    size = _ZERO
    for a in range(k):
        if basis.dual[a] >= 0.0 or P.equality[basis.row[a]]:
            swap(basis, size, a)
            size += 1
    return _factor(P, basis, size)


@jit_inline
def _slack(P: Rows, basis: Basis, k: int, slack: Floats) -> float:
    """Compute slack_i = ⟨a_i, W⟩ − b_i at W = Σ dual_a a_a; return ‖W‖."""
    square = 0.0
    for i in range(slack.size):
        slack[i] = -P.bound[i]
    for a in range(k):
        factor, slot = basis.dual[a], basis.slot[a]
        square += P.bound[basis.row[a]] * factor
        for i in range(slack.size):
            slack[i] += factor * basis.gram[slot, i]
    return math.sqrt(max(square, 0.0))


@jit_inline
def _violated(P: Rows, basis: Basis, k: int, slack: Floats, share: float, noise: float) -> int:
    """Find the most violated inactive row, equalities first; -1 if there is none."""
    worst, row = 0.0, -1
    for a in range(k):
        slack[basis.row[a]] = 0.0
    for i in range(slack.size):
        if P.usable[i]:
            allowed = share * abs(P.bound[i]) + noise
            if P.equality[i] and abs(slack[i]) > allowed:
                return i
            if not P.equality[i] and slack[i] < worst and slack[i] < -allowed:
                worst, row = slack[i], i
    return row


@jit_inline
def _blocking(P: Rows, basis: Basis, k: int, sign: float) -> tuple[float, int]:
    """Find the longest step that keeps the multipliers ≥ 0, and the row that limits it."""
    step, blocking, size = np.inf, -1, 0.0
    for a in range(k):
        size = max(size, abs(basis.r[a]))
    for a in range(k):
        rate = sign * basis.r[a]
        if not P.equality[basis.row[a]] and rate > _NOTHING * size and basis.dual[a] < step * rate:
            step, blocking = basis.dual[a] / rate, a
    return step, blocking


@jit
def _prove(basis: Basis, k: int, sign: float) -> None:
    """Turn the coefficients of the row at place k into multipliers; set rounding to zero."""
    largest = 1.0
    for a in range(k):
        largest = max(largest, abs(basis.r[a]))
    for a in range(k):
        counts = abs(basis.r[a]) > _NOTHING * largest
        basis.dual[a] = -sign * basis.r[a] if counts else 0.0
    basis.dual[k] = sign


@jit
def _noise(P: Rows, basis: Basis, k: int) -> float:
    """Bound the violation ``b − Σ r_a b_a`` of the dependent row at place k due to rounding."""
    size = abs(P.bound[basis.row[k]])
    for a in range(k):
        size += abs(basis.r[a] * P.bound[basis.row[a]])
    return _ROUNDING * size


@jit
def _enter(P: Rows, basis: Basis, k: int, new: int, slack: float) -> tuple[int, int]:
    """Make a violated row active; return the number of active rows and the outcome.

    SOLVED: the row is active. STALLED: its violation is rounding. INFEASIBLE: the basis up to and
    including place k is the Farkas proof.
    """
    sign = 1.0 if slack < 0.0 else -1.0
    missing, entering = abs(slack), 0.0
    place(P, basis, k, new)
    while True:
        distance = project(P, basis, k)
        if distance >= SMALL:
            coefficients(basis, k)
        step, blocking = _blocking(P, basis, k, sign)
        full = missing / distance if distance > 0.0 else np.inf
        if full == np.inf and missing <= _noise(P, basis, k):
            return k, STALLED
        if full == np.inf and blocking < 0:
            _prove(basis, k, sign)
            return k, INFEASIBLE
        step = min(step, full)
        add(basis.dual, -sign * step, basis.r, k)
        entering += step
        if step == full:
            basis.dual[k] = sign * entering
            return k + 1, SOLVED
        missing -= step * distance
        drop(basis, k, blocking)
        k -= 1


@jit
def _refine(P: Rows, basis: Basis, k: int, norm: float, W: Floats, slack: Floats) -> None:
    """Make the active rows tight at W itself; set slack to its values at the refined W.

    If rounding still leaves an inequality violated, and its multiplier is so small that this costs
    nothing, aim a few units of rounding above its bound. Otherwise rows much longer than others
    would be missed by far.
    """
    W[:] = 0.0
    combine(P, basis, basis.dual, k, W)
    safety = 4 * _ULP * norm
    g, extra = np.empty(k), np.zeros(k)
    for round in range(6):
        apply(P.left, P.query, W, slack)
        missed = False
        for a in range(k):
            row = basis.row[a]
            bound = P.bound[row]
            below = bound - slack[row]
            cheap = basis.dual[a] * safety <= _CHEAP * norm * norm
            if round > 1 and below > _FINE * abs(bound) and cheap and not P.equality[row]:
                extra[a] += safety
            g[a] = below + extra[a]
            allowed = _FINE * abs(bound) + 0.5 * extra[a] if round > 0 else 0.0
            missed = missed or abs(g[a]) > allowed
        if not missed or round == 5:
            break
        lower(basis.L, g, k)
        upper(basis.L, g, k)
        add(basis.dual, 1.0, g, k)
        combine(P, basis, g, k, W)
    for i in range(slack.size):
        slack[i] -= P.bound[i]


@jit
def _iterate(P: Rows, basis: Basis, k: int, W: Floats) -> tuple[int, int, int]:
    """Run the main loop; return the number of active rows, outcome and iterations."""
    slack = np.empty(P.left.shape[0])
    for iteration in range(1, 100 + 20 * slack.size):
        norm = _slack(P, basis, k, slack)
        new = _violated(P, basis, k, slack, _COARSE, _COARSE * norm)
        if new < 0:
            _refine(P, basis, k, norm, W, slack)
            new = _violated(P, basis, k, slack, _FINE, _ULP * norm)
        if new < 0:
            return k, SOLVED, iteration
        k, outcome = _enter(P, basis, k, new, slack[new])
        if outcome == INFEASIBLE:
            return k + 1, INFEASIBLE, iteration
        if outcome == STALLED:
            P.usable[new] = False
    _refine(P, basis, k, norm, W, slack)
    return k, STALLED, iteration


@jit
def _power(x: float) -> float:
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
    scale = _power(largest)
    for c in range(rows.shape[1]):
        rows[i, c] /= scale
    norm = _power(math.sqrt(dot(rows[i], rows[i], rows.shape[1])))
    for c in range(rows.shape[1]):
        rows[i, c] /= norm
    return scale * norm


@jit
def _normalise(P: Rows, length: Floats) -> int:
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


@jit
def _guess(P: Rows, basis: Basis, size: int) -> int:
    """Keep, of the first ``size`` rows, those with a multiplier after some coordinate ascent."""
    value = np.zeros(P.left.shape[0])
    for a in range(size):
        basis.dual[a] = 0.0
    for _ in range(_SWEEPS):
        changed = False
        for a in range(size):
            row, slot, before = basis.row[a], basis.slot[a], basis.dual[a]
            rest = P.bound[row] - value[row]
            if before == 0.0 and rest <= 0.0 and not P.equality[row]:
                continue
            new = before + rest / basis.gram[slot, row]
            if new < 0.0 and not P.equality[row]:
                new = 0.0
            if new != before:
                basis.dual[a] = new
                add(value, new - before, basis.gram[slot], value.size)
                changed = changed or new == 0.0 or before == 0.0
        if not changed:
            break
    k = _ZERO
    for a in range(size):
        if basis.dual[a] != 0.0 or P.equality[basis.row[a]]:
            swap(basis, k, a)
            k += 1
    return k


@jit
def _begin(P: Rows, basis: Basis, start: Bools) -> int:
    """Make the starting rows basic, equalities first; return how many there are.

    If all rows are to start, only those that probably hold do.
    """
    size, every = _ZERO, True
    for first in (True, False):
        for i in range(start.size):
            every = every and start[i]
            chosen = start[i] and P.usable[i] and P.equality[i] == first
            if chosen and size + 1 < basis.row.size:
                place(P, basis, size, i)
                size += 1
    if every:
        size = _guess(P, basis, size)
    return _subset(P, basis, size)


@jit
def _deliver(P: Rows, basis: Basis, k: int, proof: bool, dual: Floats) -> None:
    """Rescale the multipliers from min ½‖W‖² to min ‖W‖, and a proof to bᵀλ = 1."""
    gain = 0.0
    for a in range(k):
        gain += P.bound[basis.row[a]] * basis.dual[a]
    size = gain if proof else math.sqrt(max(gain, 0.0))
    for a in range(k):
        row = basis.row[a]
        value = basis.dual[a] / size if size > 0.0 else 0.0
        dual[row] = value if P.equality[row] else max(value, 0.0)


@jit
def _solve(P: Rows, basis: Basis, start: Bools, dual: Floats, W: Floats) -> tuple[int, int]:
    """Solve one problem into dual and W; return outcome and iterations."""
    dual[:] = 0.0
    W[:] = 0.0
    length = np.empty(dual.size)
    impossible = _normalise(P, length)
    if impossible >= 0:
        dual[impossible] = 1.0 / P.bound[impossible]
        return INFEASIBLE, 0
    unit = 0.0
    for i in range(dual.size):
        unit = max(unit, abs(P.bound[i]))
    if unit == 0.0:
        return SOLVED, 0
    unit = _power(unit)
    for i in range(dual.size):
        P.bound[i] /= unit
    k, outcome, iterations = _iterate(P, basis, _begin(P, basis, start), W)
    proof = outcome == INFEASIBLE
    _deliver(P, basis, k, proof, dual)
    for i in range(dual.size):
        dual[i] /= length[i] * unit if proof else length[i]
    for i in range(W.shape[0]):
        for j in range(W.shape[1]):
            W[i, j] *= unit
    return outcome, iterations


def smallest() -> list[NDArray[Any]]:
    """Return arguments of :func:`solve_rows` for no problem at all: enough to compile it."""
    row, one, flag = np.empty((0, 1)), np.empty((0, 1, 1)), np.empty((0, 1), np.bool_)
    count = np.empty(0, np.int64)
    return [one, one, row, flag, flag, flag, row, one, count, count]


@kernel("Frobenius solver", 6, plain=True)
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
    """Solve a batch into the last four arrays; ``left, query, bound, usable`` are overwritten."""
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
    columns, gram_query, known = np.empty((d, M)), np.empty((Q, Q)), np.empty(Q, np.bool_)
    for b in range(left.shape[0]):
        rows = (bound[b], equality[b], usable[b])
        P = Rows(left[b], columns, query[b], gram_query, known, *rows)
        outcome[b], iterations[b] = _solve(P, basis, start[b], dual[b], W[b])
