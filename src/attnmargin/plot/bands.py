"""Curves over the records of a run; for a batch, the mean and a band of its middle trials."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from attnmargin.plot.panels import Series

# Share of trials inside a band.
_MIDDLE = 0.8
BAND_WORDS = f"Lines are means of the trials, bands their middle {100 * _MIDDLE:.0f} %."


def array(values: Tensor) -> NDArray[Any]:
    """Copy a tensor to a CPU array, floats as float64; integers stay integers."""
    own = values.detach().cpu()
    found: NDArray[Any] = (own.double() if own.is_floating_point() else own).numpy()
    return found


def band(name: str, x: Tensor, values: Tensor, **look: Any) -> Series:
    """Build a curve of ``values (R, *B)`` over ``x (R,)``; for a batch, its mean and band."""
    rows = array(values.reshape(len(x), -1))
    curve: Any = {"kind": "line", "name": name, "x": array(x), "y": rows.mean(1), **look}
    if rows.shape[1] > 1:
        low, high = np.quantile(rows, (0.5 - _MIDDLE / 2, 0.5 + _MIDDLE / 2), axis=1)
        curve |= {"low": low, "high": high}
    series: Series = curve
    return series
