"""Sets of edges."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from attnmargin.base.ragged import spans
from attnmargin.graphs.edges import EdgeSet, distinct


@given(st.lists(st.integers(-5, 5)))
def test_distinct_is_unique(numbers: list[int]) -> None:
    x = np.array(numbers, dtype=np.int64)
    np.testing.assert_array_equal(distinct(x), np.unique(x))


def test_spans_and_empty_sets() -> None:
    low, high = np.array([3, 7, 9]), np.array([5, 7, 12])
    assert spans(low, high).tolist() == [3, 4, 9, 10, 11]
    assert EdgeSet().merged().tolist() == []
