"""One large problem on a GPU: seconds and certified gap, Frobenius and nuclear.

    python -m benchmarks.large_device    # on a machine with a GPU

Problems as in ``benchmarks.large``. Writes ``results/large_device.json``.
"""

import argparse
import time
from pathlib import Path
from typing import Any

import torch

import attnmargin as am
from benchmarks.harness import RESULTS, machine, save
from benchmarks.large import realisable

CASES: list[tuple[tuple[int, int, int], str]] = [
    ((100, 20, 64), "fro"),
    ((200, 50, 64), "fro"),
    ((500, 64, 64), "fro"),
    ((1000, 100, 64), "fro"),
    ((10_000, 100, 64), "fro"),
    ((200, 100, 384), "fro"),
    ((100, 20, 64), "nuc"),
]


def measure(shape: tuple[int, int, int], norm: str) -> dict[str, Any]:
    problem = realisable(*shape).to("cuda")
    torch.cuda.synchronize()
    start = time.perf_counter()
    solution = am.solve(problem, norm)
    gap, status = float(solution.certificate.gap), str(solution.status)
    seconds = time.perf_counter() - start
    print(f"{shape} {norm}: {seconds:.2f} s, gap {gap:.0e}, {status}", flush=True)
    return {
        "shape": shape, "rows": problem.M, "norm": norm, "seconds": seconds, "gap": gap,
        "status": status, "memory, GB": torch.cuda.max_memory_allocated() / 1e9,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    am.solve(realisable(100, 20, 16).to("cuda"))  # loads the libraries of the GPU
    results = [measure(*case) for case in CASES]
    own = {**machine(), "device": torch.cuda.get_device_name(), "results": results}
    save(own, chosen.out / "large_device.json")


if __name__ == "__main__":
    main()
