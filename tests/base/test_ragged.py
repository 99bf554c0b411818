"""Rows of unequal lengths: both users take parts of them in the same way."""

import numpy as np
import pytest
from numpy.typing import NDArray

import attnmargin as am
from attnmargin.base.ragged import owners_of, part_of, row_of, rows_of, starts_of
from attnmargin.graphs.samples import Samples

ROWS = [[3, 1], [], [4, 1, 5], [9]]
KEEP = [
    np.array([True, False, True, True]),
    np.array([False] * 4),
    np.array([2, 0, 2]),
    np.array([], dtype=np.int64),
    np.array([-1, 1]),
]


def flat() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    ids = np.array([k for row in ROWS for k in row], dtype=np.int64)
    return ids, starts_of([len(row) for row in ROWS])


def chosen(keep: NDArray[np.int64]) -> list[list[int]]:
    return [ROWS[i] for i in np.arange(len(ROWS))[keep]]


def test_rows_and_owners() -> None:
    ids, start = flat()
    assert [row.tolist() for row in rows_of(ids, start)] == ROWS
    assert [row_of(ids, start, i).tolist() for i in range(4)] == ROWS
    assert owners_of(start).tolist() == [i for i, row in enumerate(ROWS) for _ in row]
    assert starts_of([]).tolist() == [0]
    assert rows_of(ids[:0], starts_of([])) == []


@pytest.mark.parametrize("keep", KEEP)
def test_parts_are_the_chosen_rows(keep: NDArray[np.int64]) -> None:
    ids, start = flat()
    entries, begin = part_of(start, keep)
    assert [row.tolist() for row in rows_of(ids[entries], begin)] == chosen(keep)


@pytest.mark.parametrize("keep", KEEP)
def test_pieces_and_samples_take_the_same_part(keep: NDArray[np.int64]) -> None:
    ids, start = flat()
    labels = np.array([0, 1, 1, 0])
    pieces = am.text.Pieces(ids.astype(np.uint16), start, labels, [str(k) for k in range(10)])
    part, samples = pieces.part(keep), Samples(ids, start, labels)[keep]
    assert [part.row(i).tolist() for i in range(len(part))] == chosen(keep)
    assert part.ids.dtype == np.uint16
    assert [row.tolist() for row in rows_of(samples.tokens, samples.start)] == chosen(keep)
    assert part.labels.tolist() == samples.labels.tolist() == labels[keep].tolist()
    assert samples.owner.tolist() == owners_of(part.start).tolist()
