"""Numbers with an interval, beside what random heads give."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np
from scipy.stats import t as student
from torch import Tensor

_LEVEL = 0.975  # of either end: intervals of 95 %


@final
@dataclass(frozen=True)
class Measure:
    """A number of a head with its 95 % interval, the mean of random heads, and the distance."""

    value: float
    low: float
    high: float
    null: float  # mean of the random heads; NaN if none was drawn
    spread: float  # standard deviation of one random head, from this head's draws alone
    z: float = math.nan  # (value − null) / standard deviation of one random head


def of_draws(values: Sequence[float], nulls: Sequence[float]) -> Measure:
    """Average draws of independent queries; Student's interval of their mean.

    >>> own = of_draws([0.1, 0.2, 0.3], [0.05, 0.15])
    >>> round(own.value, 3), round(own.low, 3), round(own.high, 3), round(own.null, 3)
    (0.2, -0.048, 0.448, 0.1)
    """
    own = _known(values)
    half = _half(float(own.std(ddof=1)) if len(own) > 1 else math.nan, len(own))
    return _measure(float(own.mean()) if len(own) else math.nan, half, nulls)


def of_texts(values: Tensor, text: Tensor, nulls: Sequence[float]) -> Measure:
    """Average over queries; the interval takes queries of one text for dependent."""
    x, group = values.double().cpu().numpy(), text.cpu().numpy()
    mean = float(x.mean()) if len(x) else math.nan
    sums = np.bincount(group, x - mean)[np.unique(group)] if len(x) else np.zeros(0)
    n = len(sums)
    error = math.sqrt(float(sums @ sums) * n / (n - 1)) / len(x) if n > 1 else math.nan
    return _measure(mean, _half(error * math.sqrt(n), n), nulls)


def _known(values: Sequence[float]) -> np.ndarray:
    own = np.asarray(values, dtype=float)
    return own[np.isfinite(own)]


def _half(spread: float, count: int) -> float:
    """Compute half the width of the interval of a mean."""
    if count < 2:
        return math.nan
    return float(student.ppf(_LEVEL, count - 1)) * spread / math.sqrt(count)


def _measure(value: float, half: float, nulls: Sequence[float]) -> Measure:
    null = _known(nulls)
    mean = float(null.mean()) if len(null) else math.nan
    spread = float(null.std(ddof=1)) if len(null) > 1 else math.nan
    return Measure(value, value - half, value + half, mean, spread)


def with_scores(measures: Sequence[Measure]) -> list[Measure]:
    """Add z-scores; the variance of one random head is pooled over all heads.

    A few draws per head say little about a variance; those of all heads together do.
    """
    spreads = _known([own.spread for own in measures])
    pooled = math.sqrt(float((spreads**2).mean())) if len(spreads) else math.nan
    return [
        replace(own, z=(own.value - own.null) / pooled if pooled > 0 else math.nan)
        for own in measures
    ]
