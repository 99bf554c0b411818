"""Unit vectors with the same rounding on every machine, so that draws are equal bit by bit."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Floats = NDArray[np.float64]

_LANES = 4
_SPLIT = 134217729.0  # 2^27 + 1 cuts a float64 into two halves whose products are exact


def unit(x: Tensor) -> Tensor:
    """Scale vectors along the last axis to length one, in float64 on the CPU.

    >>> unit(torch.tensor([3.0, 4.0], dtype=torch.float64)).tolist()
    [0.6, 0.8]
    """
    return x / torch.from_numpy(lengths(x.numpy())[..., None])


def lengths(x: Floats) -> Floats:
    """Return ``‖x‖₂`` along the last axis.

    Squares are added in four lanes, then lane by lane, and those of the last ``d mod 4`` entries
    with one rounding each. So does PyTorch 2.13 on processors with AVX2; other versions use
    another order, which changes last bits. Roots are numpy's, which are the nearest numbers.

    >>> lengths(np.array([[3.0, 4.0], [5.0, 12.0]])).tolist()
    [5.0, 13.0]
    """
    d = x.shape[-1]
    if d == 1:
        return np.asarray(np.abs(x[..., 0]))
    square, body = x * x, d - d % _LANES
    lanes = np.zeros((*x.shape[:-1], _LANES))
    for k in range(0, body, _LANES):
        lanes += square[..., k : k + _LANES]
    total: Any = ((lanes[..., 0] + lanes[..., 1]) + lanes[..., 2]) + lanes[..., 3]
    for k in range(body, d):
        total = _plus_square(np.asarray(total), x[..., k])
    return np.asarray(np.sqrt(total))


def _plus_square(total: Floats, x: Floats) -> Floats:
    """Compute total + x² with one rounding, by rounding the error to odd (Boldo, Melquiond)."""
    high = _SPLIT * x
    high = high - (high - x)
    low = x - high
    square = x * x
    error = ((high * high - square) + 2.0 * high * low) + low * low
    first, rest = _two_sum(total, error)
    found, more = _two_sum(square, first)
    small, left = _two_sum(more, rest)
    bits = np.asarray(small).view(np.int64)
    away = np.where((left > 0.0) == (small > 0.0), 1, -1)
    odd = np.where((left != 0.0) & (bits % 2 == 0), bits + away, bits)
    return np.asarray(found + odd.view(np.float64))


def _two_sum(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Return the rounded sum, and what rounding left out."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)
