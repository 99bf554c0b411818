"""The walk of :mod:`attnmargin.solvers.interior.lp` for one problem at a time, compiled with numba.

The steps are the same, but the rows ``a_i = left_i queryᵀ`` are never formed. Grouped by query,
the Schur matrix of weights ``D`` on the entries of W has the blocks

    U_k diag(w_kl) U_lᵀ,   w_kl = D (z_k ∘ z_l),

so a wide W costs little.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from attnmargin.base.kernels import Bools, Floats, Ints, add, copy, copy_rows, dot, jit, kernel
from attnmargin.solvers.frobenius.basis import apply, lower, upper
from attnmargin.solvers.interior.linear import (
    cholesky,
    combine,
    complementarity,
    ratio_step,
    shortfall,
)
from attnmargin.solvers.interior.schedule import (
    CAREFUL_ITERATIONS,
    CAREFUL_PART,
    ENOUGH,
    GOOD,
    ITERATIONS,
    LARGEST_WEIGHT,
    LEAST_CENTRED,
    LP_LEAST_RATIO,
    LP_STAY_INSIDE,
    REGULAR,
    TINY,
    power_at,
)

_power_at = jit(power_at)


class Rows(NamedTuple):
    """One problem with rows of unit length; a row that does not exist is 0 ≥ −1."""

    left: Floats  # (M, d)
    query: Floats  # (Q, e); row i belongs to query i // (M / Q)
    b: Floats  # (M,)
    free: Bools  # (M,)


class Point(NamedTuple):
    """An interior point, with the data of Newton's system."""

    dual: Floats  # (M,)
    slack: Floats  # (M,)
    W: Floats  # (d, e)
    V: Floats  # (d, e), Σ λ_i a_i
    values: Floats  # (M,), ⟨a_i, W⟩
    weight: Floats  # (d, e)
    residual: Floats  # (d, e), V − ∇½‖W‖_p², zero for p < 2
    offset: Floats  # (M,), effect of the residual on the row values
    L: Floats  # (M, M), Cholesky factor with the reciprocals of its diagonal


class Start(NamedTuple):
    """The start of a walk."""

    dual: Floats
    slack: Floats
    W: Floats


class Move(NamedTuple):
    """A direction."""

    dual: Floats
    slack: Floats
    W: Floats


@jit
def _curvature(x: Floats, p: float, out: Floats) -> float:
    """Compute out = (|x| / ‖x‖_p)^{p−2} for p ≥ 2: ∇½‖x‖_p² = out ∘ x; return ‖x‖_p."""
    largest = TINY
    for value in x.flat:
        largest = max(largest, abs(value))
    total = 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            ratio = abs(x[i, j]) / largest
            out[i, j] = ratio ** (p - 2.0)
            total += out[i, j] * ratio * ratio
    root = max(total, TINY) ** (1.0 / p)
    scale = root ** (2.0 - p)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] *= scale
    return largest * root


@jit
def _norm(x: Floats, p: float) -> float:
    largest, total = TINY, 0.0
    for value in x.flat:
        largest = max(largest, abs(value))
    for value in x.flat:
        total += (abs(value) / largest) ** p
    return largest * total ** (1.0 / p)


@jit
def _arrive(P: Rows, at: Point, p: float) -> float:
    """Compute V, W, weights, residual and row values at (λ, W); return the norm in the weights.

    For p < 2, W is a function of λ and the norm is ‖V‖_q; otherwise it is ‖W‖_p.
    """
    combine(P.left, P.query, at.dual, at.V)
    if p < 2.0:
        q = p / (p - 1.0)
        norm = _curvature(at.V, q, at.weight)
        for i in range(at.W.shape[0]):
            for j in range(at.W.shape[1]):
                at.W[i, j] = at.V[i, j] * at.weight[i, j]
                at.weight[i, j] *= q - 1.0
    else:
        norm = _curvature(at.W, p, at.weight)
        for i in range(at.W.shape[0]):
            for j in range(at.W.shape[1]):
                at.residual[i, j] = at.V[i, j] - at.W[i, j] * at.weight[i, j]
                curvature = (p - 1.0) * at.weight[i, j]
                at.weight[i, j] = 1.0 / max(curvature, 1.0 / LARGEST_WEIGHT)
    apply(P.left, P.query, at.W, at.values)
    return norm


