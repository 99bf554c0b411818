"""The walk of :mod:`attnmargin.solvers.interior.nuclear` for one problem at a time, in numba.

The steps are the same; the bookkeeping differs. Everything is stored in the eigenbasis of F, which
turns from step to step. Rows are stored in columns, so that inner loops run over them. They are
grouped by query, so the Schur matrix needs ``T_j z_k`` only once for every row j and query k. Step
lengths come from trial Cholesky factors instead of eigenvalues.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from attnmargin.base.kernels import (
    Bools,
    Floats,
    Ints,
    add,
    copy,
    copy_rows,
    dot,
    inner,
    jit,
    kernel,
)
from attnmargin.solvers.frobenius.basis import apply
from attnmargin.solvers.interior.linear import (
    cholesky,
    combine,
    complementarity,
    product,
    ratio_step,
    substitute,
)
from attnmargin.solvers.interior.nuclear_system import Point, Rows, arrive, gap, system
from attnmargin.solvers.interior.schedule import (
    CAREFUL_ITERATIONS,
    CAREFUL_PART,
    ENOUGH,
    GOOD,
    ITERATIONS,
    LEAST_CENTRED,
    NUCLEAR_LEAST_RATIO,
    NUCLEAR_STAY_INSIDE,
    TINY,
)

# Relative precision of a step length.
_PRECISE = 1e-2


class Move(NamedTuple):
    """A direction with the data for its second-order terms."""

    dual: Floats
    slack: Floats
    Y: Floats
    F: Floats  # (q, q) first-order change of F
    M: Floats  # (d, q) change of M
    square: Floats  # (q, q), its MᵀM


@jit
def _target(at: Point, before: Move, mu: float) -> Floats:
    """Divide the target of sym((Y + dY)(F + dF)) by the mean eigenvalues of F."""
    q = at.f.size
    out, FY, SY = np.empty((q, q)), np.empty((q, q)), np.empty((q, q))
    product(before.F, before.Y, FY)
    product(before.square, at.Y, SY)
    for a in range(q):
        for e in range(q):
            wanted = mu if a == e else 0.0
            wanted -= 0.5 * (FY[a, e] + FY[e, a] - SY[a, e] - SY[e, a])
            out[a, e] = 2.0 * wanted / (at.f[a] + at.f[e])
    return out


@jit
def _multipliers(P: Rows, at: Point, scaled: Floats, mu: float, move: Move) -> None:
    """Compute dλ and ds of the step, overwriting those of the earlier step."""
    d, q = at.M.shape
    part, curve, rest = np.empty((d, q)), np.empty((d, q)), np.empty(P.b.size)
    product(at.M, scaled, part)
    product(move.M, move.Y, curve)
    for i in range(part.shape[0]):
        add(part[i], 1.0, curve[i], part.shape[1])
    apply(P.left, at.query, part, rest)
    for i in range(P.b.size):
        aim = mu - move.dual[i] * move.slack[i]
        move.slack[i] = 0.0 if P.free[i] else aim / at.dual[i]
        move.dual[i] = P.b[i] + move.slack[i] - 2.0 * rest[i]
    substitute(at.schur, at.pivot, move.dual)
    for i in range(P.b.size):
        if not P.free[i]:
            move.slack[i] -= at.slack[i] + at.slack[i] / at.dual[i] * move.dual[i]


@jit
def _direction(P: Rows, at: Point, mu: float, move: Move) -> None:
    """Compute the step to Y F = μ I, s λ = μ, with second-order terms of the step in ``move``."""
    q = at.f.size
    scaled = _target(at, move, mu)
    _multipliers(P, at, scaled, mu, move)
    combine(P.left, at.query, move.dual, move.M)
    inner(move.M, move.M, move.square)
    change, FY = np.empty((q, q)), np.empty((q, q))
    inner(at.M, move.M, change)
    for a in range(q):
        for e in range(q):
            move.F[a, e] = -change[a, e] - change[e, a]
    product(move.F, at.Y, FY)
    for a in range(q):
        for e in range(q):
            turned = (FY[a, e] + FY[e, a]) / (at.f[a] + at.f[e])
            move.Y[a, e] = scaled[a, e] - at.Y[a, e] - turned


@jit
def _inside(at: Point, move: Move, step: float, trial: Floats) -> bool:
    """Check whether Y and F stay positive definite after a step."""
    q = at.f.size
    for a in range(q):
        for e in range(a + 1):
            trial[a, e] = step * (move.F[a, e] - step * move.square[a, e])
        trial[a, a] += at.f[a]
    if not cholesky(trial):
        return False
    for a in range(q):
        for e in range(a + 1):
            trial[a, e] = at.Y[a, e] + step * move.Y[a, e]
    return cholesky(trial)


@jit
def _length(P: Rows, at: Point, move: Move) -> float:
    """Find the longest step ≤ 1 that keeps λ, s, Y and F positive."""
    step = ratio_step(P.free, at.dual, move.dual, 1.0 / NUCLEAR_STAY_INSIDE)
    step = ratio_step(P.free, at.slack, move.slack, step)
    trial = np.empty(at.Y.shape)
    if _inside(at, move, step, trial):
        return NUCLEAR_STAY_INSIDE * step
    good, bad = 0.0, step
    while bad - good > _PRECISE * bad and bad > TINY:
        middle = 0.5 * (good + bad)
        if _inside(at, move, middle, trial):
            good = middle
        else:
            bad = middle
    return NUCLEAR_STAY_INSIDE * good


@jit
def _mean(P: Rows, at: Point, move: Move, step: float) -> float:
    """Compute μ after a step."""
    total, count = complementarity(P.free, at.dual, move.dual, at.slack, move.slack, step)
    for a in range(at.f.size):
        total += (at.Y[a, a] + step * move.Y[a, a]) * at.f[a]
        for e in range(at.f.size):
            change = step * (move.F[a, e] - step * move.square[a, e])
            total += (at.Y[a, e] + step * move.Y[a, e]) * change
    return total / (count + at.f.size)


@jit
def _rest(move: Move) -> None:
    """Reset the move to zero."""
    move.dual[:] = 0.0
    move.slack[:] = 0.0
    move.Y[:] = 0.0
    move.F[:] = 0.0
    move.M[:] = 0.0
    move.square[:] = 0.0


@jit
def _step(P: Rows, at: Point, move: Move, careful: bool) -> float:
    """Compute a predictor-corrector step, or a short, well-centred one; return its length."""
    mu, ratio, length = 0.0, 0.0, 0.0
    for corrector in (False, True):
        if careful or not corrector:
            _rest(move)
        if not corrector:
            mu = _mean(P, at, move, 0.0)
        aim = max(ratio, LEAST_CENTRED) if careful else ratio**3
        _direction(P, at, aim * mu if corrector else 0.0, move)
        length = _length(P, at, move)
        if not corrector:
            ratio = min(max(_mean(P, at, move, length) / mu, NUCLEAR_LEAST_RATIO), 1.0)
    return CAREFUL_PART * length if careful else length


@jit
def _advance(at: Point, move: Move, step: float) -> bool:
    """Take a step; return false if it is not finite or has no length."""
    size = dot(move.dual, move.dual, at.dual.size)
    for a in range(at.f.size):
        size += dot(move.Y[a], move.Y[a], at.f.size)
    if not np.isfinite(size) or step <= 0.0:
        return False
    add(at.dual, step, move.dual, at.dual.size)
    add(at.slack, step, move.slack, at.dual.size)
    for a in range(at.f.size):
        add(at.Y[a], step, move.Y[a], at.f.size)
    return True


@jit
def _begin(P: Rows, at: Point, dual: Floats, slack: Floats, scale: float) -> None:
    """Go to the start, with a multiple of the identity for Y."""
    copy(at.dual, dual)
    copy(at.slack, slack)
    at.Y[:] = 0.0
    at.basis[:] = 0.0
    for a in range(at.f.size):
        at.Y[a, a] = scale
        at.basis[a, a] = 1.0
    copy_rows(at.query, P.query)


@jit
def _keep(at: Point, dual: Floats, Y: Floats) -> None:
    """Save λ, and Y in the basis of the queries' span."""
    half = np.empty(at.Y.shape)
    copy(dual, at.dual)
    product(at.basis, at.Y, half)
    for a in range(at.f.size):
        for e in range(at.f.size):
            Y[a, e] = dot(half[a], at.basis[e], at.f.size)


