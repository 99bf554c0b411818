"""Equal tokens as one token with a weight."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import attnmargin as am
from attnmargin.data.copies import merge_copies

letters = st.lists(st.integers(0, 3), min_size=1, max_size=7)


@settings(deadline=None)
@given(letters, st.data())
def test_kinds_by_hand(tokens: list[int], drawn: st.DataObject) -> None:
    mask = drawn.draw(st.lists(st.booleans(), min_size=len(tokens), max_size=len(tokens)))
    table = torch.tensor([[0.0, 1.0], [0.5, 0.1], [0.5, 0.2], [-1.0, 0.3]], dtype=torch.float64)
    data = am.AttentionData(table[tokens][None], [[1.0, 0.0]], mask=[mask])
    found = merge_copies(data)
    seen = [t for t, on in enumerate(mask) if on]
    for t in seen:
        same = [s for s in seen if tokens[s] == tokens[t]]
        assert int(found.first[0, t]) == same[0]
        assert int(found.count[0, t]) == len(same)
    shown = [t for t in seen if t == int(found.first[0, t])]
    assert found.data.mask is not None
    assert found.data.mask[0].nonzero().flatten().tolist() == shown


def test_every_query_has_its_own_first_copy() -> None:
    X = [[[1.0], [2.0], [1.0], [2.0]]]
    mask = [[[True, True, True, False], [False, True, True, True]]]
    found = merge_copies(am.AttentionData(X, [[[1.0], [1.0]]], mask=mask))
    assert found.first.tolist() == [[[0, 1, 0, 1], [2, 1, 2, 1]]]
    assert found.count.tolist() == [[[2, 1, 2, 0], [0, 2, 1, 2]]]
    assert found.data.mask is not None
    assert found.data.mask.tolist() == [[[True, True, False, False], [False, True, True, False]]]


def test_data_without_copies_stay_as_they_are() -> None:
    data = am.random_data(3, 4, 5, trials=2, name="copies")
    found = merge_copies(data)
    assert found.data is data
    assert not bool(found.any.any())
