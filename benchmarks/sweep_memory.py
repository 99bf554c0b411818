"""Memory and time of a sweep over 100,000 points with a tiny function, in one process and in two.

A sweep that runs for a day must not grow: the resident memory of its process and of its workers is
read while it runs. Afterwards the points are collected, and the table is made.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attnmargin as am
from benchmarks.harness import RESULTS, machine, save

_AT = (1_000, 10_000, 50_000, 100_000)


def tiny(x: int) -> dict[str, float]:
    """Return something at once."""
    return {"square": float(x * x), "half": x / 2}


def _megabytes(process: int) -> float:
    """Return the resident memory of a process."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


def _workers() -> list[int]:
    """Return the processes that joblib started, without its tracker of resources."""
    own = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    found = [int(p) for p in own if "resource_tracker" not in _command(p)]
    return sorted(found, key=_megabytes)


def _command(process: str) -> str:
    return Path(f"/proc/{process}/cmdline").read_bytes().decode(errors="replace")


def _watch(rows: list[dict[str, Any]], points: int) -> Callable[[str, int, int], None]:
    """Return a progress that reads the memory at some moments."""
    start, busy = time.perf_counter(), time.process_time()
    moments = {m for m in (*_AT, points) if m <= points}

    def tell(_: str, done: int, total: int) -> None:
        if done in moments:
            rows.append({
                "points": done,
                "seconds": round(time.perf_counter() - start, 2),
                "parent's seconds of processor": round(time.process_time() - busy, 2),
                "parent MB": round(_megabytes(os.getpid()), 1),
                "workers MB": [round(_megabytes(p), 1) for p in _workers()],
            })  # fmt: skip
            print(rows[-1], flush=True)

    return tell


def _seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds that a call took, and what it returned."""
    start = time.perf_counter()
    found = work()
    return round(time.perf_counter() - start, 2), found


def measure(points: int, jobs: int) -> dict[str, Any]:
    """Sweep, sweep again, collect and make the table."""
    rows: list[dict[str, Any]] = []
    grid = {"x": range(points)}
    with tempfile.TemporaryDirectory() as folder:
        own: dict[str, Any] = {"out": folder, "jobs": jobs}
        seconds, _ = _seconds(lambda: am.sweep(tiny, grid, progress=_watch(rows, points), **own))
        again, _ = _seconds(lambda: am.sweep(tiny, grid, **own))
        collecting, found = _seconds(lambda: am.collect(folder))
        counting, _ = _seconds(found.summary)
        tabling, table = _seconds(found.table)
        assert len(table["square"]) == points
    return {
        "jobs": jobs, "seconds": seconds, "ms per point": round(1000 * seconds / points, 3),
        "memory": rows, "seconds of a second call": again, "seconds of collect": collecting,
        "seconds of the counts": counting, "seconds of the table": tabling,
        "MB at the end": round(_megabytes(os.getpid()), 1),
        "load of the machine": os.getloadavg()[2],
    }  # fmt: skip


def _apart(points: int, jobs: int) -> dict[str, Any]:
    """Measure in a process of its own."""
    words = ["--points", str(points), "--jobs", str(jobs)]
    done = subprocess.run([sys.executable, "-m", "benchmarks.sweep_memory", *words],
                          stdout=subprocess.PIPE, check=True, text=True)  # fmt: skip
    print(done.stdout, end="", flush=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=_AT[-1])
    parser.add_argument("--jobs", type=int, help="measure this number alone, and save nothing")
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    if given.jobs is not None:
        print(json.dumps(measure(given.points, given.jobs)))
        return
    results = [_apart(given.points, jobs) for jobs in (1, 2)]
    save({"points": given.points, **machine(), "results": results}, given.out / "sweep_memory.json")


if __name__ == "__main__":
    main()
