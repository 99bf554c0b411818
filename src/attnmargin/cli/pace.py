"""Pace: how fast long work goes, and how long it will still take."""

import time
from collections.abc import Callable
from typing import final

_MINUTE, _HOUR, _DAY = 60, 3600, 86_400


@final
class Pace:
    """Measures rate and time left from reports of what is done.

    The rate is the mean over at least the latter half of the time since the first report: work that
    was saved earlier does not count, a slow start is forgotten, and points that take hours have a
    rate too. A report that goes back, or that has another total, begins new work.

    Args:
        unit: what is counted, in the plural.
        parts: reports per unit, for work that is reported in parts of a unit.
    """

    def __init__(
        self, unit: str, parts: int = 1, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._unit, self._parts, self._clock = unit, parts, clock
        self._started, self.total = clock(), 0
        self._first = self._old = self._middle = self._last = (self._started, 0)

    def report(self, done: int, total: int) -> None:
        """Take note of what is done."""
        now = self._clock(), done
        if done < self.done or total != self.total:
            self._started = now[0] if self.total else self._started
            self._first = self._old = self._middle = now
            self.total = total
        self._last = now
        if now[0] - self._first[0] >= 2 * (self._middle[0] - self._first[0]):
            self._old, self._middle = self._middle, now

    @property
    def done(self) -> int:
        """The last number reported."""
        return self._last[1]

    @property
    def share(self) -> float:
        """The part that is done, from 0 to 1."""
        return min(self.done / self.total, 1.0) if self.total > 0 else 0.0

    @property
    def elapsed(self) -> float:
        """Seconds since the work began."""
        return self._clock() - self._started

    @property
    def rate(self) -> float | None:
        """Units per second, or None before there is one."""
        seconds, count = (new - old for new, old in zip(self._last, self._old, strict=True))
        return count / self._parts / seconds if count > 0 and seconds > 0 else None

    @property
    def left(self) -> float | None:
        """Seconds until the end at this rate."""
        if self.rate is None:
            return None
        rest = (self.total - self.done) / self._parts / self.rate
        return max(rest - (self._clock() - self._last[0]), 0.0)

    def short(self) -> str:
        """Say share, rate, elapsed and left, for a bar."""
        return "  ".join([f"{self.share:4.0%}", *self._words()])

    def long(self) -> str:
        """Say the counts as well, for a log."""
        counts = f"{self.done / self._parts:,.4g}" if self._parts > 1 else f"{self.done:,}"
        return f"{counts} of {self.total // self._parts:,} {self._unit}, {', '.join(self._words())}"

    def _words(self) -> list[str]:
        rate = [] if self.rate is None else [rate_words(self.rate, self._unit)]
        left = [] if self.left is None or self.done >= self.total else [self.left]
        return [*rate, clock_words(self.elapsed), *(f"{clock_words(s)} left" for s in left)]


def rate_words(rate: float, unit: str) -> str:
    """Write a rate per second, minute, hour or day, whichever is at least one.

    >>> rate_words(1234.5, "steps"), rate_words(0.25, "points"), rate_words(2e-4, "points")
    ('1,234 steps/s', '15 points/min', '17 points/day')
    """
    kinds = (("s", 1), ("min", _MINUTE), ("h", _HOUR), ("day", _DAY))
    name, seconds = next((kind for kind in kinds if rate * kind[1] >= 1.0), kinds[-1])
    own = rate * seconds
    number = f"{own:,.0f}" if own >= 10.0 else f"{own:.2g}"
    return f"{number} {unit}/{name}"


def clock_words(seconds: float) -> str:
    """Write a duration as hours, minutes and seconds.

    >>> clock_words(75.2), clock_words(93784)
    ('0:01:15', '1 d 2:03:04')
    """
    days, rest = divmod(int(seconds), _DAY)
    hours, rest = divmod(rest, _HOUR)
    own = f"{hours}:{rest // _MINUTE:02}:{rest % _MINUTE:02}"
    return f"{days} d {own}" if days else own
