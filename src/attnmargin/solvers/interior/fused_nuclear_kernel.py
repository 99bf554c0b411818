"""The kernel of :mod:`attnmargin.solvers.interior.fused`; importing it needs Triton.

A program follows the central path of one problem after another. The path, the predictor-corrector
and the gap are those of :mod:`attnmargin.solvers.interior.nuclear`; the direction is that of
Helmberg, Rendl, Kojima and Monteiro,

    dY = μ F⁻¹ − Y − sym(Y dF F⁻¹),   Schur matrix ⟨Rᵀ B_i K, Rᵀ B_j K⟩ + 2 G_ij z_iᵀ Y z_j,

with Y = R Rᵀ and F⁻¹ = K Kᵀ: it is symmetric and needs no eigenvalues, and its products run on the
matrix units. Its inverse comes from pivots of sixteen rows. What passes from one distribution over
the threads to another goes through a room in memory, and barriers stand before it is read.
"""

# mypy: ignore-errors

import triton
import triton.language as tl

from attnmargin.solvers.interior.fused_algebra_kernel import (
    factor,
    inverse_factor,
    invert,
    load,
    mul,
    save,
    solve,
    span,
    sym,
)

# As in the schedule of the methods in lockstep; the first gap is what this direction reaches.
_ENOUGH = tl.constexpr(2e-10)
_GOOD = tl.constexpr(6e-10)
_ITERATIONS = tl.constexpr(60)
_CAREFUL_ITERATIONS = tl.constexpr(300)
_CAREFUL_PART = tl.constexpr(0.7)
_LEAST_CENTRED = tl.constexpr(0.3)
_LEAST_RATIO = tl.constexpr(1e-3)
_STAY_INSIDE = tl.constexpr(0.99)
# Steps that are tried at once, and the ratio from one to the next; the log is to the base two.
_TRIALS = tl.constexpr(8)
_RATIO = tl.constexpr(0.7)
_LOG_RATIO = tl.constexpr(-0.5145731728297583)
_ROUNDS = tl.constexpr(4)


