"""The walk over all selections, against solving them one by one."""

import itertools
import math

import pytest
import torch

import attnmargin as am
from attnmargin.selections import search
from attnmargin.selections.walk import walk

FIELDS = ("searched", "total", "feasible", "without_optimal_support",
          "without_all_optimal_support", "outside_cone")  # fmt: skip


def one_by_one(data: am.AttentionData, monkeypatch: pytest.MonkeyPatch) -> am.selections.Search:
    with monkeypatch.context() as patched:
        patched.setattr(search, "can_compile", lambda: False)
        return am.selections.local_selections(data, limit=10**6)


def same(data: am.AttentionData, monkeypatch: pytest.MonkeyPatch) -> None:
    found = am.selections.local_selections(data, limit=10**6)
    expected = one_by_one(data, monkeypatch)
    assert found.selections.tolist() == expected.selections.tolist()
    assert sorted(found.marginal.tolist()) == sorted(expected.marginal.tolist())
    assert [getattr(found, name) for name in FIELDS] == [getattr(expected, x) for x in FIELDS]
    torch.testing.assert_close(found.margin, expected.margin)


@pytest.mark.parametrize("shape", [(3, 4, 2), (4, 4, 3), (3, 5, 6), (5, 3, 4), (2, 6, 1)])
@pytest.mark.parametrize("trial", range(3))
def test_the_walk_is_the_search(
    shape: tuple[int, int, int], trial: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    same(am.random_data(*shape, name=f"walk {trial}"), monkeypatch)


def test_scales_ties_masks_and_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    data = am.random_data(3, 4, 4, name="walk")
    assert data.y is not None
    assert data.v is not None
    far = data.X * torch.tensor([1e-6, 1.0, 1e6], dtype=torch.float64)[:, None, None]
    same(am.AttentionData(far, data.z, data.y, data.v), monkeypatch)
    whole = am.AttentionData((2 * data.X).round(), (2 * data.z).round(), data.y, data.v.round())
    same(whole, monkeypatch)
    mask = [[True, True, False, True], [False, True, True, True], [True, False, False, True]]
    same(am.AttentionData(data.X, data.z, data.y, data.v, mask), monkeypatch)
    z = torch.randn(3, 2, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    y = torch.ones(3, 2, dtype=torch.float64)
    causal = torch.ones(3, 2, 4, dtype=torch.bool)
    causal[:, 0, 2:] = False
    same(am.AttentionData(data.X, z, y, data.v, causal), monkeypatch)
    single = am.AttentionData(data.X.float(), data.z.float(), data.y.float(), data.v.float())
    found = am.selections.local_selections(single)
    assert found.selections.tolist() == one_by_one(single, monkeypatch).selections.tolist()


def test_every_selection_is_counted_or_left() -> None:
    data = am.random_data(3, 5, 4, name="walk")
    visible = [torch.arange(5)] * 3
    found = walk(data, visible, 1e-7)
    whole = (found.begun >= 0).all(-1)
    assert found.searched + int(whole.sum()) == math.prod(len(x) for x in visible)
    local = [list(s) for s in itertools.product(range(5), repeat=3)
             if bool(am.selections.locally_optimal(data, list(s)))]  # fmt: skip
    assert local
    assert all(s in found.begun.tolist() for s in local)


def test_progress_ends_with_all() -> None:
    told: list[tuple[int, int]] = []
    data = am.random_data(4, 4, 5, name="walk")
    am.selections.local_selections(data, progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (256, 256)
