"""Sweeps: what is computed, kept, tried again and joined."""

import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import attnmargin as am
from attnmargin.base.errors import InputError
from attnmargin.base.seeds import seed_of
from tests.sweeps.margins import GRID, SEED, TRIALS, margins, same

ROOT = Path(__file__).parents[2]


def test_closed_form(tmp_path: Path) -> None:
    found = am.sweep(lambda x, y: {"sum": x + y, "word": "odd" * (x % 2)},
                     {"x": [1, 2], "y": [10, 20]}, out=tmp_path, jobs=1)  # fmt: skip
    table = found.table()
    assert table["sum"].tolist() == [11, 21, 12, 22]
    assert table["word"].tolist() == ["odd", "odd", "", ""]
    assert table["trial"].tolist() == [0] * 4
    assert (found.complete, found.varied, found.missing, found.failed) == (True, ["x", "y"], [], [])


def test_trials_are_stacked_and_seeds_have_names(tmp_path: Path) -> None:
    """Trial k has the same seed at every point; a function of all trials gets the sweep's seed."""
    single = am.sweep(lambda x, trial, seed: {"seed": seed, "trial": trial * x}, {"x": [1, 2]},
                      trials=3, seed=7, out=tmp_path / "single", jobs=1)  # fmt: skip
    table = single.table()
    seeds = [seed_of("trial", k, base=7) for k in range(3)]
    assert table["seed"].tolist() == seeds * 2
    assert table["trial (returned)"].tolist() == [0, 1, 2, 0, 2, 4]
    whole = am.sweep(lambda x, trials, seed: {"y": np.arange(trials) + seed}, {"x": [1]},
                     trials=3, seed=7, out=tmp_path / "whole", jobs=1)  # fmt: skip
    assert whole.table()["y"].tolist() == [7, 8, 9]


def test_finished_points_are_never_computed_again(tmp_path: Path) -> None:
    calls: Counter[int] = Counter()

    def square(x: int) -> int:
        calls[x] += 1
        if x == 3 and calls[x] == 1:
            raise ValueError("not at first")
        return x * x

    first = am.sweep(square, {"x": [1, 2, 3]}, out=tmp_path, jobs=1)
    assert [(s["x"], why) for s, why in first.failed] == [(3, "ValueError: not at first")]
    assert (first.complete, first.missing) == (False, [])
    times = {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*.npz")}
    again = am.sweep(square, {"x": [1, 2, 3, 4]}, out=tmp_path, jobs=1)
    assert again.table()["value"].tolist() == [1, 4, 9, 16]
    assert calls == {1: 1, 2: 1, 3: 2, 4: 1}
    assert all(p.stat().st_mtime_ns == t for p, t in times.items())
    assert not list((tmp_path / "failed").iterdir())


def test_a_changed_function_is_another_sweep(tmp_path: Path) -> None:
    for factor in (2, 3):
        out = tmp_path / str(factor)
        am.sweep(lambda x, factor=factor: factor * x, {"x": [1]}, out=out, jobs=1)

    def twice(x: int) -> int:
        return 2 * x

    am.sweep(twice, {"x": [1]}, out=tmp_path / "a", jobs=1)
    with pytest.raises(InputError, match=r"out: got .* which holds a sweep of .*; needs a folder"):
        am.sweep(lambda x: 2 * x + 0, {"x": [1]}, out=tmp_path / "a", jobs=1)
    with pytest.raises(InputError, match="1 trials, seed 1"):
        am.sweep(twice, {"x": [1]}, out=tmp_path / "a", seed=1, jobs=1)


def test_shards_killed_and_restarted_join_to_one_run(tmp_path: Path) -> None:
    """Eight parts, two of them killed by signal 9 after a point: the same bits as one run."""
    whole = am.sweep(margins, GRID, TRIALS, SEED, out=tmp_path / "one", jobs=1).table()
    out = tmp_path / "eight"
    for i in (2, 5):
        code = f"""
import os, attnmargin as am
from tests.sweeps.margins import GRID, SEED, TRIALS, margins, same
def dies(done, *_): done and os.kill(os.getpid(), 9)
am.sweep(margins, GRID, TRIALS, SEED, out={str(out)!r}, jobs=1, shard="{i}/8",
         progress=lambda words, done, total: dies(done))
"""
        done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False)
        assert done.returncode == -9
    assert len(list(out.rglob("*.npz"))) == 2
    for i in range(1, 9):
        am.sweep(margins, GRID, TRIALS, SEED, out=out, jobs=1, shard=f"{i}/8")
    joined = am.collect(out)
    assert joined.complete
    same(joined.table(), whole)


