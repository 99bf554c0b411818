"""Exact margin problems: linear programming and the shortest W, in whole numbers.

Floats are rational numbers, so rows ``⟨left rightᵀ, W⟩ ≥ bound`` are exact, and so are all answers
here. Pivots are free of fractions: every tableau is whole numbers over one common denominator.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

Rows = list[list[int]]


@dataclass(frozen=True)
class Exact:
    """Inequality rows ``A w ≥ b`` in whole numbers, each row times a power of two."""

    A: Rows
    b: list[int]
    scale: list[int]  # log₂ of the factor of each row
    origin: list[int]  # the row of the problem that it came from
    shape: tuple[int, int]


def _fraction(x: Any) -> Fraction:
    return x if isinstance(x, Fraction) else Fraction(float(x))


def exact_rows(
    left: NDArray[Any],
    right: NDArray[Any],
    bound: NDArray[Any],
    equality: NDArray[np.bool_] | None = None,
    mask: NDArray[np.bool_] | None = None,
) -> Exact:
    """Convert rows, floats or binary fractions, to whole numbers; equalities become two rows."""
    A: Rows = []
    b: list[int] = []
    scale: list[int] = []
    origin: list[int] = []
    for m in range(len(left)):
        if mask is not None and not mask[m]:
            continue
        entries = [_fraction(x) * _fraction(y) for x in left[m] for y in right[m]]
        entries.append(_fraction(bound[m]))
        power = max(x.denominator for x in entries).bit_length() - 1
        whole = [int(x * 2**power) for x in entries]
        signs = (1, -1) if equality is not None and equality[m] else (1,)
        for sign in signs:
            A.append([sign * x for x in whole[:-1]])
            b.append(sign * whole[-1])
            scale.append(power)
            origin.append(m)
    return Exact(A, b, scale, origin, (left.shape[1], right.shape[1]))


def _pivot(T: Rows, r: int, c: int, before: int) -> int:
    """Make column c a unit column by row r; return the new common denominator."""
    head, pivot = T[r], T[r][c]
    for i, row in enumerate(T):
        if i != r:
            factor = row[c]
            T[i] = [(x * pivot - factor * y) // before for x, y in zip(row, head, strict=True)]
    if pivot < 0:
        for i, row in enumerate(T):
            T[i] = [-x for x in row]
        return -pivot
    return pivot


def feasible_point(rows: Exact) -> list[Fraction] | None:
    """Return a w with ``A w ≥ b``, or None if a Farkas proof shows that there is none.

    Phase one of the simplex method, with Bland's rule, on ``Aᵀλ = 0, bᵀλ = 1, λ ≥ 0``. If it ends
    above zero, its multipliers are a point.
    """
    M, N = len(rows.A), (len(rows.A[0]) if rows.A else 0) + 1
    if M == 0:
        return [Fraction(0)] * (rows.shape[0] * rows.shape[1])
    T: Rows = []
    for j in range(N):
        own = [rows.A[m][j] if j < N - 1 else rows.b[m] for m in range(M)]
        T.append([*own, *(int(k == j) for k in range(N)), int(j == N - 1)])
    cost = [sum(T[j][k] for j in range(N)) for k in range(M)]
    T.append([*cost, *([0] * N), 1])  # the sum of what the artificial variables still are
    basis, common = [M + j for j in range(N)], 1
    while True:
        enter = next((k for k in range(M) if T[-1][k] > 0), None)
        if enter is None:
            break
        ready = [j for j in range(N) if T[j][enter] > 0]
        leave = min(ready, key=lambda j: (Fraction(T[j][-1], T[j][enter]), basis[j]))
        common = _pivot(T, leave, enter, common)
        basis[leave] = enter
    if T[-1][-1] == 0:
        return None
    # cost row k of an artificial column is −y_k + 1, over the common denominator
    y = [Fraction(common + T[-1][M + j], common) for j in range(N)]
    return [-x / y[-1] for x in y[:-1]]


@dataclass(frozen=True)
class Shortest:
    """The exact solution of ``min ‖w‖`` over the rows."""

    w: list[Fraction]
    dual: list[Fraction]  # per row of Exact, unscaled
    slack: list[Fraction]  # A w − b over the scale of the row


def shortest_point(rows: Exact) -> Shortest | None:
    """Solve ``min ½‖w‖²  subject to  A w ≥ b`` exactly by Lemke's method; None if infeasible.

    The KKT conditions are the complementarity problem ``s = AAᵀλ − b, s ≥ 0, λ ≥ 0, sᵀλ = 0``. For
    a positive semidefinite matrix the method ends in a solution or in a ray, and a ray means that
    there is none. Ties are broken by the lexicographic rule, so that it does not cycle.
    """
    M = len(rows.A)
    if all(x <= 0 for x in rows.b):
        width = rows.shape[0] * rows.shape[1]
        return _answer(rows, [Fraction(0)] * M, width)
    G = [[sum(x * y for x, y in zip(a, c, strict=True)) for c in rows.A] for a in rows.A]
    # columns: s (M), λ (M), the artificial one, −b
    T = [[*(int(i == j) for j in range(M)), *(-g for g in G[i]), -1, -rows.b[i]] for i in range(M)]
    basis, common, extra = list(range(M)), 1, 2 * M
    enter = extra
    leave = min(range(M), key=lambda i: _lexicographic(T[i], M, -T[i][enter]))
    while True:
        common = _pivot(T, leave, enter, common)
        left, basis[leave] = basis[leave], enter
        if left == extra:
            break
        enter = left + M if left < M else left - M
        ready = [i for i in range(M) if T[i][enter] > 0]
        if not ready:
            return None
        leave = min(ready, key=lambda i: _lexicographic(T[i], M, T[i][enter]))
        ratio = Fraction(T[leave][-1], T[leave][enter])
        for i in ready:  # the artificial variable leaves as soon as it can
            if basis[i] == extra and Fraction(T[i][-1], T[i][enter]) == ratio:
                leave = i
    dual = [Fraction(0)] * M
    for i, k in enumerate(basis):
        if M <= k < 2 * M:
            dual[k - M] = Fraction(T[i][-1], common)
    return _answer(rows, dual, rows.shape[0] * rows.shape[1])


def _lexicographic(row: list[int], M: int, pivot: int) -> list[Fraction]:
    return [Fraction(row[-1], pivot), *(Fraction(row[j], pivot) for j in range(M))]


def _answer(rows: Exact, dual: list[Fraction], width: int) -> Shortest:
    w = [
        sum((x * a[j] for x, a in zip(dual, rows.A, strict=True) if x), Fraction(0))
        for j in range(width)
    ]
    slack = []
    for a, b, power in zip(rows.A, rows.b, rows.scale, strict=True):
        value = sum((x * y for x, y in zip(a, w, strict=True)), Fraction(0)) - b
        slack.append(value / 2**power)
    own = [x * 2**power for x, power in zip(dual, rows.scale, strict=True)]
    return Shortest(w, own, slack)


def holds(rows: Exact, w: list[Fraction]) -> bool:
    """Check ``A w ≥ b`` exactly."""
    return all(
        sum((x * y for x, y in zip(a, w, strict=True)), Fraction(0)) >= b
        for a, b in zip(rows.A, rows.b, strict=True)
    )
