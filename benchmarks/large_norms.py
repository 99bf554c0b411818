"""Large problems in other norms than Frobenius: seconds, rounds' iterations, certified gap.

    python -m benchmarks.large_norms

Two problems: tokens on the sphere with a realisable selection, as in ``benchmarks.large``, and the
multiclass SVM ``(e_y − e_c)ᵀ W x ≥ 1`` of separable features. Writes ``results/large_norms.json``.
"""

import time
from typing import Any

import torch

import attnmargin as am
from benchmarks.harness import RESULTS, machine, save
from benchmarks.large import realisable

NORMS: list[str | float] = ["nuc", "spectral", "max", "sum", "rows", "columns", 1.25, 3.0]


def multiclass(points: int, d: int, classes: int) -> am.MarginProblem:
    """Classes that a random W separates."""
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(points, d, generator=generator, dtype=torch.float64)
    W = torch.randn(classes, d, generator=generator, dtype=torch.float64)
    return am.class_problem(x, (x @ W.mT).argmax(-1), classes)


def measure(name: str, problem: am.MarginProblem, norm: str | float) -> dict[str, Any]:
    start = time.perf_counter()
    solution = am.solve(problem, norm)
    seconds = time.perf_counter() - start
    gap, status = float(solution.certificate.gap), str(solution.status)
    print(f"{name}, norm {norm}: {seconds:.2f} s, gap {gap:.0e}, {status}", flush=True)
    return {
        "problem": name, "rows": problem.M, "norm": norm, "seconds": seconds, "gap": gap,
        "iterations": int(solution.iterations), "status": status,
    }  # fmt: skip


def main() -> None:
    problems = {
        "tokens (100, 20, 64)": realisable(100, 20, 64),
        "multiclass 750 × 25, 15 classes": multiclass(750, 25, 15),
    }
    for norm in NORMS:  # compiles what is compiled
        am.solve(realisable(40, 12, 16), norm)
    results = [measure(name, problem, norm) for name, problem in problems.items() for norm in NORMS]
    save({**machine(), "results": results}, RESULTS / "large_norms.json")


if __name__ == "__main__":
    main()
