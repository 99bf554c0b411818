"""Small dense matrices in Triton, for :mod:`attnmargin.solvers.interior.fused_nuclear_kernel`."""

# mypy: ignore-errors

import triton
import triton.language as tl

# A smaller pivot of F, or of the Schur matrix scaled to a diagonal of ones, is rounding.
_LEAST_PIVOT = tl.constexpr(1e-15)
# Rows that a pivot eliminates at once.
_PIVOTS = tl.constexpr(16)
# How often a solution of the Schur system is refined.
_PASSES = tl.constexpr(2)
# A query this close to the span of those before it lies in the span.
_INSIDE_SPAN = tl.constexpr(1e-13)


@triton.jit
def mul(a, b):
    return tl.dot(a, b, out_dtype=tl.float64)


@triton.jit
def sym(a):
    return 0.5 * (a + tl.trans(a))


@triton.jit
def load(matrix, SIZE: tl.constexpr, STRIDE: tl.constexpr):
    """Read the first rows and columns of a square matrix from the room."""
    i = tl.arange(0, SIZE)
    return tl.load(matrix + i[:, None] * STRIDE + i[None, :])


@triton.jit
def save(matrix, numbers, HEIGHT: tl.constexpr, WIDTH: tl.constexpr):
    """Write a matrix to the room."""
    i, j = tl.arange(0, HEIGHT), tl.arange(0, WIDTH)
    tl.store(matrix + i[:, None] * WIDTH + j[None, :], numbers)


@triton.jit
def span(query, basis, places, Q, E, QB: tl.constexpr, EB: tl.constexpr):
    """Write an orthonormal basis of the queries ``(q, E)`` and their places in it ``(Q, q)``."""
    i, e = tl.arange(0, QB), tl.arange(0, EB)
    found = tl.zeros([QB, EB], tl.float64)
    if Q < E:
        for k in range(Q):
            rest = tl.load(query + k * E + e, e < E, 0.0)
            first = tl.sum(found * rest[None, :], 1)
            rest -= tl.sum(found * first[:, None], 0)
            second = tl.sum(found * rest[None, :], 1)
            rest -= tl.sum(found * second[:, None], 0)
            length = tl.sqrt(tl.sum(rest * rest, 0))
            length = tl.where(length > _INSIDE_SPAN, length, 0.0)
            unit = rest / tl.where(length > 0.0, length, float("inf"))
            found = tl.where((i == k)[:, None], unit[None, :], found)
            tl.store(places + k * QB + i, tl.where(i == k, length, first + second))
    else:
        found += tl.where((i[:, None] == e[None, :]) & (e < E)[None, :], 1.0, 0.0)
    tl.store(basis + i[:, None] * EB + e[None, :], found)


@triton.jit
def factor(Y, q, QB: tl.constexpr):
    """Factor ``Y = R Rᵀ``; return ``Rᵀ``."""
    i = tl.arange(0, QB)
    R = tl.zeros([QB, QB], tl.float64)
    for k in range(q):
        here = (i == k)[:, None]
        line = tl.where(i >= k, tl.sum(tl.where(here, Y, 0.0), 0), 0.0)
        corner = tl.sum(tl.where(i == k, line, 0.0), 0)
        line = line * tl.where(corner > 0.0, 1.0 / tl.sqrt(tl.maximum(corner, 1e-300)), 0.0)
        R = tl.where(here, line[None, :], R)
        Y -= line[:, None] * line[None, :]
    return R


@triton.jit
def inverse_factor(F, q, QB: tl.constexpr):
    """Factor ``F⁻¹ = K Kᵀ``; return ``Kᵀ``.

    Elimination leaves the inverse of the unit triangle of F below the diagonal.
    """
    i = tl.arange(0, QB)
    same = i[:, None] == i[None, :]
    for k in range(q):
        line = tl.sum(tl.where((i == k)[:, None], F, 0.0), 0)
        corner = tl.sum(tl.where(i == k, line, 0.0), 0)
        down = tl.where(i > k, line / tl.maximum(corner, _LEAST_PIVOT), 0.0)
        F -= down[:, None] * tl.where(i == k, line + 1.0, line)[None, :]
    diagonal = tl.maximum(tl.sum(tl.where(same, F, 0.0), 1), _LEAST_PIVOT)
    K = tl.where(i[:, None] > i[None, :], F, tl.where(same, 1.0, 0.0))
    return K / tl.sqrt(diagonal)[:, None]


@triton.jit
def invert(S, inverse, M, BLOCK: tl.constexpr):
    """Write the inverse of a matrix whose diagonal is one, by pivots of sixteen rows at once.

    As in the Frobenius kernel, one product does a pivot, and what it leaves is −S⁻¹ + 2 I.
    """
    row, i = tl.arange(0, BLOCK), tl.arange(0, _PIVOTS)
    place = 0
    while place < M:
        save(inverse, S, BLOCK, BLOCK)
        tl.debug_barrier()
        lines = inverse + (place + i)[:, None] * BLOCK
        corner = tl.load(lines + (place + i)[None, :])
        edge = tl.load(lines + row[None, :])
        edge = tl.where((place + i)[:, None] == row[None, :], edge - 1.0, edge)
        edge = mul(inverse_factor(corner, _PIVOTS, _PIVOTS), edge)
        S = tl.dot(tl.trans(-edge), edge, S, out_dtype=tl.float64)
        tl.debug_barrier()
        place += _PIVOTS
    save(inverse, tl.where(row[:, None] == row[None, :], 2.0, 0.0) - S, BLOCK, BLOCK)


@triton.jit
def times(matrix, x, BLOCK: tl.constexpr):
    """Multiply a symmetric matrix in the room by a vector."""
    return tl.sum(load(matrix, BLOCK, BLOCK) * x[:, None], 0)


@triton.jit
def solve(schur, inverse, scale, right, BLOCK: tl.constexpr):
    """Solve the Schur system, and refine the solution."""
    right = right * scale
    x = times(inverse, right, BLOCK)
    for _ in range(_PASSES):
        x += times(inverse, right - times(schur, x, BLOCK), BLOCK)
    return x * scale
