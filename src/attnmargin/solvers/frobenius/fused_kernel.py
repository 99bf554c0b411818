"""The kernel of :mod:`attnmargin.solvers.frobenius.fused`; importing it needs Triton.

One program solves one problem. The tableau of the unit rows stays in registers: after the rows of
a set A have been swept in, it holds, as in :mod:`attnmargin.solvers.frobenius.lockstep`,

    −G_AA⁻¹ on A × A,   G_AA⁻¹ G_AN on A × N,   the Schur complement on N × N.

It is symmetric, so that its columns are read as rows: a sum down the rows stays within a thread.
The diagonal entries of the active rows are stored 2 too large, which makes entering one product.
"""

# mypy: ignore-errors

import triton
import triton.language as tl

_SOLVED = tl.constexpr(0)
_INFEASIBLE = tl.constexpr(1)
_STALLED = tl.constexpr(2)
_RUNNING = tl.constexpr(-1)
# A squared distance below this share of the squared coefficients has lost its digits.
_DEPENDENT = tl.constexpr(1e-13)
# Violations that count while pivoting and after refinement; dependent rows may violate more.
_COARSE = tl.constexpr(1e-11)
_FINE = tl.constexpr(2e-15)
# Errors of active rows that are worth another refinement.
_TIGHT = tl.constexpr(5e-16)
_ROUNDING = tl.constexpr(1e-9)
# A coefficient below this share of the largest is rounding.
_NOTHING = tl.constexpr(1e-12)
# Squared lengths of rows outside this range are left to methods that scale first.
_SHORTEST = tl.constexpr(1e-200)
_LONGEST = tl.constexpr(1e200)
_EXPONENT = tl.constexpr(0x7FF0000000000000)


@triton.jit
def _row(tableau, place, BLOCK: tl.constexpr):
    """Read one row of the tableau: as a sum of integers, which is faster than one of numbers."""
    here = tl.arange(0, BLOCK)[:, None] == place
    bits = tableau.to(tl.int64, bitcast=True)
    low = tl.sum(tl.where(here, bits.to(tl.int32), 0), 0)
    high = tl.sum(tl.where(here, (bits >> 32).to(tl.int32), 0), 0)
    whole = (high.to(tl.int64) << 32) | (low.to(tl.int64) & 0xFFFFFFFF)
    return whole.to(tl.float64, bitcast=True)


@triton.jit
def _marked(numbers, BLOCK: tl.constexpr):
    """Turn numbers ≥ 0 into integers of the same order whose last digits are their places."""
    return (numbers.to(tl.int64, bitcast=True) & -BLOCK) | tl.arange(0, BLOCK)


@triton.jit
def _products(vectors, place, there, size, BLOCK: tl.constexpr):
    """Compute the inner products of vectors in memory, picked by place."""
    products = tl.zeros([BLOCK, BLOCK], tl.float64)
    for j in range(size):
        column = tl.load(vectors + place * size + j, there, 0.0)
        products += column[:, None] * column[None, :]
    return products


@triton.jit
def _choose(slack, bound, norm, candidate, free, tolerance, BLOCK: tl.constexpr):
    """Find the most violated row, −1 if none is; equalities come first."""
    amount = tl.where(free, tl.abs(slack), -slack)
    counts = candidate & (amount > tolerance * (tl.abs(bound) + norm))
    amount += tl.where(free, 1e6, 0.0)
    worst = tl.max(tl.where(counts, _marked(tl.abs(amount), BLOCK), -1), 0)
    return tl.where(worst < 0, -1, (worst & (BLOCK - 1)).to(tl.int32))


@triton.jit
def _add(a0, a1, a2, a3, b0, b1, b2, b3):
    """Combine four sums in one reduction."""
    return a0 + b0, a1 + b1, a2 + b2, a3 + b3


