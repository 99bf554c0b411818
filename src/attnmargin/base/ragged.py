"""Ragged rows stored end to end: row i is ``values[start[i] : start[i + 1]]``."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Ids = NDArray[np.int64]


def starts_of(lengths: ArrayLike) -> Ids:
    """Find where rows of these lengths begin and where the last one ends, ``(n + 1,)``.

    >>> starts_of([2, 0, 3]).tolist()
    [0, 2, 2, 5]
    """
    return np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))


def owners_of(start: NDArray[Any]) -> Ids:
    """Find the row that each entry belongs to, ``(total,)``.

    >>> owners_of(starts_of([2, 0, 3])).tolist()
    [0, 0, 2, 2, 2]
    """
    return np.repeat(np.arange(len(start) - 1), np.diff(start))


def row_of(values: NDArray[Any], start: NDArray[Any], i: int) -> NDArray[Any]:
    """Return row i.

    >>> row_of(np.array([7, 8, 9]), starts_of([2, 1]), 0).tolist()
    [7, 8]
    """
    return values[start[i] : start[i + 1]]


def rows_of(values: NDArray[Any], start: NDArray[Any]) -> list[NDArray[Any]]:
    """Return all rows.

    >>> [row.tolist() for row in rows_of(np.array([7, 8, 9]), starts_of([2, 0, 1]))]
    [[7, 8], [], [9]]
    """
    return [values[low:high] for low, high in pairwise(start.tolist())]


def spans(low: Ids, high: Ids) -> Ids:
    """List the numbers low_i, …, high_i − 1 for all i, one after the other.

    >>> spans(np.array([5, 0]), np.array([7, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    lengths = high - low
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total) + np.repeat(low - ends + lengths, lengths)


def part_of(start: NDArray[Any], keep: NDArray[Any] | Sequence[int]) -> tuple[Ids, Ids]:
    """Find the entries of some rows, and where those rows begin among them.

    Args:
        keep: a bool array ``(n,)``, or indices of rows in any order.

    >>> entries, begin = part_of(starts_of([2, 1, 3]), [2, 0])
    >>> entries.tolist(), begin.tolist()
    ([3, 4, 5, 0, 1], [0, 3, 5])
    """
    places = np.arange(len(start) - 1)[keep]
    low, high = start[places], start[places + 1]
    return spans(low, high), starts_of(high - low)
