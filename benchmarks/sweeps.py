"""Overhead of a sweep per point of 10 ms of work, beside engines that save nothing.

    python -m benchmarks.sweeps

Every point works for 10 ms of wall time. A sweep also names the point, writes it whole and counts
it. The time until the first point is done, when processes and clusters start, is told apart.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed

import attnmargin as am
from attnmargin.sweeps import Engine
from benchmarks.harness import RESULTS, machine, save

WORK = 0.01  # seconds


def work(x: int) -> dict[str, float]:
    """Work for 10 ms."""
    end = time.perf_counter() + WORK
    while time.perf_counter() < end:
        pass
    return {"square": float(x * x)}


def swept(engine: Engine, points: int) -> list[float]:
    """Sweep; return the moments at which points were done."""
    moments: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        found = am.sweep(work, {"x": range(points)}, out=folder, engine=engine,
                         progress=lambda *_: moments.append(time.perf_counter()))  # fmt: skip
        assert found.complete
    return moments[1:]


def bare(jobs: int, points: int) -> list[float]:
    """Run the same work by joblib alone."""
    pool = Parallel(jobs, return_as="generator_unordered")
    return [time.perf_counter() for _ in pool(delayed(work)(x) for x in range(points))]


def row(name: str, jobs: int, points: int, run: Callable[[int, int], list[float]]) -> Any:
    """Measure one way of doing the points."""
    start = time.perf_counter()
    moments = run(jobs, points)
    steady = (moments[-1] - moments[0]) * jobs / (len(moments) - 1)
    found = {"method": name, "jobs": jobs, "start in s": round(moments[0] - start, 2),
             "ms per point": round(1000 * steady, 3),
             "overhead in %": round(100 * (steady / WORK - 1), 1)}  # fmt: skip
    print(found, flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=1000)
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    ways: list[tuple[str, int, Callable[[int, int], list[float]]]] = [
        *(("joblib alone", jobs, bare) for jobs in (1, 2)),
        *(("sweep, local", j, lambda jobs, n: swept(Engine("local", jobs), n)) for j in (1, 2)),
        ("sweep, ray", 2, lambda jobs, n: swept(Engine("ray", jobs), n)),
        ("sweep, dask", 2, lambda jobs, n: swept(Engine("dask", jobs), n)),
    ]
    rows = [row(name, jobs, given.points, run) for name, jobs, run in ways]
    record = {"points": given.points, "ms of work": 1000 * WORK, **machine(), "results": rows}
    save(record, given.out / "sweeps.json")


if __name__ == "__main__":
    main()
