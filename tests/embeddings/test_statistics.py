"""Signed frequencies and kinds of tokens."""

import numpy as np
import pytest

import attnmargin as am


def test_statistics_by_hand() -> None:
    found = am.embeddings.token_statistics([[0, 1, 1, 3], [0, 2, 1, 3]], [1, -1], 5)
    np.testing.assert_allclose(found.alpha, [0.0, 1 / 8, -1 / 8, 0.0, 0.0])
    np.testing.assert_allclose(found.difference, [0.0, 1 / 3, -1.0, 0.0, np.nan])
    kinds = ["irrelevant", "positive", "completely negative", "irrelevant", "unseen"]
    assert found.kind.tolist() == kinds
    assert found.complete.tolist() == [False, False, True, False, False]
    assert found.irrelevant.tolist() == [True, False, False, True, False]


@pytest.mark.parametrize(
    ("sequences", "labels", "words"),
    [
        ([[0, 9]], [1], "sequences: got token id 9; needs ids from 0 to 3"),
        ([[0, 1]], [2], "labels: got 2; needs −1 or"),
        ([[0, 1]], [1, 1], "labels: got 2 for 1 sequence"),
    ],
)
def test_bad_statistics(sequences: list[list[int]], labels: list[int], words: str) -> None:
    with pytest.raises(am.InputError, match=words):
        am.embeddings.token_statistics(sequences, labels, 4)
