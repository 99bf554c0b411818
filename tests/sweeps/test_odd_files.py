"""Specifications and folders of sweeps that are damaged or hostile: one sentence each."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import attnmargin as am
from attnmargin.base.npz import read_npz, write_npz
from attnmargin.sweeps.spec import read_spec

SPECS: dict[str, tuple[str, str]] = {
    "nested": ("x = " + "[" * 100_000, "needs a sweep in TOML"),
    "many points": (
        'compute = "solve"\n[grid]\n' + "\n".join(f"x{k} = {list(range(50))}" for k in range(9)),
        "more than 1,000,000 points",
    ),
    "huge number": (f'compute = "solve"\ntrials = {"9" * 5000}\n[grid]\nn = 1', "needs a sweep"),
    "list as name": ('compute = ["a"]\n[grid]\nn = 1', "compute: got"),
    "lists of files": ('compute = "solve"\n[grid]\nfile = [["a"], ["b"]]', "name of an .npz file"),
    "pipe": ('compute = "solve"\n[grid]\nfile = "pipe"', "not a regular file"),
    "zeros": ('compute = "solve"\n[grid]\nfile = "/dev/zero"', "not a regular file"),
    "long name": (f'command = "true {{s{"9" * 5000}}}"\n[grid]\nn = 1', "…"),
}


@pytest.mark.parametrize("name", SPECS)
def test_odd_specifications(name: str, tmp_path: Path) -> None:
    from attnmargin.sweeps.work import as_work, check_arguments

    os.mkfifo(tmp_path / "pipe")
    path, (text, words) = tmp_path / "spec.toml", SPECS[name]
    path.write_text(text)

    def read() -> None:
        spec = read_spec(path)
        check_arguments(as_work(spec.function, 1, 0), spec.points)

    with pytest.raises(am.InputError) as caught:
        read()
    assert words in str(caught.value)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 1500


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    def fails(x: int) -> float:
        if x == 2:
            raise ValueError("no")
        return x * 0.5

    am.sweep(fails, {"x": [1, 2, 3]}, out=tmp_path, jobs=1)
    return tmp_path


def test_no_file_of_a_sweep_holds_a_pickle(tmp_path: Path) -> None:
    """Processes send each other pickles, but none of them stays on the disk."""
    found = am.sweep(_both, {"x": [1, 2, 3]}, out=tmp_path, jobs=2)
    assert (len(found.done), len(found.failed)) == (2, 1)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {path.suffix for path in files} == {".json", ".npz"}
    for path in files:
        if path.suffix == ".json":
            json.loads(path.read_text())
            continue
        with np.load(path, allow_pickle=False) as stored:
            assert all(stored[name].dtype.kind in "fU" for name in stored.files)


def test_what_is_no_array_is_never_written(tmp_path: Path) -> None:
    with pytest.raises(am.InputError, match="objects for 'a'; needs numbers, words or truth"):
        write_npz(tmp_path / "x.npz", {"a": np.array([{}])})
    assert not list(tmp_path.iterdir())


def _both(x: int) -> dict[str, Any]:
    if x == 2:
        raise ValueError("no")
    return {"value": x * 0.5, "word": "a"}


PLANS: dict[str, Any] = {
    "null": None,
    "infinite": {"name": "f", "points": [{"x": 1}], "trials": float("inf"), "seed": 0},
    "half": {"name": "\ud800", "points": [{"x": 1}], "trials": 1, "seed": 0},
    "half in a point": {"name": "f", "points": [{"x": "\ud800"}], "trials": 1, "seed": 0},
    "no points": {"name": "f", "points": [], "trials": 1, "seed": 0},
    "points of numbers": {"name": "f", "points": [1], "trials": 1, "seed": 0},
}


@pytest.mark.parametrize("name", PLANS)
def test_odd_plans(name: str, folder: Path) -> None:
    (folder / "sweep.json").write_text(json.dumps(PLANS[name]))
    with pytest.raises(am.InputError, match="needs a folder that attnmargin sweep wrote"):
        am.collect(folder)


def test_nested_plans_and_failures(folder: Path) -> None:
    failure = next((folder / "failed").iterdir())
    for content in ("[" * 100_000, "null", '{"why"', "\x00"):
        failure.write_text(content)
        assert am.collect(folder).failed[0][1] == "for a reason that cannot be read"
    failure.unlink()
    os.mkfifo(failure)
    assert am.collect(folder).failed[0][1] == "for a reason that cannot be read"
    (folder / "sweep.json").write_text("[" * 100_000)
    with pytest.raises(am.InputError, match="needs a folder that attnmargin sweep wrote"):
        am.collect(folder)


@pytest.mark.parametrize(
    "changes",
    [
        {"_settings": np.array("{")},
        {"_settings": np.array(3)},
        {"_seconds": np.zeros(2)},
        {"value": np.array(["2026-01-01"], dtype="M8[D]")},
        {"value": np.zeros(1, dtype=[("a", "f8")])},
    ],
)
def test_points_that_no_sweep_wrote(changes: dict[str, Any], folder: Path) -> None:
    path = sorted((folder / "points").rglob("*.npz"))[0]
    write_npz(path, {**read_npz(path), **changes})
    with pytest.raises(am.InputError, match="needs an unchanged folder"):
        am.collect(folder).table()