def test_shards_in_folders_of_their_own(tmp_path: Path) -> None:
    grid = {"x": list(range(6))}
    folders = [tmp_path / str(i) for i in (1, 2, 3)]
    for i, folder in enumerate(folders, 1):
        own = am.sweep(lambda x: x, grid, out=folder, shard=f"{i}/3", jobs=1)
        assert [s["x"] for s in own.points] == [i - 1, i + 2]
    assert am.collect(*folders).table()["value"].tolist() == list(range(6))
    part = am.collect(*folders[:2])
    assert [s["x"] for s in part.missing] == [2, 5]
    assert part.table()["value"].tolist() == [0, 1, 3, 4]
    am.sweep(lambda x: -x, grid, out=tmp_path / "other", jobs=1)
    with pytest.raises(InputError, match="which hold different sweeps; needs parts of one sweep"):
        am.collect(folders[0], tmp_path / "other")


def test_no_point_is_begun_after_the_time_limit(tmp_path: Path) -> None:
    found = am.sweep(lambda x: x, {"x": [1, 2]}, out=tmp_path, jobs=1, time_limit=1e-9)
    assert len(found.missing) == 2
    with pytest.raises(InputError, match="time_limit: got 0; needs a positive number of seconds"):
        am.sweep(lambda x: x, {"x": [1]}, out=tmp_path / "zero", jobs=1, time_limit=0)


def test_a_removed_folder_loses_only_what_was_in_it(tmp_path: Path) -> None:
    def remove(x: int) -> int:
        if x == 1:
            shutil.rmtree(tmp_path / "out")
        return x

    found = am.sweep(remove, {"x": [0, 1, 2]}, out=tmp_path / "out", jobs=1)
    assert found.missing == [{"x": 0}]
    assert am.sweep(remove, {"x": [0, 1, 2]}, out=tmp_path / "out", jobs=1).complete


def test_damaged_files_are_told_or_computed_again(tmp_path: Path) -> None:
    def same_number(x: int) -> int:
        return x

    found = am.sweep(same_number, {"x": [1, 2]}, out=tmp_path, jobs=1)
    first, second = sorted(tmp_path.rglob("*.npz"))
    first.write_bytes(first.read_bytes()[:-40])
    assert am.sweep(same_number, {"x": [1, 2]}, out=tmp_path, jobs=1).complete
    shutil.copy(first, second)
    with pytest.raises(InputError, match="with other settings; needs an unchanged folder"):
        am.collect(tmp_path).table()
    (tmp_path / "sweep.json").write_text("[" * 100_000)
    with pytest.raises(InputError, match=r"sweep\.json"):
        am.collect(tmp_path)
    with pytest.raises(InputError, match="which does not exist; needs a folder that attnmargin"):
        am.collect(tmp_path / "nowhere")
    assert found.summary() == {"points": "2", "done": "2"}


def test_progress_counts_what_is_done_and_failed(tmp_path: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    am.sweep(lambda x: 1 // x, {"x": [1, 0, 2]}, out=tmp_path, jobs=1,
             progress=lambda *now: seen.append(now))  # fmt: skip
    assert seen == [("points", 0, 3), ("points", 1, 3), ("points, 1 failed", 2, 3),
                    ("points, 1 failed", 3, 3)]  # fmt: skip


@pytest.mark.parametrize(
    ("function", "grid", "trials", "words"),
    [
        (lambda x: x, {"y": 1}, 1, "the name 'y'; needs names that the function has: x"),
        (lambda x, y: x, {"x": 1}, 1, "no 'y'; needs a value of y at every point"),
        (lambda x: x, {"x": 1}, 2, "none that tells 2 trials apart; needs one of the arguments"),
        (lambda x: x, {"x": 1}, 0, "trials: got 0; needs a whole number"),
        (5, {"x": 1}, 1, "function: got a int; needs a function, or a command"),
    ],
)
def test_what_cannot_be_computed_is_told_at_once(
    tmp_path: Path, function: Any, grid: Any, trials: int, words: str
) -> None:
    with pytest.raises(InputError, match=words):
        am.sweep(function, grid, trials, out=tmp_path / "out", jobs=1)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({}, "an empty dict"),
        ({"_x": 1}, "the name '_x'; needs words that do not begin with _"),
        ({"x": object()}, "a object for 'x'"),
        ({"x": [[1], [1, 2]]}, "a list for 'x'"),
        (None, "a NoneType for 'value'"),
    ],
)
def test_what_a_function_may_not_return(tmp_path: Path, value: Any, words: str) -> None:
    found = am.sweep(lambda x: value, {"x": 1}, out=tmp_path, jobs=1)
    assert words in found.failed[0][1]


def test_unknown_engines(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="engine: got 'cloud'; needs one of local, ray, dask"):
        am.sweep(lambda x: x, {"x": 1}, out=tmp_path, engine="cloud")
    with pytest.raises(InputError, match="jobs: got 0"):
        am.sweep(lambda x: x, {"x": 1}, out=tmp_path, jobs=0)
    with pytest.raises(InputError, match="address: got 'here'; needs engine 'ray' or 'dask'"):
        am.sweeps.Engine(address="here")
