"""The kernel of :mod:`attnmargin.solvers.frobenius.fused`; importing it needs Triton.

One program solves one problem. The tableau of the unit rows stays in registers: after the rows of
a set A have been swept in, it holds, as in :mod:`attnmargin.solvers.frobenius.lockstep`,

    −G_AA⁻¹ on A × A,   G_AA⁻¹ G_AN on A × N,   the Schur complement on N × N.

It is symmetric, so that its columns are read as rows: a sum down the rows stays within a thread.
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
_ROUNDING = tl.constexpr(1e-9)
# A coefficient below this share of the largest is rounding.
_NOTHING = tl.constexpr(1e-12)
# Squared lengths of rows outside this range are left to methods that scale first.
_SHORTEST = tl.constexpr(1e-200)
_LONGEST = tl.constexpr(1e200)
_EXPONENT = tl.constexpr(0x7FF0000000000000)


@triton.jit
def _row(tableau, place, BLOCK: tl.constexpr):
    """Read one row of the tableau."""
    rows = tl.arange(0, BLOCK)[:, None]
    return tl.sum(tl.where(rows == place, tableau, 0.0), 0)


@triton.jit
def _products(vectors, place, there, size, BLOCK: tl.constexpr):
    """Compute the inner products of vectors in memory, picked by place."""
    products = tl.zeros([BLOCK, BLOCK], tl.float64)
    for j in range(size):
        column = tl.load(vectors + place * size + j, there, 0.0)
        products += column[:, None] * column[None, :]
    return products


@triton.jit
def _choose(slack, bound, norm, candidate, free, tolerance):
    """Find the most violated row, −1 if none is; equalities come first."""
    amount = tl.where(free, tl.abs(slack), -slack)
    counts = candidate & (amount > tolerance * (tl.abs(bound) + norm))
    worst, place = tl.max(
        tl.where(counts, amount + tl.where(free, 1e6, 0.0), -1.0), 0, return_indices=True
    )
    return tl.where(worst > 0.0, place, -1)


@triton.jit
def _merge(a0, a1, a2, a3, a4, a5, a6, b0, b1, b2, b3, b4, b5, b6):
    """Combine seven numbers in one reduction: one maximum and six sums."""
    return tl.maximum(a0, b0), a1 + b1, a2 + b2, a3 + b3, a4 + b4, a5 + b5, a6 + b6


@triton.jit
def _sweep(tableau, column, corner, place, side, BLOCK: tl.constexpr):
    """Perform a principal pivot at one place; side is −1 for a row that enters, else 1."""
    row = tl.arange(0, BLOCK)
    edge = tl.where(row == place, side, column)
    cross = (row == place)[:, None] | (row == place)[None, :]
    return tl.where(cross, 0.0, tableau) - edge[:, None] * (edge / corner)[None, :]


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
    inside = row < M
    at = member * M + row
    there = inside & (tl.load(mask + at, inside, 0) != 0)
    free = there & (tl.load(equality + at, inside, 0) != 0)

    tableau = _products(query, row // (M // Q), there, E, BLOCK)
    tableau *= _products(left, row, there, D, BLOCK)
    square = tl.sum(tl.where(row[:, None] == row[None, :], tableau, 0.0), 0)
    b = tl.load(bound + at, there, 0.0)
    empty = (square == 0.0) & ((b == 0.0) | ((b < 0.0) & (free == 0)))  # any W satisfies 0 ≥ b
    there = there & (empty == 0)
    odd = there & ((square < _SHORTEST) | (square > _LONGEST))
    fits = tl.max(odd.to(tl.int32), 0) == 0
    unit = tl.where(there, 1.0 / tl.sqrt(tl.where(there & (odd == 0), square, 1.0)), 0.0)
    tableau *= unit[:, None] * unit[None, :]
    b = b * unit
    size = tl.max(tl.abs(b), 0)
    size = (size.to(tl.int64, bitcast=True) & _EXPONENT).to(tl.float64, bitcast=True)
    size = tl.where(size > 0.0, size, 1.0)  # a power of two: scaling by it does not round
    b = b / size

    multiplier = tl.zeros([BLOCK], tl.float64)
    slack = -b
    active = row < 0
    usable = there
    norm = tl.max(multiplier, 0)
    tolerance = norm + _COARSE
    code = tl.where(fits, _RUNNING, _STALLED)
    count = 0
    turn = 0
    entering = _choose(slack, b, norm, usable, free, tolerance)
    going = fits
    while going:
        gain = tl.sum(b * multiplier, 0)
        while entering >= 0:
            here = row == entering
            column = _row(tableau, entering, BLOCK)
            on = tl.where(active, column, 0.0)
            largest, total, drift, mixed, corner, short, own = tl.reduce(
                (
                    tl.abs(on), tl.abs(on), on * b, tl.abs(on * b), tl.where(here, column, 0.0),
                    tl.where(here, slack, 0.0), tl.where(here, b, 0.0),
                ), 0, _merge,
            )  # fmt: skip
            sign = tl.where(short > 0.0, -1.0, 1.0)
            missing = tl.abs(short)
            rate = sign * on
            nothing = _NOTHING * tl.maximum(largest, 1.0)
            blocks = active & (free == 0) & (rate > nothing)
            ratio = tl.maximum(multiplier, 0.0) / tl.where(blocks, rate, 1.0)
            limit, block = tl.min(tl.where(blocks, ratio, float("inf")), 0, return_indices=True)
            dependent = corner <= _DEPENDENT * (1.0 + total) * (1.0 + total)
            full = tl.where(dependent, float("inf"), missing / tl.where(dependent, 1.0, corner))
            ignored = dependent & (missing <= _ROUNDING * (tl.abs(own) + mixed))
            proof = dependent & (missing > _ROUNDING * (tl.abs(own) + mixed))
            proof = proof & (limit == float("inf"))
            still = ignored | proof
            enters = (full <= limit) & (full < float("inf"))
            step = tl.where(still, 0.0, tl.minimum(limit, full))

            direction = tl.where(here, sign, 0.0) - rate
            multiplier += step * direction
            slack += tl.where(dependent, 0.0, step * sign) * tl.where(active, 0.0, column)
            gain += step * sign * (own - drift)
            if proof:
                multiplier = tl.where(tl.abs(direction) > nothing, direction, 0.0)
            place = tl.where(enters, entering, block)
            if enters == 0:  # a row leaves, or nothing moves
                column = _row(tableau, place, BLOCK)
                corner = tl.sum(tl.where(row == place, column, 0.0), 0)
                column = tl.where(still, 0.0, column)
                corner = tl.where(still, 1.0, corner)
                place = tl.where(still, -1, place)
                multiplier = tl.where(row == place, 0.0, multiplier)
                usable = usable & (row != tl.where(ignored, entering, -1))
            tableau = _sweep(tableau, column, corner, place, tl.where(enters, -1.0, 1.0), BLOCK)
            active = active ^ (row == place)

            count += 1
            code = tl.where(proof, _INFEASIBLE, tl.where(count >= most, _STALLED, code))
            norm = tl.sqrt(tl.maximum(gain, 0.0))
            fresh = _choose(slack, b, norm, usable & (active == 0), free, tolerance)
            entering = tl.where(enters | ignored, fresh, entering)
            entering = tl.where(code == _RUNNING, entering, -1)

        # Refine on W itself: rounding is smaller there than on the Gram matrix.
        sought = tl.where(code == _INFEASIBLE, 0.0, b)
        kept = tl.where(code == _INFEASIBLE, multiplier, 0.0)
        multiplier = tl.where(active, multiplier, kept)
        change = multiplier
        for index in range(PASSES):
            values = _pass(
                left, query, W, dual, change * unit * size, there, M, Q, D, E, index == 0,
                BLOCK, WIDTH,
            )  # fmt: skip
            slack = values * unit / size - sought
            error = tl.where(active, tl.where(index < PASSES - 1, slack, 0.0), 0.0)
            change = tl.where(active, tl.sum(tableau * error[:, None], 0), 0.0)
            multiplier += change

        turn += 1
        norm = tl.sqrt(tl.maximum(tl.sum(b * multiplier, 0), 0.0))
        tolerance = norm * 0.0 + _FINE
        entering = _choose(slack, b, norm, usable & (active == 0), free, tolerance)
        code = tl.where((code == _RUNNING) & (entering < 0), _SOLVED, code)
        going = (code == _RUNNING) & (turn < ROUNDS)

    # From min ½‖W‖² to min ‖W‖, and a proof to bᵀλ = 1.
    multiplier = tl.where(free, multiplier, tl.maximum(multiplier, 0.0))
    gain = tl.maximum(tl.sum(b * multiplier, 0), 0.0)
    gain = tl.where(code == _INFEASIBLE, gain * size, tl.sqrt(gain))
    gain = tl.where(gain > 0.0, gain, float("inf"))
    tl.store(dual + row, multiplier * unit / gain, inside)
    tl.store(outcome + member, tl.where(code == _RUNNING, _STALLED, code).to(tl.int64))
    tl.store(iterations + member, count.to(tl.int64))
