"""Intervals of shares and means, 95 % wide."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

WIDE = 1.96  # standard errors on either side of a normal mean


def share_interval(successes: NDArray[Any], count: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Compute Wilson's 95 % interval of shares, low and high.

    >>> low, high = share_interval(np.array([0, 5]), 10)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.0, 0.237], [0.278, 0.763])
    """
    p, z = np.asarray(successes, dtype=float) / count, WIDE
    centre = (p + z**2 / (2 * count)) / (1 + z**2 / count)
    half = z / (1 + z**2 / count) * np.sqrt(p * (1 - p) / count + z**2 / (4 * count**2))
    return np.maximum(centre - half, 0.0), np.minimum(centre + half, 1.0)


def mean_error(values: NDArray[Any], axis: int = 0) -> tuple[NDArray[Any], NDArray[Any]]:
    """Compute the mean, and the half width of its 95 % interval."""
    count = values.shape[axis]
    spread = values.std(axis, ddof=1) if count > 1 else np.zeros_like(values.mean(axis))
    return values.mean(axis), WIDE * spread / np.sqrt(count)
