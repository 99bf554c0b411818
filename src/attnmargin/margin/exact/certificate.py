"""The numbers of a certificate, evaluated without rounding."""

from fractions import Fraction
from typing import Any, NamedTuple

from mpmath import mp, mpf
from torch import Tensor

from attnmargin.margin.exact.frobenius import ExactAnswer, solve_exactly
from attnmargin.margin.exact.rows import ExactRows, exact_rows
from attnmargin.margin.norms import ColumnMax, Frobenius, Lp, Max, Norm, Nuclear, RowMax, Sum
from attnmargin.margin.problem import MarginProblem

# Decimal digits of roots, powers and singular values; everything else is rational.
_DIGITS = 50

Fractions = list[Fraction]


class ExactNumbers(NamedTuple):
    """Gap, worst violation, error of λ, lower and upper bound of one problem."""

    gap: float
    primal: float
    dual: float
    lower: float
    upper: float


def exact_numbers(problem: MarginProblem, norm: Norm, W: Tensor, dual: Tensor) -> ExactNumbers:
    """Evaluate the certificate of one problem, without a batch.

    If W is not finite, the rows of λ are searched for a contradiction that holds exactly: λ itself
    is rounded, and only nearly cancels its rows.
    """
    rows = exact_rows(problem)
    given = [Fraction(x) for x in _finite(dual[rows.place].tolist())]
    infinite = float("inf")
    with mp.workdps(_DIGITS):
        lower, error = _lower(rows, norm, problem.shape, given)
        if not bool(W.isfinite().all()):
            wrong = solve_exactly(rows, _used(given)).feasible
            found = float(lower) if wrong else infinite
            return ExactNumbers(infinite, infinite, 1.0 if wrong else 0.0, found, infinite)
        entries = [Fraction(x) for x in W.flatten().tolist()]
        upper, primal = _upper(rows, norm, entries, problem.shape)
        gap = abs(upper - lower) / (upper or 1) if upper < mp.inf else mp.inf
        return ExactNumbers(float(gap), primal, error, float(lower), float(upper))


def exact_support(problem: MarginProblem, dual: Tensor) -> ExactAnswer:
    """Solve one problem in the Frobenius norm exactly; rows are numbered as they exist."""
    rows = exact_rows(problem)
    return solve_exactly(rows, _used([Fraction(x) for x in _finite(dual[rows.place].tolist())]))


def _finite(numbers: list[float]) -> list[float]:
    return [x if abs(x) < float("inf") else 0.0 for x in numbers]


def _used(given: Fractions) -> list[int]:
    """List rows with a multiplier, the largest first."""
    return sorted((m for m, x in enumerate(given) if x), key=lambda m: -abs(given[m]))


def _lower(
    rows: ExactRows, norm: Norm, shape: tuple[int, int], given: Fractions
) -> tuple[Any, float]:
    """Compute ``bᵀλ / ‖Aᵀλ‖_dual`` for the valid part of λ, and the error of λ."""
    largest = max(map(abs, given), default=Fraction(0))
    pairs = list(zip(given, rows.equality, strict=True))
    valid = [x if equal or x > 0 else Fraction(0) for x, equal in pairs]
    error = max((v - x for v, x in zip(valid, given, strict=True)), default=Fraction(0))
    scaled = [x / Fraction(2) ** k for x, k in zip(valid, rows.power, strict=True)]
    gain = sum((x * b for x, b in zip(scaled, rows.bound, strict=True)), Fraction(0)) / rows.scale
    if gain <= 0:
        return mpf(0), float(error / largest) if largest else 0.0
    used = [(m, x) for m, x in enumerate(scaled) if x]
    total = [
        sum((x * rows.left[m][c] * rows.right[m][e] for m, x in used), Fraction(0))
        for c in range(shape[0])
        for e in range(shape[1])
    ]
    size = _length(total, norm, shape, dual=True)
    return (_mpf(gain) / size if size else mp.inf), float(error / largest)


def _upper(rows: ExactRows, norm: Norm, W: Fractions, shape: tuple[int, int]) -> tuple[Any, float]:
    """Compute ``‖W‖`` scaled up for its inequalities, and the worst relative violation."""
    lift, worst = Fraction(1), Fraction(0)
    for m, bound in enumerate(rows.bound):
        value = _value(rows, m, W) * rows.scale
        missing = bound - value
        missing = abs(missing) if rows.equality[m] else max(missing, Fraction(0))
        worst = max(worst, missing / abs(bound) if bound else Fraction(missing != 0))
        if bound > 0 and not rows.equality[m]:
            if value <= 0:
                return mp.inf, _rounded(worst)
            lift = max(lift, bound / value)
    return _length(W, norm, shape, dual=False) * _mpf(lift), _rounded(worst)


def _value(rows: ExactRows, m: int, W: Fractions) -> Fraction:
    pairs = (x * y for x in rows.left[m] for y in rows.right[m])
    return sum((x * w for x, w in zip(pairs, W, strict=True)), Fraction(0))


def _length(entries: Fractions, norm: Norm, shape: tuple[int, int], *, dual: bool) -> Any:
    """Compute a norm, or its dual norm, to many digits."""
    numbers = [_mpf(x) for x in entries]
    if isinstance(norm, Frobenius):
        return mp.sqrt(mp.fsum(x * x for x in numbers))
    if isinstance(norm, Lp):
        p = mpf(norm.p) / (mpf(norm.p) - 1) if dual else mpf(norm.p)
        return mp.fsum(abs(x) ** p for x in numbers) ** (1 / p)
    if isinstance(norm, Max | Sum):
        return (
            max(map(abs, numbers)) if dual == isinstance(norm, Sum) else mp.fsum(map(abs, numbers))
        )
    wide = [numbers[c * shape[1] : (c + 1) * shape[1]] for c in range(shape[0])]
    if isinstance(norm, RowMax | ColumnMax):
        groups = wide if isinstance(norm, RowMax) else list(zip(*wide, strict=True))
        lengths = [mp.sqrt(mp.fsum(x * x for x in group)) for group in groups]
        return mp.fsum(lengths) if dual else max(lengths)
    if not any(numbers):
        return mpf(0)
    singular = mp.svd_r(mp.matrix(wide), compute_uv=False)
    return max(singular) if dual == isinstance(norm, Nuclear) else mp.fsum(singular)


def _mpf(x: Fraction) -> Any:
    return mpf(x.numerator) / mpf(x.denominator)


def _rounded(x: Fraction) -> float:
    """Round to a float, to infinity where it is too large for one."""
    return float(_mpf(x))
