"""Search for selections, beside brute force written without the library's solvers."""

from itertools import product

import pytest
import torch

import attnmargin as am
from tests.formulas import brute_force


@pytest.mark.parametrize("d", [2, 3, 5, 8])
def test_exhaustive_search_is_brute_force(d: int) -> None:
    """All 64 selections of n = 3, T = 4, in five instances."""
    for seed in range(5):
        data = am.random_data(3, 4, d, name="brute", seed=seed)
        expected = {s for s in product(range(4), repeat=3) if brute_force(data, s)}
        found = am.selections.local_selections(data)
        assert {tuple(s) for s in found.selections.tolist()} == expected
        assert (found.searched, found.total, found.complete) == (64, 64, True)


def test_definition_4_several_queries_are_several_sequences() -> None:
    base = am.random_data(2, 3, 6, name="queries")
    z = torch.randn(2, 2, 6, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    y = torch.tensor([[1.0, -1.0], [-1.0, 1.0]], dtype=torch.float64)
    several = am.AttentionData(base.X, z, y, base.v)
    copied = am.AttentionData(base.X.repeat_interleave(2, 0), z.reshape(4, 6), y.flatten(), base.v)
    first, second = am.selections.local_selections(several), am.selections.local_selections(copied)
    assert first.selections.shape[1:] == (2, 2)
    assert torch.equal(first.selections.flatten(1), second.selections)
    assert (first.outside_cone, first.feasible) == (second.outside_cone, second.feasible)


def test_an_infeasible_beginning_decides_all_that_continue_it() -> None:
    """Narrow tokens: most selections are infeasible, and few of them are solved."""
    data = am.random_data(5, 5, 2, name="narrow")
    found = am.selections.local_selections(data)
    selections = torch.tensor(list(product(range(5), repeat=5)))
    plain = am.selections.locality(data, selections)
    assert found.complete
    assert found.feasible == int(plain.feasible.sum()) < 3125 // 2
    expected = {tuple(s) for s in selections[plain.local].tolist()}
    assert {tuple(s) for s in found.selections.tolist()} == expected


def test_a_limited_search_says_so_and_finds_what_training_can_reach() -> None:
    data = am.random_data(5, 5, 5, name="limited")
    complete = am.selections.local_selections(data)
    limited = am.selections.local_selections(data, limit=600)
    assert limited.searched == 600
    assert not limited.complete
    assert str(limited).endswith("searched 600 of 3,125")
    known = {tuple(s) for s in complete.selections.tolist()}
    found = {tuple(s) for s in limited.selections.tolist()}
    assert found <= known
    assert tuple(am.optimal_tokens(data).tolist()) in found
    again = am.selections.local_selections(data, limit=600)
    assert torch.equal(again.selections, limited.selections)


def test_a_search_sees_masks() -> None:
    data = am.random_data(3, 4, 5, name="mask")
    mask = torch.tensor(
        [[True, True, False, True], [True, True, True, True], [True, True, False, False]]
    )
    hidden = am.AttentionData(data.X, data.z, data.y, data.v, mask)
    found = am.selections.local_selections(hidden)
    assert found.total == 3 * 4 * 2
    assert bool(mask.gather(1, found.selections.T).all())


def test_selections_are_ordered_and_certified() -> None:
    data = am.random_data(4, 4, 3, name="order", seed=2)
    found = am.selections.local_selections(data, "nuc")
    assert torch.equal(found.selections[0], am.optimal_tokens(data))
    assert bool((found.margin[1:].diff() <= 0).all())
    assert bool((found.solution.certificate.gap <= 1e-9).all())
    assert found.selections[0] in found


@pytest.mark.parametrize("limit", [0, -1, 2.5, "many", True])
def test_a_limit_is_a_positive_number(limit: object) -> None:
    with pytest.raises(am.InputError, match=r"limit: got .*; needs a number of selections"):
        am.selections.local_selections(am.random_data(2, 2, 2, name="x"), limit=limit)  # type: ignore[arg-type]


def test_a_search_is_about_one_instance() -> None:
    with pytest.raises(am.InputError, match="needs one instance, such as data"):
        am.selections.local_selections(am.random_data(2, 2, 2, trials=3, name="x"))
