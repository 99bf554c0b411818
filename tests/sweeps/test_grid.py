"""Grids, fingerprints and shards."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnmargin.base.errors import InputError
from attnmargin.sweeps.grid import fingerprint, points_of, varied
from attnmargin.sweeps.shards import Shard, as_shard, slurm_shard

PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()  # noqa: E501  # fmt: skip


def test_a_grid_is_the_product_of_its_lists() -> None:
    grid = {"a": [1, 2], "word": "fixed", "b": np.array([0.5, 1.5]), "c": range(2)}
    points = points_of(grid)
    assert len(points) == 8
    assert points[1] == {"a": 1, "word": "fixed", "b": 0.5, "c": 1}
    assert [type(value) for value in points[0].values()] == [int, str, float, int]
    assert varied(points) == ["a", "b", "c"]
    assert points_of(points) == points


@given(st.dictionaries(st.text(max_size=5), PLAIN, max_size=4))
def test_fingerprints_are_those_of_the_settings(settings: dict[str, Any]) -> None:
    """They do not depend on the order, survive JSON, and tell true from 1 and 1 from 1.0."""
    mark = fingerprint("name", settings)
    assert mark == fingerprint("name", dict(reversed(list(settings.items()))))
    assert mark == fingerprint("name", json.loads(json.dumps(settings)))
    assert mark != fingerprint("other", settings)
    assert len({fingerprint(value) for value in (True, 1, 1.0, "1", None)}) == 5


@given(st.integers(1, 9), st.integers(0, 40))
def test_shards_are_a_partition(n: int, count: int) -> None:
    parts = [Shard(i, n).of(range(count)) for i in range(1, n + 1)]
    assert sorted(k for part in parts for k in part) == list(range(count))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_shards_of_a_slurm_array() -> None:
    assert slurm_shard({}) == Shard(1, 1)
    task = {"SLURM_ARRAY_TASK_ID": "7", "SLURM_ARRAY_TASK_COUNT": "8", "SLURM_ARRAY_TASK_MIN": "0"}
    assert slurm_shard(task) == Shard(8, 8)
    assert slurm_shard({**task, "SLURM_ARRAY_TASK_MIN": "1"}) == Shard(7, 8)
    with pytest.raises(InputError, match="SLURM_ARRAY_TASK_COUNT: got ''; needs a whole number"):
        slurm_shard({"SLURM_ARRAY_TASK_ID": "7"})


@pytest.mark.parametrize("word", ["0/8", "9/8", "2", "a/b", "2/8/3", "-1/2", "", "1.0/2"])
def test_a_shard_that_is_none(word: str) -> None:
    with pytest.raises(InputError, match=r"shard: got .*; needs i/n with i from 1 to n"):
        as_shard(word)


@pytest.mark.parametrize(
    ("grid", "words"),
    [
        ({}, None),
        ([], "no point"),
        ({"d": []}, "no point"),
        ({"d": [1, 1]}, "the point .* twice"),
        ({"d": object()}, "d: got a object"),
        ({"d": [float("nan")]}, "d: got nan; needs a finite number"),
        ({"my d": 1}, "the name 'my d'; needs names such as d"),
        ({"seed": 1}, "the name 'seed'; needs other names"),
        (3, "a int; needs values by name"),
        ([1], "a list; needs values by name"),
    ],
)
def test_grids_that_are_none(grid: Any, words: str | None) -> None:
    if words is None:
        assert points_of(grid) == [{}]
        return
    with pytest.raises(InputError, match=words):
        points_of(grid)