@triton.jit
def _enter(tableau, column, corner, inverse, place, BLOCK: tl.constexpr):
    """Perform a principal pivot for a row that enters; its diagonal entry ends up 2 too large.

    The one product does the whole pivot: ``c_j − (p − 1) c_j / p = c_j / p`` in row and column,
    ``p − (p − 1)² / p = 2 − 1 / p`` where they cross.
    """
    row = tl.arange(0, BLOCK)
    edge = tl.where(row == place, corner - 1.0, column)
    return tableau - edge[:, None] * (edge * inverse)[None, :]


@triton.jit
def _leave(tableau, column, inverse, place, BLOCK: tl.constexpr):
    """Perform a principal pivot for a row that leaves."""
    row = tl.arange(0, BLOCK)
    edge = tl.where(row == place, 1.0, column)
    cross = (row == place)[:, None] | (row == place)[None, :]
    return tl.where(cross, 0.0, tableau) - edge[:, None] * (edge * inverse)[None, :]


@triton.jit
def _pass(
    left, query, W, scratch, change, there, M, Q, D, E, fresh,
    BLOCK: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Add ``Σ change_m left_m right_mᵀ`` to W in memory, or start afresh; return the rows at W.

    Change and rows pass through memory, so that the layout of the tiles here does not spread to
    the tableau. Barriers come before a thread reads what another wrote.
    """
    row = tl.arange(0, BLOCK)
    group = row // (M // Q)
    tl.store(scratch + row, change, row < M)
    tl.debug_barrier()
    values = tl.zeros([BLOCK], tl.float64)
    for start in range(0, E, WIDTH):
        place = start + tl.arange(0, WIDTH)
        inside = place < E
        both = there[:, None] & inside[None, :]
        right = tl.load(query + group[:, None] * E + place[None, :], both, 0.0)
        moved = tl.load(scratch + row, there, 0.0)[:, None] * right
        image = tl.zeros([BLOCK, WIDTH], tl.float64)  # left W
        for j in range(D):
            column = tl.load(left + row * D + j, there, 0.0)[:, None]
            line = tl.sum(column * moved, 0)
            line += tl.load(W + j * E + place, inside & (fresh == 0), 0.0)
            tl.store(W + j * E + place, line, inside)
            image += column * line[None, :]
        values += tl.sum(image * right, 1)
    tl.debug_barrier()
    tl.store(scratch + row, values, row < M)
    tl.debug_barrier()
    return tl.load(scratch + row, there, 0.0)


@triton.jit
def _unit_rows(left, query, bound, there, free, M, Q, D, E, BLOCK: tl.constexpr):
    """Compute the Gram matrix of the unit rows and their bounds, scaled to size about one.

    Returns both, the rows that count, their factors, the size of the bounds, and whether all this
    is safe from over- and underflow.
    """
    row = tl.arange(0, BLOCK)
    gram = _products(query, row // (M // Q), there, E, BLOCK)
    gram *= _products(left, row, there, D, BLOCK)
    square = tl.sum(tl.where(row[:, None] == row[None, :], gram, 0.0), 0)
    b = tl.load(bound + row, there, 0.0)
    empty = (square == 0.0) & ((b == 0.0) | ((b < 0.0) & (free == 0)))  # any W satisfies 0 ≥ b
    there = there & (empty == 0)
    odd = there & ((square < _SHORTEST) | (square > _LONGEST))
    unit = tl.where(there, 1.0 / tl.sqrt(tl.where(there & (odd == 0), square, 1.0)), 0.0)
    b = b * unit
    size = tl.max(tl.abs(b), 0).to(tl.int64, bitcast=True) & _EXPONENT
    size = size.to(tl.float64, bitcast=True)
    size = tl.where(size > 0.0, size, 1.0)  # a power of two: scaling by it does not round
    fits = tl.max(odd.to(tl.int32), 0) == 0
    return gram * (unit[:, None] * unit[None, :]), b / size, there, unit, size, fits


@triton.jit
def _move(column, multiplier, slack, active, free, b, entering, BLOCK: tl.constexpr):
    """Move along the entering row as far as multipliers and its violation allow.

    Returns the new multipliers and slacks, the growth of bᵀλ, the row that blocks, the entering
    row's distance from the active ones, and whether it enters, is rounding, or proves that the
    rows contradict each other; then the multipliers are the proof.
    """
    here = tl.arange(0, BLOCK) == entering
    on = tl.where(active, column, 0.0)
    pulls = tl.where(here, b, 0.0) - on * b
    own, short = tl.where(here, column, 0.0), tl.where(here, slack, 0.0)
    total, pull, corner, short = tl.reduce((tl.abs(on), pulls, own, short), 0, _add)
    sign = tl.where(short > 0.0, -1.0, 1.0)
    missing = tl.abs(short)
    rate = sign * on
    nothing = _NOTHING * tl.maximum(total, 1.0)
    blocks = active & (free == 0) & (rate > nothing)
    ratio = tl.maximum(multiplier, 0.0) / tl.where(blocks, rate, 1.0)
    ratio = tl.where(blocks, tl.abs(ratio), float("inf"))  # no −0: its bits are negative
    first = tl.min(_marked(ratio, BLOCK), 0)
    limit = (first & -BLOCK).to(tl.float64, bitcast=True)
    limit = tl.where(first < _EXPONENT, limit, float("inf"))

    dependent = corner <= _DEPENDENT * (1.0 + total) * (1.0 + total)
    inverse = 1.0 / tl.where(dependent, 1.0, corner)
    full = tl.where(dependent, float("inf"), missing * inverse)
    ignored = dependent
    proof = dependent
    if dependent:
        mixed = tl.sum(tl.where(here, 1.0, tl.abs(on)) * tl.abs(b), 0)
        ignored = missing <= _ROUNDING * mixed
        proof = (missing > _ROUNDING * mixed) & (limit == float("inf"))
    enters = (full <= limit) & (full < float("inf"))
    step = tl.where(ignored | proof, 0.0, tl.minimum(limit, full))

    direction = tl.where(here, sign, 0.0) - rate
    multiplier += step * direction
    slack += tl.where(dependent, 0.0, step * sign) * tl.where(active, 0.0, column)
    if proof:
        multiplier = tl.where(tl.abs(direction) > nothing, direction, 0.0)
    block = tl.where(ignored | proof, -1, (first & (BLOCK - 1)).to(tl.int32))
    growth = step * sign * pull
    return multiplier, slack, growth, block, corner, inverse, enters, ignored, proof


@triton.jit
def _pivot_until_feasible(
    tableau, multiplier, slack, active, usable, code, count, entering, tolerance, b, free, most,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Pivot until the active rows satisfy all others, or contradict them."""
    row = tl.arange(0, BLOCK)
    gain = tl.sum(b * multiplier, 0)
    while entering >= 0:
        column = _row(tableau, entering, BLOCK)
        multiplier, slack, growth, block, corner, inverse, enters, ignored, proof = _move(
            column, multiplier, slack, active, free, b, entering, BLOCK
        )
        if enters:
            tableau = _enter(tableau, column, corner, inverse, entering, BLOCK)
            active = active ^ (row == entering)
        else:  # a row leaves, or nothing moves
            leaving = row == block
            column = _row(tableau, block, BLOCK)
            corner = tl.sum(tl.where(leaving, column, 0.0), 0) - 2.0
            tableau = _leave(tableau, column, 1.0 / corner, block, BLOCK)
            multiplier = tl.where(leaving, 0.0, multiplier)
            active = active ^ leaving
            usable = usable & (row != tl.where(ignored, entering, -1))
        count += 1
        gain += growth
        code = tl.where(proof, _INFEASIBLE, tl.where(count >= most, _STALLED, code))
        norm = tl.sqrt(tl.minimum(tl.maximum(gain, 0.0), 1e30).to(tl.float32))  # rough but fast
        fresh = _choose(slack, b, norm, usable & (active == 0), free, tolerance, BLOCK)
        entering = tl.where(enters | ignored, fresh, entering)
        entering = tl.where(code == _RUNNING, entering, -1)
    return tableau, multiplier, slack, active, usable, code, count


@triton.jit
def _refine(
    left, query, W, scratch, tableau, multiplier, slack, active, code, b, there, unit, size,
    M, Q, D, E, BLOCK: tl.constexpr, WIDTH: tl.constexpr, PASSES: tl.constexpr,
):  # fmt: skip
    """Write W; make active rows tight there, where rounding is smaller than on the Gram matrix."""
    proof = code == _INFEASIBLE
    sought = tl.where(proof, 0.0, b)
    multiplier = tl.where(active, multiplier, tl.where(proof, multiplier, 0.0))
    norm = tl.sqrt(tl.maximum(tl.sum(b * multiplier, 0), 0.0))
    aim = tl.where(proof, 0.0, _TIGHT + 0.0 * norm)
    change = multiplier
    index = 0
    while index < PASSES:
        values = _pass(
            left, query, W, scratch, change * unit * size, there, M, Q, D, E, index == 0,
            BLOCK, WIDTH,
        )  # fmt: skip
        slack = values * unit / size - sought
        error = tl.where(active, slack, 0.0)
        worst = tl.max(tl.abs(error) / (tl.abs(b) + norm), 0)
        index = tl.where(worst <= aim, PASSES, index + 1)
        if index < PASSES:
            change = tl.sum(tableau * error[:, None], 0) - 2.0 * error
            change = tl.where(active, change, 0.0)
            multiplier += change
    return multiplier, slack, norm


@triton.jit(do_not_specialize=["M", "Q", "D", "E", "most"])
def solve_member(
    left, query, bound, equality, mask, dual, W, outcome, iterations,
    M, Q, D, E, most,
    BLOCK: tl.constexpr, WIDTH: tl.constexpr, PASSES: tl.constexpr, ROUNDS: tl.constexpr,
):  # fmt: skip
    """Solve one problem; see :func:`attnmargin.solvers.frobenius.fused.solve_fused`."""
    member = tl.program_id(0).to(tl.int64)
    left += member * M * D
    query += member * Q * E
    W += member * D * E
    dual += member * M
    row = tl.arange(0, BLOCK)
    there = (row < M) & (tl.load(mask + member * M + row, row < M, 0) != 0)
    free = there & (tl.load(equality + member * M + row, row < M, 0) != 0)
    tableau, b, there, unit, size, fits = _unit_rows(
        left, query, bound + member * M, there, free, M, Q, D, E, BLOCK
    )
    multiplier = tl.zeros([BLOCK], tl.float64)
    slack = -b
    active = row < 0
    usable = there
    code = tl.where(fits, _RUNNING, _STALLED)
    count = 0
    turn = 0
    tolerance = tl.max(multiplier, 0) + _COARSE
    entering = _choose(slack, b, 0.0, usable, free, tolerance, BLOCK)
    going = fits
    while going:
        tableau, multiplier, slack, active, usable, code, count = _pivot_until_feasible(
            tableau, multiplier, slack, active, usable, code, count, entering, tolerance, b, free,
            most, BLOCK,
        )  # fmt: skip
        multiplier, slack, norm = _refine(
            left, query, W, dual, tableau, multiplier, slack, active, code, b, there, unit, size,
            M, Q, D, E, BLOCK, WIDTH, PASSES,
        )  # fmt: skip
        turn += 1
        tolerance = _FINE + 0.0 * norm
        entering = _choose(slack, b, norm, usable & (active == 0), free, tolerance, BLOCK)
        code = tl.where((code == _RUNNING) & (entering < 0), _SOLVED, code)
        going = (code == _RUNNING) & (turn < ROUNDS)

    # From min ½‖W‖² to min ‖W‖, and a proof to bᵀλ = 1.
    multiplier = tl.where(free, multiplier, tl.maximum(multiplier, 0.0))
    gain = tl.maximum(tl.sum(b * multiplier, 0), 0.0)
    gain = tl.where(code == _INFEASIBLE, gain * size, tl.sqrt(gain))
    gain = tl.where(gain > 0.0, gain, float("inf"))
    tl.store(dual + row, multiplier * unit / gain, row < M)
    tl.store(outcome + member, tl.where(code == _RUNNING, _STALLED, code).to(tl.int64))
    tl.store(iterations + member, count.to(tl.int64))
