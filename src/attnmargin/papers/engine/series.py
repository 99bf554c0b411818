"""Curves of means and shares over trials, with their 95 % bands."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnmargin.base.intervals import mean_error, share_interval
from attnmargin.plot.panels import Series


def mean_curve(
    name: str, x: Any, values: list[NDArray[Any]] | NDArray[Any], *, log: bool = False, **more: Any
) -> Series:
    """Build a curve of means over trials; on a logarithmic axis the band stays above zero."""
    stats = [mean_error(np.asarray(v, dtype=float)) for v in values]
    y, half = (np.array([pair[k] for pair in stats]) for k in (0, 1))
    low = np.maximum(y - half, 0.1 * y) if log else y - half
    curve: Any = {"kind": "line", "name": name, "x": np.asarray(x), "y": y, "low": low,
                  "high": y + half, **more}  # fmt: skip
    series: Series = curve
    return series


def share_curve(
    name: str, x: Any, flags: list[NDArray[Any]], kind: str = "line", **more: Any
) -> Series:
    """Build a curve of shares of trials, with Wilson's intervals; bars are in percent."""
    scale = 100.0 if kind == "bar" else 1.0
    share = np.array([f.mean() for f in flags])
    low, high = share_interval(np.array([f.sum() for f in flags]), len(flags[0]))
    curve: Any = {"kind": kind, "name": name, "x": np.asarray(x), "y": scale * share,
                  "low": scale * low, "high": scale * high, **more}  # fmt: skip
    series: Series = curve
    return series
