"""Measure several methods side by side on the same instances, in one run.

Every method gets the same tokens and returns W and multipliers; building its problem counts. Ours
also computes its certificate within the time. The accuracy of every answer is certified afterwards
by the same judge. The median of the repeats is reported.
"""

import argparse
import json
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import torch

import attnmargin as am
from attnmargin.base.files import write_whole
from benchmarks.rivals import Answer

RESULTS = Path(__file__).parent / "results"
_PACKAGES = ("attnmargin", "torch", "numpy", "numba", "daqp", "moreau", "cvxpy", "clarabel",
             "networkx", "scipy", "scikit-learn", "scs", "piqp", "proxsuite",
             "ortools")  # fmt: skip


@dataclass
class Contest:
    """Methods, ours first, on one norm and shape; a slow method gets a few instances only."""

    norm: str | float
    shape: tuple[int, int, int]
    methods: dict[str, Callable[..., Answer]]
    few: dict[str, int] = field(default_factory=dict)


def options(description: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--batch", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--out", type=Path, default=RESULTS)
    return parser.parse_args()


def _seconds(method: Callable[..., Answer], arguments: Any, repeats: int) -> list[float]:
    """Seconds per instance of some repeats; one more before them warms up."""
    times = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        method(*arguments)
        times.append((time.perf_counter() - start) / len(arguments[0]))
    return times[1:]


def measure(contest: Contest, batch: int, repeats: int) -> list[dict[str, Any]]:
    """Seconds per instance and certified gap of every method.

    There and back again through the methods, so that a drift of the machine hits all alike.
    """
    data = am.random_data(*contest.shape, trials=batch, name="benchmark")
    alpha = am.optimal_tokens(data)
    given: dict[str, Any] = {}
    seconds: dict[str, list[float]] = {}
    for name in contest.methods:
        size = contest.few.get(name, batch)
        given[name] = tuple(x[:size] for x in (data.X, data.z, alpha))
        seconds[name] = []
    for name in [*contest.methods, *reversed(contest.methods)]:
        count = 1 if name in contest.few else repeats
        seconds[name] += _seconds(contest.methods[name], given[name], count)
    rows = []
    for name, method in contest.methods.items():
        check = am.certify(am.token_problem(*given[name]), contest.norm, *method(*given[name]))
        gap = float(check.gap.max())
        rows.append({"method": name, "seconds": float(np.median(seconds[name])), "worst gap": gap})
    return rows


def show(contest: Contest, rows: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("method", "µs per instance", "ours is faster by", "worst certified gap")
    for row in rows:
        ratio = row["seconds"] / rows[0]["seconds"]
        table.add_row(
            row["method"],
            f"{row['seconds'] * 1e6:.1f}",
            f"{ratio:.2f} ×",
            f"{row['worst gap']:.0e}",
        )
    Console().print(f"norm {contest.norm}, (n, T, d) = {contest.shape}", table)


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def today() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d")


def machine() -> dict[str, Any]:
    """Where and with what the numbers were made."""
    return {
        "when": today(),
        "processor": platform.processor() or platform.machine(),
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "versions": {name: found for name in _PACKAGES if (found := _version(name))},
    }


def milliseconds(step: Callable[[], Any], repeats: int) -> float:
    """Measure the mean time of a step on the GPU, after a few that warm up."""
    for _ in range(5):
        step()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    begin.record()
    for _ in range(repeats):
        step()
    end.record()
    torch.cuda.synchronize()
    return float(begin.elapsed_time(end)) / repeats


def save(record: dict[str, Any], path: Path) -> None:
    text = json.dumps(record, indent=1) + "\n"
    saved = write_whole(path, lambda stream: stream.write(text.encode()))
    print(f"saved: {saved}")


def run(contests: list[Contest], name: str, description: str) -> None:
    """Measure, print and save all contests."""
    chosen, results = options(description), []
    for contest in contests:
        rows = measure(contest, chosen.batch, chosen.repeats)
        show(contest, rows)
        results.append({"norm": contest.norm, "shape": contest.shape, "methods": rows})
    record = {"batch": chosen.batch, "repeats": chosen.repeats, **machine(), "results": results}
    save(record, chosen.out / f"{name}.json")