@jit
def _gap(P: Rows, at: Point, p: float, norm: float) -> float:
    """Compute the relative duality gap."""
    lift, error = shortfall(P.free, P.b, at.values, 1e-3)
    gain = dot(P.b, at.dual, P.b.size)
    # The gradient map preserves the norm: ‖∇½‖V‖_q²‖_p = ‖V‖_q.
    size = norm if p < 2.0 else _norm(at.V, p / (p - 1.0))
    upper_bound = norm * lift
    gap = max(abs(upper_bound - gain / size) / upper_bound, error)
    return gap if np.isfinite(gap) else np.inf


@jit
def _bend(p: float, norm: float) -> float:
    """Return the factor of the rank-one term W Wᵀ in the response of W to V."""
    if p < 2.0:
        return (2.0 - p / (p - 1.0)) / (norm * norm)
    return (p - 2.0) / (p - 1.0) / (norm * norm)


@jit
def _respond(at: Point, bend: float, x: Floats, out: Floats) -> None:
    """Compute the change of W for a change x of V: weights and a rank-one term."""
    inner = 0.0
    for i in range(x.shape[0]):
        inner += dot(at.W[i], x[i], x.shape[1])
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] = at.weight[i, j] * x[i, j] + bend * inner * at.W[i, j]


@jit
def _schur(P: Rows, at: Point, bend: float) -> None:
    """Build the lower triangle of the Schur matrix in λ, block by block."""
    M, d = P.left.shape
    Q, e = P.query.shape
    S = M // Q
    product, w, scaled = np.empty(e), np.empty(d), np.empty(d)
    for k in range(Q):
        for other in range(k + 1):
            for j in range(e):
                product[j] = P.query[k, j] * P.query[other, j]
            for a in range(d):
                w[a] = dot(at.weight[a], product, e)
            for i in range(k * S, (k + 1) * S):
                for a in range(d):
                    scaled[a] = w[a] * P.left[i, a]
                for m in range(other * S, min((other + 1) * S, i + 1)):
                    at.L[i, m] = dot(scaled, P.left[m], d) + bend * at.values[i] * at.values[m]


@jit
def _factor(P: Rows, at: Point) -> None:
    """Factor the Schur matrix with its barrier term."""
    for i in range(P.b.size):
        barrier = 0.0 if P.free[i] else at.slack[i] / at.dual[i]
        at.L[i, i] += barrier + REGULAR * at.L[i, i]
    cholesky(at.L)


@jit
def _direction(P: Rows, at: Point, mu: float, move: Move) -> None:
    """Compute Newton's step to s λ = μ, with the second-order term of the step in ``move``."""
    M = P.b.size
    for i in range(M):
        aim = mu - move.dual[i] * move.slack[i]
        move.slack[i] = 0.0 if P.free[i] else aim / at.dual[i]
        move.dual[i] = P.b[i] - at.values[i] - at.offset[i] + move.slack[i]
    lower(at.L, move.dual, M)
    upper(at.L, move.dual, M)
    for i in range(M):
        if not P.free[i]:
            move.slack[i] -= at.slack[i] + at.slack[i] / at.dual[i] * move.dual[i]


@jit
def _length(P: Rows, at: Point, move: Move) -> float:
    """Find the longest step ≤ 1 that keeps λ and s positive."""
    step = ratio_step(P.free, at.dual, move.dual, 1.0 / LP_STAY_INSIDE)
    return LP_STAY_INSIDE * ratio_step(P.free, at.slack, move.slack, step)


@jit
def _mean(P: Rows, at: Point, move: Move, step: float) -> float:
    """Compute μ after a step."""
    total, count = complementarity(P.free, at.dual, move.dual, at.slack, move.slack, step)
    return total / max(count, 1)


