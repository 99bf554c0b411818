"""Names beside points."""

from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from attnmargin.plot.labels import place_names


@given(st.lists(st.tuples(st.floats(65, 160), st.floats(45, 145)), min_size=1, max_size=4))
def test_names_of_points_do_not_cover_each_other(points: list[tuple[float, float]]) -> None:
    names = ["brilliant", "a", "music", "the"][: len(points)]
    corners = np.array(points) + place_names(np.array(points), names, (225.0, 192.0))
    tops = corners + [[5.8 * len(name), 11.0] for name in names]
    for i, j in combinations(range(len(points)), 2):
        shared = np.minimum(tops[i], tops[j]) - np.maximum(corners[i], corners[j])
        assert shared.min() <= 1e-9
