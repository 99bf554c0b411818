"""Frobenius norm: ours against cvxpy, DAQP and moreau, side by side in one run.

    python -m benchmarks.frobenius [--batch 200] [--repeats 15]

Every method gets the same tokens and returns W and multipliers; building its problem counts.
Ours also computes its certificate within the time. The accuracy of every answer is certified
afterwards by the same judge. The median of the repeats is reported.
"""

import argparse
import json
import platform
import time
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

import attnmargin as am
from attnmargin.files import write_whole
from benchmarks import rivals

SHAPES = [(5, 5, 5), (6, 8, 10), (5, 5, 20), (20, 5, 40)]
METHODS: dict[str, Callable[..., rivals.Answer]] = {
    "attnmargin": rivals.ours,
    "attnmargin lockstep": rivals.ours_lockstep,
    "DAQP in a loop": rivals.daqp_in_a_loop,
    "moreau batched": rivals.moreau_batched,
    "cvxpy as in the papers": rivals.cvxpy_as_in_the_papers,
}
# cvxpy needs tens to hundreds of milliseconds for one instance: a few are enough.
FEW = {"cvxpy as in the papers": 3}


def _seconds(method: Callable[..., rivals.Answer], arguments: Any, repeats: int) -> list[float]:
    """Seconds per instance of some repeats; one more before them warms up."""
    times = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        method(*arguments)
        times.append((time.perf_counter() - start) / len(arguments[0]))
    return times[1:]


def measure(shape: tuple[int, int, int], batch: int, repeats: int) -> list[dict[str, Any]]:
    """Seconds per instance and certified gap of every method on one shape.

    There and back again through the methods, so that a drift of the machine hits all alike.
    """
    data = am.random_data(*shape, trials=batch, name="benchmark")
    alpha = am.optimal_tokens(data)
    parts = {name: min(FEW.get(name, batch), batch) for name in METHODS}
    seconds: dict[str, list[float]] = {name: [] for name in METHODS}
    for name in [*METHODS, *reversed(METHODS)]:
        arguments = tuple(x[: parts[name]] for x in (data.X, data.z, alpha))
        seconds[name] += _seconds(METHODS[name], arguments, 1 if name in FEW else repeats)
    gaps = {}
    for name, method in METHODS.items():
        arguments = tuple(x[: parts[name]] for x in (data.X, data.z, alpha))
        W, dual = method(*arguments)
        gaps[name] = float(am.certify(am.token_problem(*arguments), "fro", W, dual).gap.max())
    return [
        {"method": name, "seconds": float(np.median(seconds[name])), "worst gap": gaps[name]}
        for name in METHODS
    ]


def show(shape: tuple[int, int, int], rows: list[dict[str, Any]], console: Console) -> None:
    table = Table("method", "µs per instance", "ours is faster by", "worst certified gap")
    for row in rows:
        ratio = row["seconds"] / rows[0]["seconds"]
        table.add_row(
            row["method"],
            f"{row['seconds'] * 1e6:.1f}",
            f"{ratio:.2f} ×",
            f"{row['worst gap']:.0e}",
        )
    console.print(f"(n, T, d) = {shape}")
    console.print(table)


def machine() -> dict[str, Any]:
    """Where and with what the numbers were made."""
    packages = ("attnmargin", "torch", "numpy", "numba", "daqp", "moreau", "cvxpy", "clarabel")
    return {
        "when": datetime.now(UTC).strftime("%Y-%m-%d"),
        "processor": platform.processor() or platform.machine(),
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in packages},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    console = Console()
    results = []
    for shape in SHAPES:
        rows = measure(shape, options.batch, options.repeats)
        show(shape, rows, console)
        results.append({"shape": shape, "methods": rows})
    record = {"batch": options.batch, "repeats": options.repeats, **machine(), "results": results}
    text = json.dumps(record, indent=1) + "\n"
    path = write_whole(options.out / "frobenius.json", lambda stream: stream.write(text.encode()))
    console.print(f"saved: {path}", soft_wrap=True)


if __name__ == "__main__":
    main()
