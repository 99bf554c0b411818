"""Dual coordinate ascent in blocks of one query, compiled with numba.

    max bᵀλ − ½‖W‖²,  W = Σ λ_m left_m queryᵀ,  λ_m ≥ 0 on inequalities

Rows of a query share its vector z. With ``u = W z`` (``d e`` operations) each step in a row of the
block costs ``2 d``: its value is ``left_mᵀ u``, and a step δ changes u by ``δ ‖z‖² left_m``. After
a few sweeps over the block, W changes once, by a matrix of rank one.
"""

from typing import NamedTuple

import numpy as np

from attnmargin.base.kernels import Bools, Floats, Ints, add, dot, jit, kernel

# Sweeps over the rows of a block before W is updated.
_SWEEPS = 3


class Rows(NamedTuple):
    """Rows ``left_mᵀ W query_q ≥ bound_m``; row m belongs to query ``m // (M / Q)``."""

    left: Floats  # (M, d)
    query: Floats  # (Q, e)
    bound: Floats  # (M,)
    free: Bools  # (M,): equalities, whose multipliers have any sign
    weight: Floats  # (M,): ‖left_m‖²
    size: Floats  # (Q,): ‖query_q‖²


class Live(NamedTuple):
    """The rows to visit, in blocks of one query."""

    rows: Ints  # by block
    first: Ints  # where the blocks begin, and the end
    owner: Ints  # the query of each block


class Space(NamedTuple):
    """Room for one block."""

    u: Floats  # (d,): W z
    keys: Floats  # (d,): Σ δ_m left_m
    busy: Bools  # rows that hold, or do not yet


@jit
def _sweep(P: Rows, rows: Ints, size: float, first: bool, space: Space, dual: Floats) -> bool:
    """Step once in the rows of a block: in all of them, or in those that were busy before."""
    moved, d = False, space.u.size
    for a in range(rows.size):
        m = rows[a]
        if not first and not space.busy[a]:
            continue
        missing = P.bound[m] - dot(P.left[m], space.u, d)
        space.busy[a] = dual[m] != 0.0 or missing > 0.0 or P.free[m]
        if not space.busy[a]:
            continue
        new = dual[m] + missing / (size * P.weight[m])
        if new < 0.0 and not P.free[m]:
            new = 0.0
        step = new - dual[m]
        if step != 0.0:
            dual[m] = new
            add(space.keys, step, P.left[m], d)
            add(space.u, step * size, P.left[m], d)
            moved = True
    return moved


@jit
def _block(P: Rows, q: int, rows: Ints, space: Space, dual: Floats, W: Floats) -> None:
    """Sweep over one block, and update W."""
    d, e = W.shape
    for i in range(d):
        space.u[i] = dot(W[i], P.query[q], e)
        space.keys[i] = 0.0
    changed = False
    for sweep in range(_SWEEPS):
        if not _sweep(P, rows, P.size[q], sweep == 0, space, dual):
            break
        changed = True
    if changed:
        for i in range(d):
            add(W[i], space.keys[i], P.query[q], e)


@kernel("block ascent", 2)
def ascend(P: Rows, live: Live, order: Ints, dual: Floats, W: Floats) -> None:
    """Ascend in blocks of live rows, in place.

    Args:
        P: the rows.
        live: those to visit.
        order: int ``(epochs, blocks)``, a permutation of the blocks per epoch.
        dual: multipliers ``(M,)``.
        W: ``Σ λ_m left_m queryᵀ``, ``(d, e)``.
    """
    longest, blocks = 0, live.owner.size
    for b in range(blocks):
        longest = max(longest, live.first[b + 1] - live.first[b])
    d = P.left.shape[1]
    space = Space(np.empty(d), np.empty(d), np.empty(longest, np.bool_))
    for epoch in range(order.shape[0]):
        for c in range(blocks):
            b = order[epoch, c]
            rows = live.rows[live.first[b] : live.first[b + 1]]
            _block(P, live.owner[b], rows, space, dual, W)


@kernel("row sums", 1)
def collect(left: Floats, rows: Ints, place: Ints, factor: Floats, keys: Floats) -> None:
    """Add ``factor_a left_m``, m the a-th of some rows, to ``keys[place_a]``, keys ``(·, d)``."""
    for a in range(rows.size):
        if factor[a] != 0.0:
            add(keys[place[a]], factor[a], left[rows[a]], left.shape[1])


@kernel("row values", 1)
def values(left: Floats, image: Floats, rows: Ints, place: Ints, out: Floats) -> None:
    """Compute ``left_mᵀ image[place_a]``, m the a-th of some rows, image ``(·, d)``."""
    for a in range(rows.size):
        out[a] = dot(left[rows[a]], image[place[a]], left.shape[1])
