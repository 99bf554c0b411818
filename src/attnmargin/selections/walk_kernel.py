"""All selections of an instance, one after another, compiled with numba.

Selections are built sequence by sequence. The SVM of a beginning is solved by a dual active-set
method (Goldfarb and Idnani, 1983) on one Gram matrix of all tokens, and each of its continuations
starts from there: only the rows of one more sequence have to enter. A selection is *clear* if no
row is nearly tight and no multiplier nearly zero. Clear selections that a higher token pulls away
are counted here; all others, and beginnings that seem infeasible, are left to the exact solvers.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from attnmargin.base.kernels import Bools, Floats, Ints, jit, kernel

# Rows that miss their bound by less are satisfied; rows above it by less may be tight.
_MISSED, _NEAR = 1e-9, 1e-7
# Shares of ‖W‖² below which a multiplier may be zero.
_SMALL = 1e-7
# Squared sines of a row with the active ones: dependent below the first, doubtful below the second.
_DEPENDENT, _UNSURE = 1e-13, 1e-9
# A counter that starts at a literal 0 makes numba compile the functions it is passed to twice.
_ZERO: Any = np.int64(0)

SEARCHED, FEASIBLE, NO_SUPPORT, NOT_ALL, OUTSIDE, FOUND, FULL = range(7)


class Tokens(NamedTuple):
    """One instance of N sequences of T tokens."""

    gram: Floats  # (NT, NT): ⟨x_it, x_js⟩ ⟨z_i, z_j⟩, scaled
    bound: Floats  # (N,): the scaled margin
    visible: Bools  # (N, T)
    high: Bools  # (N, T, T): for a selected token, the others of no lower score
    best: Ints  # (N,)
    level: float  # share of the margin by which a low token stands above the high ones


class Active(NamedTuple):
    """The active rows of a beginning, and the Cholesky factor of their Gram matrix."""

    sequence: Ints
    token: Ints
    dual: Floats
    L: Floats
    size: Ints  # (1,)


class Work(NamedTuple):
    """Space for one solve."""

    alpha: Ints  # (N,)
    logits: Floats  # (NT,)
    row: Floats
    r: Floats


@jit
def _entry(P: Tokens, alpha: Ints, i: int, t: int, j: int, s: int) -> float:
    T = P.visible.shape[1]
    a, b, c, d = i * T + alpha[i], i * T + t, j * T + alpha[j], j * T + s
    return P.gram[a, c] - P.gram[a, d] - P.gram[b, c] + P.gram[b, d]


@jit
def _logits(P: Tokens, S: Active, w: Work, depth: int) -> None:
    """Compute the logits of the sequences up to depth at ``W = Σ λ_a A_a``."""
    T = P.visible.shape[1]
    end = depth * T
    w.logits[:end] = 0.0
    for a in range(S.size[0]):
        factor, i = S.dual[a], S.sequence[a]
        own, other = P.gram[i * T + w.alpha[i]], P.gram[i * T + S.token[a]]
        for k in range(end):
            w.logits[k] += factor * (own[k] - other[k])


@jit
def _worst(P: Tokens, w: Work, depth: int) -> tuple[int, int, float]:
    """Find the row that misses its bound by the largest share."""
    T = P.visible.shape[1]
    least, sequence, token = -_MISSED, -1, -1
    for i in range(depth):
        own = w.logits[i * T + w.alpha[i]]
        for t in range(T):
            if t != w.alpha[i] and P.visible[i, t]:
                slack = (own - w.logits[i * T + t]) / P.bound[i] - 1.0
                if slack < least:
                    least, sequence, token = slack, i, t
    return sequence, token, least


@jit
def _project(P: Tokens, S: Active, w: Work, i: int, t: int) -> float:
    """Solve ``L y = K_S,new``; return ``K_new − |y|²`` and leave ``r = L⁻ᵀ y``."""
    k = S.size[0]
    whole = _entry(P, w.alpha, i, t, i, t)
    rest = whole
    for a in range(k):
        value = _entry(P, w.alpha, S.sequence[a], S.token[a], i, t)
        for b in range(a):
            value -= S.L[a, b] * w.row[b]
        w.row[a] = value / S.L[a, a]
        rest -= w.row[a] * w.row[a]
    for a in range(k - 1, -1, -1):
        value = w.row[a]
        for b in range(a + 1, k):
            value -= S.L[b, a] * w.r[b]
        w.r[a] = value / S.L[a, a]
    return rest / whole if whole > 0.0 else 0.0


@jit
def _drop(P: Tokens, S: Active, w: Work, gone: int) -> None:
    """Remove an active row, and factor what comes after it again."""
    k = S.size[0] - 1
    for a in range(gone, k):
        S.sequence[a], S.token[a] = S.sequence[a + 1], S.token[a + 1]
        S.dual[a] = S.dual[a + 1]
    S.size[0] = k
    for a in range(gone, k):
        for b in range(a + 1):
            value = _entry(P, w.alpha, S.sequence[a], S.token[a], S.sequence[b], S.token[b])
            for c in range(b):
                value -= S.L[a, c] * S.L[b, c]
            S.L[a, b] = math.sqrt(max(value, 1e-300)) if a == b else value / S.L[b, b]


@jit
def _enter(P: Tokens, S: Active, w: Work, i: int, t: int, slack: float) -> bool:
    """Make a violated row active; false if that seems impossible, or is in doubt."""
    missing, entering = -slack * P.bound[i], 0.0
    whole = _entry(P, w.alpha, i, t, i, t)
    while True:
        sine = _project(P, S, w, i, t)
        k = S.size[0]
        if _DEPENDENT < sine < _UNSURE:
            return False
        step, blocking, largest = np.inf, -1, 0.0
        for a in range(k):
            largest = max(largest, abs(w.r[a]))
        for a in range(k):
            if w.r[a] > 1e-12 * largest and S.dual[a] < step * w.r[a]:
                step, blocking = S.dual[a] / w.r[a], a
        full = missing / (sine * whole) if sine >= _UNSURE else np.inf
        if full == np.inf and blocking < 0:
            return False
        step = min(step, full)
        for a in range(k):
            S.dual[a] -= step * w.r[a]
        entering += step
        if step == full:
            S.sequence[k], S.token[k], S.dual[k] = i, t, entering
            for b in range(k):
                S.L[k, b] = w.row[b]
            S.L[k, k] = math.sqrt(sine * whole)
            S.size[0] = k + 1
            return True
        missing -= step * sine * whole if sine >= _UNSURE else 0.0
        _drop(P, S, w, blocking)


@jit
def _solve(P: Tokens, S: Active, w: Work, depth: int) -> bool:
    """Continue a solution until all rows of the sequences up to depth are satisfied."""
    for _ in range(20 * depth * P.visible.shape[1]):
        _logits(P, S, w, depth)
        i, t, slack = _worst(P, w, depth)
        if i < 0:
            return True
        if not _enter(P, S, w, i, t, slack):
            return False
    return False


@jit
def _is_active(S: Active, i: int, t: int) -> bool:
    found = False
    for a in range(S.size[0]):
        found = found or (S.sequence[a] == i and S.token[a] == t)
    return found


@jit
def _clear(P: Tokens, S: Active, w: Work) -> bool:
    """Check that active rows are tight, others are not, and no multiplier is nearly zero."""
    N, T = P.visible.shape
    total = 0.0
    for a in range(S.size[0]):
        total += S.dual[a] * P.bound[S.sequence[a]]
    for a in range(S.size[0]):
        if S.dual[a] * P.bound[S.sequence[a]] < _SMALL * total:
            return False
    for i in range(N):
        own = w.logits[i * T + w.alpha[i]]
        for t in range(T):
            if t == w.alpha[i] or not P.visible[i, t]:
                continue
            slack = (own - w.logits[i * T + t]) / P.bound[i] - 1.0
            active = _is_active(S, i, t)
            if (active and abs(slack) > _MISSED) or (not active and slack < _NEAR):
                return False
    return True


@jit
def _pulled(P: Tokens, S: Active, w: Work) -> bool:
    for a in range(S.size[0]):
        i = S.sequence[a]
        if P.high[i, w.alpha[i], S.token[a]]:
            return True
    return False


@jit
def _inside(P: Tokens, w: Work) -> bool:
    """Check whether in every sequence a low token stands above all high ones."""
    N, T = P.visible.shape
    for i in range(N):
        low, high = -np.inf, -np.inf
        for t in range(T):
            if t == w.alpha[i] or not P.visible[i, t]:
                continue
            if P.high[i, w.alpha[i], t]:
                high = max(high, w.logits[i * T + t])
            else:
                low = max(low, w.logits[i * T + t])
        if high > -np.inf and not low - high > P.level * P.bound[i]:
            return False
    return True


@jit
def _count(P: Tokens, S: Active, w: Work, count: Ints) -> None:
    """Count a clear selection that a higher token pulls away."""
    some, all_of_them, others = False, True, 0
    for i in range(P.best.size):
        if w.alpha[i] != P.best[i]:
            others += 1
            guarded = _is_active(S, i, P.best[i])
            some, all_of_them = some or guarded, all_of_them and guarded
    count[SEARCHED] += 1
    count[FEASIBLE] += 1
    if others > 0 and not some:
        count[NO_SUPPORT] += 1
    if others > 0 and not all_of_them:
        count[NOT_ALL] += 1
    if _inside(P, w):
        count[OUTSIDE] += 1


@jit
def _emit(w: Work, depth: int, count: Ints, found: Ints) -> None:
    """Leave a selection, or a beginning, to the exact solvers."""
    if count[FOUND] >= found.shape[0]:
        count[FULL] = 1
        return
    for i in range(w.alpha.size):
        found[count[FOUND], i] = w.alpha[i] if i < depth else -1
    count[FOUND] += 1


@jit
def _copy(to: Active, S: Active) -> None:
    k = S.size[0]
    to.size[0] = k
    for a in range(k):
        to.sequence[a], to.token[a], to.dual[a] = S.sequence[a], S.token[a], S.dual[a]
        for b in range(a + 1):
            to.L[a, b] = S.L[a, b]


@jit
def _state(states: Active, k: int) -> Active:
    """The solution of k sequences, among those of all numbers of sequences."""
    return Active(states.sequence[k], states.token[k], states.dual[k], states.L[k], states.size[k])


@jit
def _walk(P: Tokens, states: Active, w: Work, begun: Ints, count: Ints, found: Ints) -> None:
    """Visit all continuations of a beginning, depth first."""
    N, T = P.visible.shape
    first = begun.size
    for i in range(first):
        w.alpha[i] = begun[i]
    start = _state(states, first)
    start.size[0] = 0
    if not _solve(P, start, w, first):
        _emit(w, first, count, found)
        return
    depth = first
    if depth == N:
        _leaf(P, start, w, count, found)
        return
    w.alpha[depth] = -1
    while depth >= first and count[FULL] == 0:
        w.alpha[depth] += 1
        if w.alpha[depth] == T:
            depth -= 1
            continue
        if not P.visible[depth, w.alpha[depth]]:
            continue
        S = _state(states, depth + 1)
        _copy(S, _state(states, depth))
        if not _solve(P, S, w, depth + 1):
            _emit(w, depth + 1, count, found)
        elif depth + 1 == N:
            _leaf(P, S, w, count, found)
        else:
            depth += 1
            w.alpha[depth] = -1


@jit
def _leaf(P: Tokens, S: Active, w: Work, count: Ints, found: Ints) -> None:
    if _clear(P, S, w) and _pulled(P, S, w):
        _count(P, S, w, count)
    else:
        _emit(w, w.alpha.size, count, found)


@kernel("search for selections", 5)
def walk_selections(
    gram: Floats,
    bound: Floats,
    visible: Bools,
    high: Bools,
    best: Ints,
    level: float,
    begun: Ints,
    counts: Ints,
    found: Ints,
) -> None:
    """Visit all continuations of beginnings ``(B, k)``; counts ``(B, 7)``, found ``(B, F, N)``."""
    P = Tokens(gram, bound, visible, high, best, level)
    N, T = visible.shape
    most = N * (T - 1) + 1
    shape = (N + 1, most)
    states = Active(np.empty(shape, np.int64), np.empty(shape, np.int64), np.empty(shape),
                    np.empty((N + 1, most, most)), np.zeros((N + 1, 1), np.int64))  # fmt: skip
    w = Work(np.zeros(N, np.int64), np.empty(N * T), np.empty(most), np.empty(most))
    for b in range(begun.shape[0]):
        _walk(P, states, w, begun[b], counts[b], found[b])