@triton.jit
def _right(query, places, row, M, Q, E, QB: tl.constexpr):
    """Read the right factors of all rows in the basis of their span."""
    i = tl.arange(0, QB)
    group, there = (row // (M // Q))[:, None], (row < M)[:, None]
    if Q < E:
        z = tl.load(places + group * QB + i[None, :], there, 0.0)
    else:
        z = tl.load(query + group * E + i[None, :], there & (i < E)[None, :], 0.0)
    return z


@triton.jit
def _start(left, z, guess, b, ineq, M, q, QB: tl.constexpr):
    """Find a well-centred point, as :func:`attnmargin.solvers.interior.nuclear._start` does."""
    i = tl.arange(0, QB)
    little = 0.1 * tl.sum(tl.abs(guess), 0) / M
    dual = guess + tl.where(ineq, little, 0.0)
    N = mul(tl.trans(left), dual[:, None] * z)
    power = mul(tl.trans(N), N)
    size = tl.sum(tl.sum(tl.where(i[:, None] == i[None, :], power, 0.0), 1), 0)
    power = power / size
    power = mul(power, power)
    power = mul(power, power)
    largest = tl.sqrt(tl.sqrt(tl.sqrt(tl.sum(tl.sum(power * power, 1), 0))))  # and no less
    inside = 0.6 / tl.sqrt(size * largest)
    values = inside * tl.sum(mul(left, N) * z, 1)
    counts = (values > 0.0) & (b > 0.0) & ineq
    needed = tl.max(tl.where(counts, b / tl.where(counts, values, 1.0), 0.0), 0)
    scale = 1.5 * tl.minimum(tl.maximum(needed, 0.5), 50.0)
    bound = tl.abs(b)
    slack = tl.maximum(scale * values - b, 0.3 * bound + 1e-3 * tl.max(bound, 0))
    Y = tl.where((i[:, None] == i[None, :]) & (i < q)[:, None], 0.5 * scale, 0.0)
    return inside * dual, tl.where(ineq, slack, 1.0), Y


@triton.jit
def _gap(b, dual, values, free, ineq, total):
    """Compute the relative gap; F ⪰ 0 bounds ‖N‖ by one."""
    counts = ineq & (b > 0.0)
    missing = tl.where(values > 0.0, b / tl.where(values > 0.0, values, 1.0), float("inf"))
    upper = total * tl.maximum(tl.max(tl.where(counts, missing, 1.0), 0), 1.0)
    error = tl.max(tl.where(free, tl.abs(values - b) / (tl.abs(b) + 1.0), 0.0), 0)
    feasible = (upper > 0.0) & (upper < float("inf"))
    size = tl.where(feasible, upper, 1.0)
    gap = tl.maximum(tl.abs(size - tl.sum(b * dual, 0)) / size, error)
    return tl.where(feasible & (gap < float("inf")), gap, float("inf"))


@triton.jit
def _schur(
    left, z, C, R, K, barrier, ineq, schur, inverse, work, M, q, BLOCK: tl.constexpr,
    QB: tl.constexpr,
):  # fmt: skip
    """Write the Schur matrix, scaled to a diagonal of ones, and its inverse; return the scale."""
    row = tl.arange(0, BLOCK)
    zR, zK, CK = mul(z, tl.trans(R)), mul(z, tl.trans(K)), mul(C, tl.trans(K))
    S = 2.0 * mul(left, tl.trans(left)) * mul(zR, tl.trans(zR))
    tl.debug_barrier()
    save(work, zR, BLOCK, QB)
    save(work + BLOCK * QB, mul(C, tl.trans(R)), BLOCK, QB)
    tl.debug_barrier()
    for a in range(q):
        own = tl.load(work + BLOCK * QB + row * QB + a)[:, None] * zK
        own += tl.load(work + row * QB + a)[:, None] * CK
        S = tl.dot(own, tl.trans(own), S, out_dtype=tl.float64)
    save(schur, S, BLOCK, BLOCK)
    tl.debug_barrier()
    diagonal = tl.load(schur + row * (BLOCK + 1)) + barrier
    scale = tl.where(row < M, 1.0 / tl.sqrt(tl.where(diagonal > 0.0, diagonal, 1.0)), 1.0)
    tl.debug_barrier()
    S = load(schur, BLOCK, BLOCK) * (scale[:, None] * scale[None, :])
    S = tl.where(row[:, None] == row[None, :], 1.0, S)
    save(schur, S, BLOCK, BLOCK)
    invert(S, inverse, M, BLOCK)
    tl.debug_barrier()
    return scale


@triton.jit
def _passing(work, steps, q, QB: tl.constexpr, QV: tl.constexpr):
    """Find the longest of the steps ``(2 TRIALS,)`` that keeps Y and F positive; 0 if none does.

    The first half is tried on F, the second half, which is the same, on Y.
    """
    u, i = tl.arange(0, 2 * _TRIALS), tl.arange(0, QV)
    SIZE: tl.constexpr = QB * QB
    first = (u < _TRIALS)[:, None, None]
    t = steps[:, None, None]
    F, Y = load(work, QV, QB)[None, :, :], load(work + SIZE, QV, QB)[None, :, :]
    dF, dY = load(work + 2 * SIZE, QV, QB), load(work + 3 * SIZE, QV, QB)
    square = load(work + 4 * SIZE, QV, QB)[None, :, :]
    A = tl.where(first, F + t * (dF[None, :, :] - t * square), Y + t * dY[None, :, :])
    good = u >= 0
    for k in range(q):
        line = tl.sum(tl.where((i == k)[None, :, None], A, 0.0), 1)
        corner = tl.sum(tl.where((i == k)[None, :], line, 0.0), 1)
        good = good & (corner > 0.0)
        inverse = tl.where(corner > 0.0, 1.0 / tl.where(corner > 0.0, corner, 1.0), 0.0)
        A -= line[:, :, None] * (line * inverse[:, None])[:, None, :]
    found = tl.where(good, steps, 0.0)
    for_F = tl.max(tl.where(u < _TRIALS, found, 0.0), 0)
    for_Y = tl.max(tl.where(u < _TRIALS, 0.0, found), 0)
    return tl.minimum(for_F, for_Y)


@triton.jit
def _ratio_step(x, dx, counts):
    """Find the longest step that keeps x ≥ 0, in the limits of what is useful."""
    falls = counts & (dx < 0.0)
    ratio = tl.where(falls, x / tl.where(falls, -dx, 1.0), float("inf"))
    return tl.minimum(tl.min(ratio, 0), 1.0 / _STAY_INSIDE)


@triton.jit
def _length(work, longest, q, QB: tl.constexpr, QV: tl.constexpr):
    """Find the longest step that keeps Y and F positive, to a few percent; then stay inside."""
    place = (tl.arange(0, 2 * _TRIALS) % _TRIALS).to(tl.float32)
    found, top, turn = 0.0 * longest, longest, 0
    while (found == 0.0) & (turn < _ROUNDS):
        found = _passing(work, top * tl.exp2(place * _LOG_RATIO).to(tl.float64), q, QB, QV)
        top = tl.where(found == 0.0, top * 0.0576, top)
        turn += 1
    if (found > 0.0) & (found < longest):
        finer = found * (1.0 + (1.0 / _RATIO - 1.0) / _TRIALS * place.to(tl.float64))
        found = tl.maximum(found, _passing(work, finer, q, QB, QV))
    return _STAY_INSIDE * found


@triton.jit
def _step(
    left, z, b, ineq, dual, slack, Y, N, C, F, mu, count, careful, schur, inverse, work, M, q,
    BLOCK: tl.constexpr, QB: tl.constexpr, QV: tl.constexpr,
):  # fmt: skip
    """Take a predictor-corrector step, or a short, well-centred one; return whether it moved."""
    i = tl.arange(0, QB)
    SIZE: tl.constexpr = QB * QB
    R, K = factor(Y, q, QB), inverse_factor(F, q, QB)
    barrier = tl.where(ineq, slack / tl.where(ineq, dual, 1.0), 0.0)
    scale = _schur(left, z, C, R, K, barrier, ineq, schur, inverse, work, M, q, BLOCK, QB)
    inverse_F = mul(tl.trans(K), K)
    eye = tl.where((i[:, None] == i[None, :]) & (i < q)[:, None], 1.0, 0.0)

    dY, dF, square, image = 0.0 * Y, 0.0 * Y, 0.0 * Y, 0.0 * z
    move, slide = 0.0 * dual, 0.0 * dual
    aim, length, turn = 0.0 * mu, 0.0 * mu, 0
    while turn < 2:
        target = aim * eye - mul(dY, dF) + mul(Y, square)
        scaled = sym(mul(target, inverse_F))
        curve = mul(C, scaled) + mul(image, dY)
        centre = tl.where(ineq, (aim - move * slide) / tl.where(ineq, dual, 1.0), 0.0)
        right = b + centre - 2.0 * tl.sum(curve * z, 1)
        move = solve(schur, inverse, scale, right, BLOCK)
        slide = tl.where(ineq, centre - slack - barrier * move, 0.0)
        change = mul(tl.trans(left), move[:, None] * z)
        image = mul(left, change)
        square = mul(tl.trans(change), change)
        turned = mul(tl.trans(N), change)
        dF = -(turned + tl.trans(turned))
        dY = scaled - Y - sym(mul(mul(Y, dF), inverse_F))

        tl.debug_barrier()
        save(work, F, QB, QB)
        save(work + SIZE, Y, QB, QB)
        save(work + 2 * SIZE, dF, QB, QB)
        save(work + 3 * SIZE, dY, QB, QB)
        save(work + 4 * SIZE, square, QB, QB)
        tl.debug_barrier()
        longest = tl.minimum(_ratio_step(dual, move, ineq), _ratio_step(slack, slide, ineq))
        length = _length(work, longest, q, QB, QV)

        products = tl.where(ineq, (dual + length * move) * (slack + length * slide), 0.0)
        after = (Y + length * dY) * (F + length * (dF - length * square))
        after = tl.sum(products, 0) + tl.sum(tl.sum(after, 1), 0)
        ratio = tl.minimum(tl.maximum(after / (count * mu), _LEAST_RATIO), 1.0)
        if turn == 0:
            aim = mu * tl.where(careful, tl.maximum(ratio, _LEAST_CENTRED), ratio * ratio * ratio)
            if careful:
                dY, dF, square, image = 0.0 * Y, 0.0 * Y, 0.0 * Y, 0.0 * z
                move, slide = 0.0 * dual, 0.0 * dual
        turn += 1
    length = length * tl.where(careful, _CAREFUL_PART, 1.0)
    size = tl.sum(move * move, 0) + tl.sum(tl.sum(dY * dY, 1), 0)
    moved = (length > 0.0) & (size < float("inf"))
    if moved:
        dual += length * move
        slack += length * slide
        Y += length * dY
    return dual, slack, Y, moved


@triton.jit
def _walk(
    left, z, b, guess, free, ineq, best, schur, inverse, work, kept, M, q,
    BLOCK: tl.constexpr, QB: tl.constexpr, QV: tl.constexpr,
):  # fmt: skip
    """Walk by long steps, then by careful ones if those fail; return the iterations.

    The best multipliers are written to ``best``, and their Y to ``kept``.
    """
    row, i = tl.arange(0, BLOCK), tl.arange(0, QB)
    dual, slack, Y = _start(left, z, guess, b, ineq, M, q, QB)
    count = (tl.sum(ineq.to(tl.int32), 0) + q).to(tl.float64)
    eye = tl.where(i[:, None] == i[None, :], 1.0, 0.0)
    record, steps, turn = float("inf") + 0.0 * tl.sum(b, 0), 0, 0
    careful, going = q < 0, q > 0
    while going:
        N = mul(tl.trans(left), dual[:, None] * z)
        C = mul(left, N)
        F = eye - mul(tl.trans(N), N)
        values = 2.0 * tl.sum(mul(C, Y) * z, 1)
        trace = tl.sum(tl.sum(Y * F, 1), 0)
        total = 2.0 * tl.sum(tl.sum(Y * eye, 1), 0) - trace
        mu = (tl.sum(tl.where(ineq, dual * slack, 0.0), 0) + trace) / count
        gap = _gap(b, dual, values, free, ineq, total)
        better = gap < record
        if better | (steps == 0):
            tl.store(best + row, dual, row < M)
            save(kept, Y, QB, QB)
        record = tl.minimum(gap, record)
        going = (record > _ENOUGH) & ((record > _GOOD) | better)
        if going:
            dual, slack, Y, moved = _step(
                left, z, b, ineq, dual, slack, Y, N, C, F, mu, count, careful, schur, inverse,
                work, M, q, BLOCK, QB, QV,
            )  # fmt: skip
            steps += 1
            turn += 1
            stuck = (moved == 0) | (turn >= tl.where(careful, _CAREFUL_ITERATIONS, _ITERATIONS))
            going = (stuck == 0) | ((careful == 0) & (record > _GOOD))
            if stuck & going:
                dual, slack, Y = _start(left, z, guess, b, ineq, M, q, QB)
                careful, turn = q > 0, 0
    return steps


@triton.jit
def _member(
    left, query, bound, free, guess, length, value, dual, W, steps, room, M, Q, D, E, q,
    BLOCK: tl.constexpr, QB: tl.constexpr, QV: tl.constexpr, DB: tl.constexpr, EB: tl.constexpr,
):  # fmt: skip
    """Solve one problem whose unit rows and Frobenius solution are given."""
    row, i = tl.arange(0, BLOCK), tl.arange(0, QB)
    j, e = tl.arange(0, DB), tl.arange(0, EB)
    there = row < M
    schur, inverse = room, room + BLOCK * BLOCK
    work = inverse + BLOCK * BLOCK
    places = work + 2 * BLOCK * QB + 5 * QB * QB
    kept, basis = places + QB * QB, places + 2 * QB * QB
    tl.debug_barrier()
    span(query, basis, places, Q, E, QB, EB)
    tl.debug_barrier()
    z = _right(query, places, row, M, Q, E, QB)
    u = tl.load(left + row[:, None] * D + j[None, :], there[:, None] & (j < D)[None, :], 0.0)
    b = tl.load(bound + row, there, 0.0)
    equal = there & (tl.load(free + row, there, 0.0) != 0.0)
    start = tl.load(guess + row, there, 0.0)
    count = _walk(
        u, z, b, start, equal, there & (equal == 0), dual, schur, inverse, work, kept, M, q,
        BLOCK, QB, QV,
    )  # fmt: skip
    tl.debug_barrier()
    found = tl.load(dual + row, there, 0.0)
    NY = mul(mul(tl.trans(u), found[:, None] * z), load(kept, QB, QB))
    answer = mul(NY, tl.load(basis + i[:, None] * EB + e[None, :])) * (2.0 * tl.load(value))
    tl.store(W + j[:, None] * E + e[None, :], answer, (j < D)[:, None] & (e < E)[None, :])
    tl.debug_barrier()
    tl.store(dual + row, found / tl.load(length + row, there, 1.0), there)
    tl.store(steps, count.to(tl.int64))


@triton.jit(do_not_specialize=["B", "M", "Q", "D", "E", "q", "size"])
def walk_members(
    left, query, bound, free, guess, length, value, dual, W, steps, room,
    B, M, Q, D, E, q, size,
    BLOCK: tl.constexpr, QB: tl.constexpr, QV: tl.constexpr, DB: tl.constexpr, EB: tl.constexpr,
):  # fmt: skip
    """Solve a batch; see :func:`attnmargin.solvers.interior.fused.walk_fused`."""
    program = tl.program_id(0)
    member = program.to(tl.int64)
    while member < B:
        _member(
            left + member * M * D, query + member * Q * E, bound + member * M,
            free + member * M, guess + member * M, length + member * M, value + member,
            dual + member * M, W + member * D * E, steps + member,
            room + program.to(tl.int64) * size, M, Q, D, E, q, BLOCK, QB, QV, DB, EB,
        )  # fmt: skip
        member += tl.num_programs(0)
