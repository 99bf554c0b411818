"""The shortest W in the ℓp norm, with 100 digits: Newton's method on active sets, KKT checked.

    min (1/p) Σ |w_j|^p   subject to   A w ≥ b

A solution is ``w = ∇ψ⁻¹(Aᵀλ)`` with ``λ ≥ 0`` and ``λ_m > 0`` on tight rows only. It is unique, and
the conditions prove it: it does not matter where the guess of the active set came from.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from mpmath import mp, mpf

from tests.hunt.oracle_exact import Exact

DIGITS = 130
_SMALL = mpf(10) ** -60  # relative residual that counts as zero
_NEWTON, _SETS = 60, 40
mp.dps = max(mp.dps, DIGITS)

Vector = list[Any]


@dataclass(frozen=True)
class Precise:
    """A solution that satisfies the KKT conditions to 60 digits."""

    w: Vector
    dual: Vector  # of the inequality rows
    slack: Vector  # A w − b, relative to |b|, or to ‖a‖ ‖w‖ if b is zero


def lp_solution(rows: Exact, p: float, guesses: Iterable[Sequence[float]]) -> Precise | None:
    """Solve from the first guess of the multipliers that leads to a solution; None if none does."""
    A = [[mpf(x) / mpf(2) ** k for x in a] for a, k in zip(rows.A, rows.scale, strict=True)]
    b = [mpf(x) / mpf(2) ** k for x, k in zip(rows.b, rows.scale, strict=True)]
    if all(x <= 0 for x in b):
        zero = [mpf(0)] * len(rows.A[0]) if rows.A else []
        return Precise(zero, [mpf(0)] * len(b), _slacks(A, b, zero))
    size = [mp.sqrt(sum(x * x for x in a)) or mpf(1) for a in A]
    unit = [[x / s for x in a] for a, s in zip(A, size, strict=True)]
    level = [x / s for x, s in zip(b, size, strict=True)]
    for guess in guesses:
        start = [mpf(float(g)) * s for g, s in zip(guess, size, strict=True)]
        found = _active_sets(unit, level, mpf(p), start)
        if found is not None:
            w, dual = found
            return Precise(w, [x / s for x, s in zip(dual, size, strict=True)], _slacks(A, b, w))
    return None


def _slacks(A: list[Vector], b: Vector, w: Vector) -> Vector:
    length = mp.sqrt(sum(x * x for x in w))
    out = []
    for a, bound in zip(A, b, strict=True):
        unit = abs(bound) or mp.sqrt(sum(x * x for x in a)) * length or mpf(1)
        slack = (_dot(a, w) - bound) / unit
        out.append(mpf(0) if abs(slack) < _SMALL * 1e20 else slack)
    return out


def _dot(a: Vector, b: Vector) -> Any:
    return mp.fdot(a, b)


def _active_sets(A: list[Vector], b: Vector, p: Any, start: Vector) -> tuple[Vector, Vector] | None:
    """Solve on sets of tight rows until no multiplier is negative and no row violated."""
    largest = max(start, default=mpf(0))
    if largest <= 0:
        return None
    active = [m for m, x in enumerate(start) if x > 1e-7 * largest]
    dual = [x if m in active else mpf(0) for m, x in enumerate(start)]
    seen: set[tuple[int, ...]] = set()
    for _ in range(_SETS):
        active = _independent(A, active)
        if tuple(active) in seen:
            return None
        seen.add(tuple(active))
        found = _newton([A[m] for m in active], [b[m] for m in active], p,
                        [dual[m] for m in active])  # fmt: skip
        if found is None:
            return None
        w, own = found
        dual = [mpf(0)] * len(b)
        for m, x in zip(active, own, strict=True):
            dual[m] = x
        negative = [m for m in active if dual[m] < -_SMALL * max(map(abs, own))]
        if negative:
            worst = min(negative, key=lambda m: dual[m])
            active = [m for m in active if m != worst]
            dual[worst] = mpf(0)
            continue
        short = {m: _missing(A[m], b[m], w) for m in range(len(b))}
        m = max(short, key=lambda m: short[m])
        if short[m] <= _SMALL * 1e10:
            return w, dual
        active = sorted({*active, m})
        dual[m] = max(own) * mpf("1e-3")
    return None


def _missing(a: Vector, bound: Any, w: Vector) -> Any:
    """How far a row is violated, relative to its terms."""
    terms = sum(abs(x * y) for x, y in zip(a, w, strict=True)) + abs(bound)
    return (bound - _dot(a, w)) / (terms or mpf(1))


def _independent(A: list[Vector], active: list[int]) -> list[int]:
    """Keep rows that are linearly independent, in order."""
    kept: list[int] = []
    basis: list[Vector] = []
    for m in active:
        row = list(A[m])
        for _ in range(2):
            for q in basis:
                share = _dot(row, q)
                row = [x - share * y for x, y in zip(row, q, strict=True)]
        length = mp.sqrt(_dot(row, row))
        if length > mpf(10) ** -50:
            basis.append([x / length for x in row])
            kept.append(m)
    return kept


def _point(A: list[Vector], dual: Vector, q: Any) -> tuple[Vector, Vector]:
    """``g = Aᵀλ`` and ``w = sign(g) |g|^{q−1}``."""
    columns = zip(*A, strict=True)
    g = [_dot(list(column), dual) for column in columns]
    return g, [mp.sign(x) * abs(x) ** (q - 1) if x else x for x in g]


def _newton(A: list[Vector], b: Vector, p: Any, dual: Vector) -> tuple[Vector, Vector] | None:
    """Solve ``A w(λ) = b`` for λ by Newton's method on ``bᵀλ − (1/q) ‖Aᵀλ‖_q^q``."""
    if not A:
        return None
    q = p / (p - 1)
    g, _ = _point(A, dual, q)
    gain, power = _dot(b, dual), sum(abs(x) ** q for x in g)
    if gain <= 0 or power == 0:
        return None
    factor = (gain / power) ** (1 / (q - 1))
    dual = [factor * x for x in dual]
    g, w = _point(A, dual, q)
    value = _dot(b, dual) - _dot(g, w) / q
    for _ in range(_NEWTON):
        rest = [x - _dot(a, w) for x, a in zip(b, A, strict=True)]
        if all(abs(_missing(a, x, w)) <= _SMALL for x, a in zip(b, A, strict=True)):
            return w, dual
        curve = [(q - 1) * x / y if y else mpf(0) for x, y in zip(w, g, strict=True)]
        H = mp.matrix(
            [[mp.fsum(x * y * c for x, y, c in zip(a, d, curve, strict=True)) for d in A]
             for a in A]
        )  # fmt: skip
        try:
            step = list(mp.lu_solve(H, mp.matrix(rest)))
        except ZeroDivisionError:
            return None
        length = mpf(1)
        slope = _dot(step, rest)
        for _ in range(60):
            trial = [x + length * y for x, y in zip(dual, step, strict=True)]
            g, w = _point(A, trial, q)
            better = _dot(b, trial) - _dot(g, w) / q
            if better >= value + mpf("1e-4") * length * slope or abs(better - value) <= abs(
                value
            ) * mpf(10) ** -(DIGITS - 20):
                break
            length /= 2
        dual, value = trial, better
    return None
