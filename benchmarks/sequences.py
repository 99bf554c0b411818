"""Rows that are never built: seconds and memory of one data set, solved from tokens and queries.

    python -m benchmarks.sequences

Selections are realisable, as in benchmarks/large.py. Every run is a process of its own. ``peak``
is the largest resident size, data included; ``anonymous`` leaves out pages of mapped files, which
the system can drop at any moment. The mapped data are written to a temporary folder first.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
import torch
from torch import Tensor

import attnmargin as am
from benchmarks.harness import RESULTS, machine, save

# Shapes (n, K, T, d), and whether the tokens are mapped from a file.
CASES: dict[str, tuple[tuple[int, int, int, int], bool]] = {
    "small": ((100, 1, 20, 16), False),
    "one query": ((10_000, 1, 101, 64), False),
    "100 queries": ((100, 100, 101, 64), False),
    "mapped, 4 GB": ((80_000, 1, 100, 64), True),
}
_AT_ONCE = 1000
# Seconds after which a search ends with the best W so far.
LIMIT = 3600


def weights(d: int) -> Tensor:
    return torch.randn(d, d, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def part(first: int, shape: tuple[int, int, int, int]) -> tuple[Tensor, Tensor, Tensor]:
    """Draw some sequences: tokens on the sphere, queries among them, and what weights select."""
    c, K, T, d = shape
    generator = torch.Generator().manual_seed(first + 2)
    X = torch.randn(c, T, d, generator=generator, dtype=torch.float64)
    X /= torch.linalg.vector_norm(X, dim=-1, keepdim=True)
    z = X[:, :K].clone()
    selection = (X @ (z @ weights(d).mT).mT).argmax(1)
    return (X, z, selection) if K > 1 else (X, z[:, 0], selection[:, 0])


def write(folder: Path, shape: tuple[int, int, int, int]) -> None:
    """Write all sequences to a folder, part by part."""
    n, _, T, d = shape
    shapes = {"X": (n, T, d), "z": (n, d), "selection": (n,)}
    files = {
        name: np.lib.format.open_memmap(
            folder / f"{name}.npy", "w+", np.int64 if name == "selection" else np.float64, size
        )
        for name, size in shapes.items()
    }
    for first in range(0, n, _AT_ONCE):
        c = min(_AT_ONCE, n - first)
        for name, own in zip(files, part(first, (c, *shape[1:])), strict=True):
            files[name][first : first + c] = own.numpy()


def drawn(shape: tuple[int, int, int, int]) -> tuple[Tensor, ...]:
    parts = [
        part(first, (min(_AT_ONCE, shape[0] - first), *shape[1:]))
        for first in range(0, shape[0], _AT_ONCE)
    ]
    return tuple(torch.cat(own) for own in zip(*parts, strict=True))


def anonymous() -> float:
    """Megabytes of memory that no file backs."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) / 1024


class Gauge:
    """Looks at the anonymous memory ten times a second."""

    def __init__(self) -> None:
        self.peak, self._end = 0.0, Event()
        self._thread = Thread(target=self._watch, daemon=True)

    def _watch(self) -> None:
        while not self._end.wait(0.1):
            self.peak = max(self.peak, anonymous())

    def __enter__(self) -> "Gauge":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()


def solved(name: str, source: Any) -> dict[str, Any]:
    (n, K, T, _), _ = CASES[name]
    start = time.perf_counter()

    def look(*numbers: float) -> None:
        print(f"{time.perf_counter() - start:.1f}", *numbers, file=sys.stderr)

    with Gauge() as gauge:
        solution = am.solve_sequences(source, progress=look, time_limit=LIMIT)
    proof = solution.certificate
    return {
        "rows": n * K * (T - 1),
        "seconds": time.perf_counter() - start,
        "status": str(solution.status),
        **{key: float(getattr(proof, key)) for key in ("gap", "primal", "dual")},
        "built rows": solution.problem.M,
        "peak, MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "anonymous, MB": gauge.peak,
    }


def measure(name: str, folder: str) -> dict[str, Any]:
    """Solve once, after a small data set that compiles what is compiled."""
    am.solve_sequences(drawn(CASES["small"][0]), rows=200)
    shape, mapped = CASES[name]
    return solved(name, Path(folder) if mapped else drawn(shape))


def _in_a_process(name: str) -> dict[str, Any]:
    shape, mapped = CASES[name]
    with tempfile.TemporaryDirectory() as folder:
        if mapped:
            write(Path(folder), shape)
        words = [sys.executable, "-m", "benchmarks.sequences", "--one", name, folder]
        done = subprocess.run(words, stdout=subprocess.PIPE, check=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--case", choices=CASES, action="append")
    parser.add_argument("--one", nargs=2, metavar=("CASE", "FOLDER"))
    chosen = parser.parse_args()
    if chosen.one:
        print(json.dumps(measure(*chosen.one)))
        return
    results = []
    for name in chosen.case or list(CASES)[1:]:
        found = _in_a_process(name)
        results.append({"case": name, "shape (n, K, T, d)": CASES[name][0], **found})
        print(results[-1], flush=True)
    save({**machine(), "results": results}, chosen.out / "sequences.json")


if __name__ == "__main__":
    main()
