"""The active rows of one problem and their Cholesky factor, compiled with numba.

A basis is a set of independent rows ``a_i = left_i queryᵀ`` of about unit length. Functions
take and return plain numbers and write into the arrays they are given.
"""

import math
from typing import NamedTuple

import numpy as np

from attnmargin.base.kernels import Bools, Floats, Ints, add, dot, jit, jit_inline, mix, spread

# A row closer than this to the span of the active rows counts as dependent on them.
_DEPENDENT = 1e-11
# A squared distance below the first, times the squared size of the coefficients, has lost its
# digits on the Gram matrix and must be measured on the rows. Above the second it never has.
_DOUBTFUL, SMALL = 1e-10, 1e-2


class Rows(NamedTuple):
    """One problem with rows of about unit length; ``columns`` is ``left`` transposed."""

    left: Floats  # (M, d)
    columns: Floats  # (d, M)
    query: Floats  # (Q, e); row i belongs to query i // (M / Q)
    gram_query: Floats  # (Q, Q), row q is computed on first use
    known: Bools  # (Q,) whether row q of gram_query is computed
    bound: Floats  # (M,)
    equality: Bools
    usable: Bools


class Basis(NamedTuple):
    """Active rows with their multipliers and the Cholesky factor of their Gram matrix."""

    row: Ints  # (most,)
    slot: Ints  # (most,) index of the row in ``gram``
    dual: Floats  # (most,)
    L: Floats  # (most, most), lower, with the reciprocals of its diagonal
    r: Floats  # (most,) coefficients of an entering row on the active ones
    gram: Floats  # (most, M) inner products of the active rows with all rows


@jit
def swap(basis: Basis, a: int, c: int) -> None:
    basis.row[a], basis.row[c] = basis.row[c], basis.row[a]
    basis.slot[a], basis.slot[c] = basis.slot[c], basis.slot[a]


@jit_inline
def place(P: Rows, basis: Basis, k: int, row: int) -> None:
    """Put a row at place k, and compute its inner products ⟨a_row, a_i⟩ for all i."""
    Q = P.query.shape[0]
    S = P.left.shape[0] // Q
    own = row // S
    if not P.known[own]:
        P.known[own] = True
        for q in range(Q):
            P.gram_query[own, q] = dot(P.query[own], P.query[q], P.query.shape[1])
    basis.row[k] = row
    out = basis.gram[basis.slot[k]]
    out[:] = 0.0
    mix(out, P.left[row], P.columns)
    for q in range(Q):
        factor = P.gram_query[own, q]
        for i in range(q * S, (q + 1) * S):
            out[i] *= factor


@jit
def combine(P: Rows, basis: Basis, weight: Floats, k: int, W: Floats) -> None:
    """Compute W += Σ weight_a a_a over the active rows, grouped by query first."""
    Q = P.query.shape[0]
    d = P.left.shape[1]
    S = P.left.shape[0] // Q
    keys = np.zeros((Q, d))
    for a in range(k):
        add(keys[basis.row[a] // S], weight[a], P.left[basis.row[a]], d)
    spread(keys, P.query, W)


@jit
def apply(left: Floats, query: Floats, W: Floats, values: Floats) -> None:
    """Compute values_i = ⟨a_i, W⟩."""
    M, d = left.shape
    Q, e = query.shape
    S = M // Q
    image = np.empty(d)
    for q in range(Q):
        for i in range(d):
            total = 0.0
            for j in range(e):
                total += W[i, j] * query[q, j]
            image[i] = total
        for row in range(q * S, (q + 1) * S):
            total = 0.0
            for i in range(d):
                total += left[row, i] * image[i]
            values[row] = total


@jit
def lower(L: Floats, y: Floats, k: int) -> None:
    """Solve L x = y in place."""
    for a in range(k):
        total = y[a]
        for c in range(a):
            total -= L[a, c] * y[c]
        y[a] = total * L[a, a]


@jit
def upper(L: Floats, y: Floats, k: int) -> None:
    """Solve Lᵀ x = y in place."""
    for a in range(k - 1, -1, -1):
        y[a] *= L[a, a]
        factor = y[a]
        for c in range(a):
            y[c] -= factor * L[a, c]


@jit_inline
def coefficients(basis: Basis, k: int) -> None:
    """Compute the coefficients r of the row at place k from its factor row."""
    for a in range(k):
        basis.r[a] = basis.L[k, a]
    upper(basis.L, basis.r, k)


@jit
def _measure(P: Rows, basis: Basis, k: int) -> float:
    """Measure the distance² of row k to the active rows on the rows themselves; refine r."""
    values, weight = np.empty(P.left.shape[0]), np.empty(k + 1)
    distance = 0.0
    for _ in range(3):
        for a in range(k):
            weight[a] = -basis.r[a]
        weight[k] = 1.0
        R = np.zeros((P.left.shape[1], P.query.shape[1]))
        combine(P, basis, weight, k + 1, R)
        apply(P.left, P.query, R, values)
        for a in range(k):
            weight[a] = values[basis.row[a]]
        lower(basis.L, weight, k)
        upper(basis.L, weight, k)
        add(basis.r, 1.0, weight, k)
        distance = 0.0
        for i in range(R.shape[0]):
            distance += dot(R[i], R[i], R.shape[1])
    size = 1.0
    for a in range(k):
        size += abs(basis.r[a])
    return distance if math.sqrt(distance) > _DEPENDENT * size else 0.0


@jit_inline
def project(P: Rows, basis: Basis, k: int) -> float:
    """Factor the row at place k on the active rows; return its distance² to them.

    If the distance² is below SMALL, compute the coefficients r too.
    """
    L, slot, new = basis.L, basis.slot[k], basis.row[k]
    square = 0.0
    for a in range(k):
        total = basis.gram[slot, basis.row[a]]
        for c in range(a):
            total -= L[a, c] * L[k, c]
        L[k, a] = total * L[a, a]
        square += L[k, a] * L[k, a]
    distance = basis.gram[slot, new] - square
    # At most as many rows as W has entries are independent, whatever rounding says.
    full = k + 1 == basis.row.size
    if distance < SMALL or full:
        coefficients(basis, k)
        size = 1.0
        for a in range(k):
            size += abs(basis.r[a])
        if distance < _DOUBTFUL * size * size or full:
            distance = _measure(P, basis, k)
        distance = 0.0 if full else distance
    L[k, k] = 1.0 / math.sqrt(distance)
    return distance


@jit
def drop(basis: Basis, k: int, p: int) -> None:
    """Move active row p behind the others; rotations make the factor triangular again."""
    L = basis.L
    for a in range(p, k):
        swap(basis, a, a + 1)
    for a in range(p, k - 1):
        basis.dual[a] = basis.dual[a + 1]
        for c in range(a + 2):
            L[a, c] = L[a + 1, c]
    for a in range(p, k - 1):
        x, y = L[a, a], 1.0 / L[a, a + 1]
        length = math.sqrt(x * x + y * y)
        cosine, sine = x / length, y / length
        L[a, a] = 1.0 / length
        for i in range(a + 1, k - 1):
            x, y = L[i, a], L[i, a + 1]
            L[i, a] = cosine * x + sine * y
            L[i, a + 1] = cosine * y - sine * x
