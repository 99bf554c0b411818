"""Engines: processes of this machine, and real clusters on the loopback address."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import attnmargin as am
from attnmargin.base.errors import InputError
from tests.sweeps.margins import GRID, SEED, TRIALS, margins, same

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("alone")
    return am.sweep(margins, GRID, TRIALS, SEED, out=folder, jobs=1).table()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["local", "ray", "dask"])
def test_every_engine_gives_the_same_bits(name: str, alone: dict[str, Any], tmp_path: Path) -> None:
    """A program of its own starts a cluster of two workers, and ends it."""
    words = ["-W", "ignore", "-m", "tests.sweeps.margins", name, str(tmp_path)]
    subprocess.run([sys.executable, *words], cwd=ROOT, check=True)
    same(am.collect(tmp_path).table(), alone)


def test_a_process_that_dies_takes_only_its_point_with_it(tmp_path: Path) -> None:
    def dies(x: int) -> int:
        if x == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return x

    found = am.sweep(dies, {"x": list(range(6))}, out=tmp_path, jobs=2)
    assert [(s["x"], "ended from outside" in why) for s, why in found.failed] == [(2, True)]
    assert found.table()["value"].tolist() == [0, 1, 3, 4, 5]


def test_errors_of_processes_are_kept(tmp_path: Path) -> None:
    found = am.sweep(lambda x: 1 // x, {"x": [0, 1, 2, 3]}, out=tmp_path, jobs=2)
    assert found.failed == [({"x": 0}, "ZeroDivisionError: integer division or modulo by zero")]


def test_workers_end_with_a_killed_parent(tmp_path: Path) -> None:
    code = f"""
import time, os, attnmargin as am
def waits(x):
    open(os.path.join({str(tmp_path)!r}, f"pid-{{os.getpid()}}"), "w").close()
    time.sleep(60)
    return x
am.sweep(waits, {{"x": [1, 2]}}, out={str(tmp_path / "out")!r}, jobs=2)
"""
    parent = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT)
    try:
        pids = _wait_for(lambda: [int(p.name[4:]) for p in tmp_path.glob("pid-*")], 2)
    finally:
        parent.kill()
        parent.wait()
    assert _wait_for(lambda: [pid for pid in pids if not _runs(pid)], 2)


def _wait_for(look: Any, count: int) -> list[int]:
    for _ in range(600):
        if len(found := look()) == count:
            return list(found)
        time.sleep(0.1)
    raise AssertionError(f"not {count}: {found}")


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("name", ["ray", "dask"])
def test_clusters_that_are_not_there(name: str, tmp_path: Path) -> None:
    engine = am.sweeps.Engine(name, address="nonsense")
    with pytest.raises(InputError, match=r"address: got 'nonsense' .*; needs a "):
        am.sweep(lambda x: x, {"x": [1]}, out=tmp_path, engine=engine)
