"""Claims: checkable statements of a paper, with the measured number, its error and a verdict."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, final

import numpy as np
from scipy.special import stdtrit

from attnmargin.base.intervals import WIDE, share_interval


class Judgement(StrEnum):
    """What the measured numbers say about a claim."""

    HOLDS = "holds"
    FAILS = "fails"
    UNDECIDED = "undecided"  # within the error of the measurement, or not measured yet


@final
@dataclass(frozen=True)
class Measured:
    """A number, its standard error where it is a mean, and the number of values behind it."""

    value: float | None
    error: float | None = None
    count: int | None = None
    interval: tuple[float, float] | None = None  # 95 %

    def span(self) -> tuple[float, float]:
        """Return the 95 % interval; the number itself where there is no error."""
        value = np.nan if self.value is None else self.value
        if self.interval is not None:
            return self.interval
        few = self.count is not None and self.count > 1
        wide = float(stdtrit(self.count - 1, 0.975)) if few and self.count is not None else WIDE
        half = wide * (self.error or 0.0)
        return value - half, value + half


def mean_of(values: Any) -> Measured:
    """Measure the mean of independent trials.

    >>> mean_of([1.0, 2.0, 3.0])
    Measured(value=2.0, error=0.5773502691896258, count=3, interval=None)
    """
    own = np.asarray(values, dtype=float).ravel()
    error = float(own.std(ddof=1) / np.sqrt(own.size)) if own.size > 1 else None
    return Measured(float(own.mean()) if own.size else None, error, own.size)


def share_of(flags: Any) -> Measured:
    """Measure the share of trials in which something is true, with Wilson's interval."""
    own = np.asarray(flags, dtype=bool).ravel()
    if not own.size:
        return Measured(None, count=0)
    share = float(own.mean())
    low, high = share_interval(np.array(own.sum()), own.size)
    error = float(np.sqrt(share * (1.0 - share) / own.size))
    return Measured(share, error, own.size, (float(low), float(high)))


def correlation_of(rank: float, count: int) -> Measured:
    """Measure Spearman's rank correlation of ``count`` pairs, with Bonett and Wright's interval.

    >>> correlation_of(0.5, 12)
    Measured(value=0.5, error=0.265..., count=12, interval=(-0.142..., 0.846...))
    """
    if count < 4 or not np.isfinite(rank):
        return Measured(finite(rank), count=count)
    if abs(rank) >= 1.0:
        return Measured(rank, 0.0, count)
    spread = float(np.sqrt((1.0 + rank**2 / 2.0) / (count - 3)))  # of Fisher's z
    low, high = (float(np.tanh(np.arctanh(rank) + sign * WIDE * spread)) for sign in (-1, 1))
    return Measured(rank, (1.0 - rank**2) * spread, count, (low, high))


def least_of(values: Any) -> Measured:
    """Measure the least value: all of them are claimed, and there is no error."""
    own = np.asarray(values, dtype=float).ravel()
    return Measured(float(own.min()) if own.size else None, count=own.size)


def largest_of(values: Any) -> Measured:
    """Measure the largest value: all of them are claimed, and there is no error."""
    own = np.asarray(values, dtype=float).ravel()
    return Measured(float(own.max()) if own.size else None, count=own.size)


def number_of(flags: Any) -> Measured:
    """Count the trials in which something is true; all of them are known."""
    own = np.asarray(flags, dtype=bool).ravel()
    return Measured(float(own.sum()), count=own.size)


def difference_of(first: Any, second: Any) -> Measured:
    """Measure the mean of ``first − second``, trial by trial; of unequal trials, of the means."""
    a, b = (np.asarray(x, dtype=float).ravel() for x in (first, second))
    if a.size == b.size:
        return mean_of(a - b)
    one, two = mean_of(a), mean_of(b)
    if one.value is None or two.value is None:
        return Measured(None, count=0)
    error = float(np.hypot(one.error or 0.0, two.error or 0.0))
    return Measured(one.value - two.value, error, min(a.size, b.size))


@final
@dataclass(frozen=True)
class Claim:
    """One checkable statement of a paper, with the measured number, the bound and the verdict."""

    claim: str
    measured: Measured
    bound: str
    verdict: Judgement

    @property
    def holds(self) -> bool:
        """Whether the measured numbers say that it is true."""
        return self.verdict == Judgement.HOLDS

    def record(self) -> dict[str, Any]:
        """Return the claim as a JSON-ready record."""
        return {
            "claim": self.claim,
            "measured": finite(self.measured.value),
            "error": finite(self.measured.error),
            "count": self.measured.count,
            "bound": self.bound,
            "holds": self.holds,
            "verdict": str(self.verdict),
        }


def stated(words: str, measured: float | Measured | None, bound: str, holds: bool) -> Claim:
    """Claim something that is known without an error; of no values, it is undecided."""
    own, verdict = _measured(measured), Judgement.HOLDS if holds else Judgement.FAILS
    return Claim(words, own, bound, Judgement.UNDECIDED if own.count == 0 else verdict)


def at_least(words: str, measured: float | Measured, bound: float) -> Claim:
    """Claim that a number is at least a bound.

    It holds if the number is; it is undecided if the number misses the bound by less than its 95 %
    interval, and fails if by more.
    """
    own = _measured(measured)
    return Claim(words, own, f"≥ {bound:g}", _judged(own, own.value, own.span()[1], bound))


def at_most(words: str, measured: float | Measured, bound: float) -> Claim:
    """Claim that a number is at most a bound; see :func:`at_least`."""
    own = _measured(measured)
    value = None if own.value is None else -own.value
    return Claim(words, own, f"≤ {bound:g}", _judged(own, value, -own.span()[0], -bound))


def more_than(words: str, first: Any, second: Any, by: float = 0.0) -> Claim:
    """Claim that one mean is larger than another, by more than a bound.

    It holds if the 95 % interval of the difference is above the bound, fails if it is below, and is
    undecided else. Trials of equal number are compared one by one.
    """
    own = difference_of(first, second)
    low, high = own.span()
    verdict = Judgement.UNDECIDED
    if own.value is not None and own.count and (low > by or high <= by):
        verdict = Judgement.HOLDS if low > by else Judgement.FAILS
    return Claim(words, own, f"> {by:g}", verdict)


def _measured(value: float | Measured | None) -> Measured:
    if isinstance(value, Measured):
        return value
    return Measured(None if value is None else float(value))


def _judged(own: Measured, value: float | None, most: float, bound: float) -> Judgement:
    if value is None or own.count == 0:
        return Judgement.UNDECIDED
    if value >= bound:
        return Judgement.HOLDS
    return Judgement.UNDECIDED if most >= bound else Judgement.FAILS


def finite(value: float | None) -> float | None:
    """Return the value, or None if JSON cannot represent it."""
    return None if value is None or not np.isfinite(value) else float(value)