@jit
def _step(P: Rows, at: Point, move: Move, least: float, careful: bool) -> float:
    """Compute a predictor-corrector step, or a short, well-centred one; return its length."""
    mu, aim, length = 0.0, 0.0, 0.0
    for corrector in (False, True):
        if careful or not corrector:
            move.dual[:] = 0.0
            move.slack[:] = 0.0
        if not corrector:
            mu = _mean(P, at, move, 0.0)
        _direction(P, at, aim, move)
        length = _length(P, at, move)
        if not corrector and mu > 0.0:
            ratio = min(max(_mean(P, at, move, length) / mu, LP_LEAST_RATIO), 1.0)
            aim = max(ratio**3, least) * mu
    return CAREFUL_PART * length if careful else length


@jit
def _advance(P: Rows, at: Point, move: Move, bend: float, step: float) -> bool:
    """Take a step; return false if it is not finite or has no length."""
    M, (d, e) = P.b.size, at.W.shape
    if not np.isfinite(dot(move.dual, move.dual, M)) or step <= 0.0:
        return False
    combine(P.left, P.query, move.dual, at.V)
    for i in range(d):
        add(at.V[i], 1.0, at.residual[i], e)
    _respond(at, bend, at.V, move.W)
    add(at.dual, step, move.dual, M)
    add(at.slack, step, move.slack, M)
    for i in range(d):
        add(at.W[i], step, move.W[i], e)
    return True


@jit
def _begin(at: Point, start: Start) -> None:
    """Go to the start."""
    copy(at.dual, start.dual)
    copy(at.slack, start.slack)
    copy_rows(at.W, start.W)
    at.residual[:] = 0.0
    at.offset[:] = 0.0


@jit
def _solve(P: Rows, at: Point, start: Start, powers: Floats, dual: Floats, W: Floats) -> int:
    """Walk by long steps, then by careful ones if those fail; return the iterations.

    dual and W receive the best point.
    """
    goal, record, steps = powers[1], np.inf, 0
    move = Move(np.empty(at.dual.shape), np.empty(at.dual.shape), np.empty(at.W.shape))
    for careful in (False, True):
        _begin(at, start)
        for k in range(CAREFUL_ITERATIONS if careful else ITERATIONS):
            p = _power_at(powers[0], goal, k, careful)
            norm = _arrive(P, at, p)
            gap = _gap(P, at, p, norm) if p == goal else np.inf
            better = gap < record
            if better:
                record = gap
                copy(dual, at.dual)
                copy_rows(W, at.W)
            if record <= ENOUGH or (record <= GOOD and not better):
                return steps
            steps += 1
            bend = _bend(p, norm)
            if p > 2.0:
                _respond(at, bend, at.residual, move.W)
                apply(P.left, P.query, move.W, at.offset)
            _schur(P, at, bend)
            _factor(P, at)
            least = LEAST_CENTRED if careful or p != goal else 0.0
            if not _advance(P, at, move, bend, _step(P, at, move, least, careful)):
                break
    return steps


def smallest() -> list[NDArray[Any]]:
    """Return empty arguments of :func:`solve_rows`, enough to compile it."""
    row, one = np.empty((0, 1)), np.empty((0, 1, 1))
    free = np.empty((0, 1), np.bool_)
    return [one, one, row, free, row, row, one, np.empty((0, 2)), row, one, np.empty(0, np.int64)]


@kernel("ℓp solver", 4, plain=True)
def solve_rows(
    left: Floats,
    query: Floats,
    b: Floats,
    free: Bools,
    start_dual: Floats,
    start_slack: Floats,
    start_W: Floats,
    powers: Floats,
    dual: Floats,
    W: Floats,
    iterations: Ints,
) -> None:
    """Walk a batch of unit rows from its start; write the answer to the last three arrays."""
    _, M, d = left.shape
    e = query.shape[2]
    rows, entries = np.empty((4, M)), np.empty((4, d, e))
    at = Point(
        rows[0],
        rows[1],
        entries[0],
        entries[1],
        rows[2],
        entries[2],
        entries[3],
        rows[3],
        np.empty((M, M)),
    )
    for i in range(left.shape[0]):
        P = Rows(left[i], query[i], b[i], free[i])
        start = Start(start_dual[i], start_slack[i], start_W[i])
        copy(dual[i], start.dual)
        copy_rows(W[i], start.W)
        iterations[i] = _solve(P, at, start, powers[i], dual[i], W[i])