@jit
def _solve(P: Rows, at: Point, start: tuple[Floats, Floats, float], dual: Floats, Y: Floats) -> int:
    """Walk by long steps, then by careful ones if those fail; return the iterations.

    dual and Y receive the best point.
    """
    q, record, steps = at.f.size, np.inf, 0
    rows, square = np.empty((2, P.b.size)), np.empty((3, q, q))
    move = Move(rows[0], rows[1], square[0], square[1], np.empty(at.M.shape), square[2])
    _begin(P, at, *start)
    _keep(at, dual, Y)
    for careful in (False, True):
        _begin(P, at, *start)
        for _ in range(CAREFUL_ITERATIONS if careful else ITERATIONS):
            arrive(P, at)
            now = gap(P, at)
            better = now < record
            if better:
                record = now
                _keep(at, dual, Y)
            if record <= ENOUGH or (record <= GOOD and not better):
                return steps
            steps += 1
            system(P, at)
            if not _advance(at, move, _step(P, at, move, careful)):
                break
    return steps


def smallest() -> list[NDArray[Any]]:
    """Return empty arguments of :func:`solve_rows`, enough to compile it."""
    row, one = np.empty((0, 1)), np.empty((0, 1, 1))
    free = np.empty((0, 1), np.bool_)
    return [one, one, row, free, row, row, np.empty(0), row, one, np.empty(0, np.int64)]


@kernel("nuclear solver", 7, plain=True)
def solve_rows(
    left: Floats,
    query: Floats,
    b: Floats,
    free: Bools,
    start_dual: Floats,
    start_slack: Floats,
    start_scale: Floats,
    dual: Floats,
    Y: Floats,
    iterations: Ints,
) -> None:
    """Walk a batch of unit rows from its start; write the answer to the last three arrays."""
    _, M, d = left.shape
    _, Q, q = query.shape
    rows, squares, gram = np.empty((3, M)), np.empty((2, q, q)), np.empty((M, M))
    columns = np.empty((d, M))
    at = Point(
        rows[0],
        rows[1],
        squares[0],
        squares[1],
        np.empty(q),
        np.empty((Q, q)),
        np.empty((d, q)),
        np.empty((q, M)),
        rows[2],
        np.empty((M, M)),
        np.empty(M, np.int64),
    )
    for i in range(left.shape[0]):
        for row in range(M):
            for c in range(d):
                columns[c, row] = left[i, row, c]
        product(left[i], columns, gram)
        P = Rows(left[i], query[i], b[i], free[i], gram, columns)
        start = (start_dual[i], start_slack[i], start_scale[i])
        iterations[i] = _solve(P, at, start, dual[i], Y[i])
