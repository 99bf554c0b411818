"""Newton's system at a point of the compiled nuclear walk; see :mod:`compiled_nuclear`."""

from typing import NamedTuple

import numpy as np

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
    mix,
)
from attnmargin.solvers.frobenius.basis import apply
from attnmargin.solvers.interior.linear import combine, factor, product, shortfall
from attnmargin.solvers.interior.schedule import REGULAR


class Rows(NamedTuple):
    """One problem with rows of unit length; a row that does not exist is 0 ≥ −1."""

    left: Floats  # (M, d) left factors in their span
    query: Floats  # (Q, q) queries in their span; row i belongs to query i // (M / Q)
    b: Floats  # (M,)
    free: Bools  # (M,)
    gram: Floats  # (M, M) inner products of the left factors
    columns: Floats  # (d, M), left transposed


class Point(NamedTuple):
    """An interior point in the eigenbasis of F, with the data of Newton's system."""

    dual: Floats  # (M,)
    slack: Floats  # (M,)
    Y: Floats  # (q, q)
    basis: Floats  # (q, q), of the queries' span
    f: Floats  # (q,) eigenvalues of F
    query: Floats  # (Q, q) queries in the basis
    M: Floats  # (d, q), Σ λ_i u_i z_iᵀ in the basis
    c: Floats  # (q, M), u_iᵀ M in columns
    values: Floats  # (M,), rows at W = 2 M Y
    schur: Floats  # (M, M), and then its factors
    pivot: Ints  # (M,)


@jit
def _turn(at: Point, rotation: Floats) -> None:
    """Rotate Y and the basis."""
    half = np.empty(rotation.shape)
    product(at.basis, rotation, half)
    copy_rows(at.basis, half)
    product(at.Y, rotation, half)
    inner(rotation, half, at.Y)
    for a in range(at.f.size):
        for c in range(a):
            at.Y[a, c] = at.Y[c, a] = 0.5 * (at.Y[a, c] + at.Y[c, a])


@jit
def arrive(P: Rows, at: Point) -> None:
    """Compute everything that depends on λ and Y, in the eigenbasis of F."""
    q = at.f.size
    combine(P.left, at.query, at.dual, at.M)
    square = np.empty((q, q))
    inner(at.M, at.M, square)
    squares, vectors = np.linalg.eigh(square)
    rotation = np.empty((q, q))
    for a in range(q):
        at.f[a] = 1.0 - squares[a]
        # eigh returns another memory order, and numba would compile every callee twice.
        for e in range(q):
            rotation[a, e] = vectors[a, e]
    _turn(at, rotation)
    product(P.query, at.basis, at.query)
    combine(P.left, at.query, at.dual, at.M)
    at.c[:] = 0.0
    for i in range(P.columns.shape[0]):
        for a in range(q):
            add(at.c[a], at.M[i, a], P.columns[i], P.b.size)
    MY = np.empty(at.M.shape)
    product(at.M, at.Y, MY)
    apply(P.left, at.query, MY, at.values)
    for i in range(P.b.size):
        at.values[i] *= 2.0


@jit
def _trace(at: Point) -> float:
    total = 0.0
    for a in range(at.f.size):
        total += at.Y[a, a] * at.f[a]
    return total


@jit
def gap(P: Rows, at: Point) -> float:
    """Compute the relative gap: ‖W‖_* ≤ 2 tr Y − tr(Y F) against bᵀλ / ‖M‖."""
    lift, error = shortfall(P.free, P.b, at.values, 1.0)
    gain = dot(P.b, at.dual, P.b.size)
    total, least = -_trace(at), 1.0
    for a in range(at.f.size):
        total += 2.0 * at.Y[a, a]
        least = min(least, at.f[a])
    upper = total * lift
    gap = max(abs(upper - gain / np.sqrt(max(1.0 - least, 1e-30))) / upper, error)
    return gap if np.isfinite(gap) else np.inf


@jit
def _responses(at: Point, z: Floats, Yz: Floats) -> Floats:
    """Compute T_j, twice the solution of ``F T + T F = B_j Y + Y B_j``, B_j = −∂F/∂λ_j."""
    q, M = z.shape
    Yc, T = np.zeros((q, M)), np.empty((q, q, M))
    for a in range(q):
        mix(Yc[a], at.Y[a], at.c)
    for a in range(q):
        for e in range(a + 1):
            scale = 2.0 / (at.f[a] + at.f[e])
            for j in range(M):
                T[a, e, j] = scale * (
                    at.c[a, j] * Yz[e, j]
                    + z[a, j] * Yc[e, j]
                    + Yz[a, j] * at.c[e, j]
                    + Yc[a, j] * z[e, j]
                )
            copy(T[e, a], T[a, e])
    return T


@jit
def _build(P: Rows, at: Point) -> None:
    """Build the Schur matrix in λ: ⟨B_i, T_j⟩/2 and the curvature of F."""
    M, q, Q = P.b.size, at.f.size, P.query.shape[0]
    S = M // Q
    z, Yz = np.empty((q, M)), np.zeros((q, M))
    for i in range(M):
        for a in range(q):
            z[a, i] = at.query[i // S, a]
    for a in range(q):
        mix(Yz[a], at.Y[a], z)
    T = _responses(at, z, Yz)
    t, own = np.empty((q, M)), np.empty(q)
    for k in range(Q):
        t[:] = 0.0
        for a in range(q):
            mix(t[a], at.query[k], T[a])
        for i in range(k * S, (k + 1) * S):
            for a in range(q):
                own[a] = Yz[a, i]
            for m in range(Q):
                weight = 2.0 * dot(at.query[m], own, q)
                for j in range(m * S, (m + 1) * S):
                    at.schur[i, j] = weight * P.gram[i, j]
            for a in range(q):
                own[a] = at.c[a, i]
            mix(at.schur[i], own, t)


@jit
def system(P: Rows, at: Point) -> None:
    """Factor the Schur matrix in λ with its barrier term."""
    _build(P, at)
    # Equal rows would make the matrix singular at the end of the path.
    for i in range(P.b.size):
        barrier = 0.0 if P.free[i] else at.slack[i] / at.dual[i]
        at.schur[i, i] += barrier + REGULAR * at.schur[i, i]
    factor(at.schur, at.pivot)
