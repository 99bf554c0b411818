"""One large Frobenius problem: ours against SVM, conic and QP packages, and growth with the rows.

    python -m benchmarks.large

Selections are realisable: tokens on the sphere, ``z_i = x_i1``, and random weights select. Every
run is a process of its own, which reports seconds (the problem is built before; what a package
needs of it is built within its time) and its peak memory. ``gap`` compares the norm of a W, scaled
up until all rows hold, with the lower bound that our multipliers prove.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import attnmargin as am
from benchmarks import large_rivals
from benchmarks.harness import RESULTS, machine, save

METHODS: dict[str, Callable[[am.MarginProblem], Tensor | am.Solution]] = {
    "attnmargin": large_rivals.ours,
    "LinearSVC, hinge, C = 1e5, tol 1e-6": large_rivals.linear_svc,
    "SVC, precomputed kernel, tol 1e-6": large_rivals.kernel_svc,
    "Clarabel": large_rivals.conic("CLARABEL"),
    "SCS, eps 1e-8": large_rivals.conic("SCS", eps=1e-8, max_iters=100_000),
    "PDLP, eps 1e-8": large_rivals.pdlp,
    "DAQP": large_rivals.quadratic("daqp"),
    "PIQP": large_rivals.quadratic("piqp"),
    "ProxQP": large_rivals.quadratic("proxqp"),
}
_OURS, *_RIVALS = METHODS
# Shapes (n, T, d), and the rivals that are asked.
CONTESTS: dict[tuple[int, int, int], list[str]] = {
    (50, 20, 64): _RIVALS,
    (100, 20, 64): _RIVALS,
    (200, 50, 64): [*_RIVALS[:2], "PDLP, eps 1e-8"],
    (500, 64, 64): _RIVALS[:1],
    (1000, 100, 64): [],
    (3000, 100, 64): [],
    (10_000, 100, 64): [],
    (200, 100, 384): [],
    (200, 100, 768): [],
}
# Seconds after which a rival is ended.
LIMIT = 60


def realisable(n: int, T: int, d: int, seed: int = 1) -> am.MarginProblem:
    generator = torch.Generator().manual_seed(seed)
    X = torch.randn(n, T, d, generator=generator, dtype=torch.float64)
    X /= torch.linalg.vector_norm(X, dim=-1, keepdim=True)
    W = torch.randn(d, d, generator=generator, dtype=torch.float64)
    z = X[:, 0].clone()
    selection = (X @ (z @ W.mT).unsqueeze(-1)).squeeze(-1).argmax(-1)
    return am.token_problem(X, z, selection)


def measure(name: str, shape: tuple[int, int, int]) -> dict[str, Any]:
    """Solve once, after a small problem that compiles what is compiled."""
    method = METHODS[name]
    method(realisable(100, 20, 64) if name == _OURS else realisable(6, 5, 4))
    problem = realisable(*shape)
    start = time.perf_counter()
    found = method(problem)
    seconds = time.perf_counter() - start
    W = found.W if isinstance(found, am.Solution) else found
    least = float(problem.apply(W).min())
    size = float(torch.linalg.matrix_norm(W))
    own = found.certificate if isinstance(found, am.Solution) else None
    return {
        "seconds": seconds,
        "memory, MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "norm": size / least if least > 0 else float("inf"),
        "lower": None if own is None else float(own.lower),
    }


def _in_a_process(name: str, shape: tuple[int, int, int]) -> dict[str, Any] | None:
    words = [sys.executable, "-m", "benchmarks.large", "--one", name, *map(str, shape)]
    try:
        limit = None if name == _OURS else LIMIT
        done = subprocess.run(words, capture_output=True, timeout=limit, check=True, text=True)
    except subprocess.TimeoutExpired:
        return None
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def contest(shape: tuple[int, int, int], rivals: list[str]) -> dict[str, Any]:
    n, T, _ = shape
    rows, lower = [], 0.0
    for name in (_OURS, *rivals):
        found = _in_a_process(name, shape)
        if found is None:
            rows.append({"method": name, "seconds": None})
            print(f"{shape} {name}: not finished in {LIMIT} s")
            continue
        lower = found.pop("lower") or lower
        found["gap"] = 1.0 - lower / found.pop("norm")
        rows.append({"method": name, **found})
        ratio = found["seconds"] / rows[0]["seconds"]
        print(f"{shape} {name}: {found['seconds']:.2f} s ({ratio:.1f} ×), gap {found['gap']:.0e}, "
              f"{found['memory, MB']:.0f} MB", flush=True)  # fmt: skip
    return {"shape": shape, "rows": n * (T - 1), "methods": rows}


def draw(results: list[dict[str, Any]], path: Path) -> None:
    """Draw the seconds over the rows, d = 64."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.add_subplot()
    for name in METHODS:
        points = [
            (own["rows"], row["seconds"])
            for own in results if own["shape"][2] == 64
            for row in own["methods"] if row["method"] == name and row["seconds"]
        ]  # fmt: skip
        if points:
            axes.loglog(*zip(*points, strict=True), marker="o", label=name)
    axes.set(xlabel="rows", ylabel="seconds", title="one problem, d = 64")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7)
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--one", nargs=4, metavar=("METHOD", "n", "T", "d"))
    chosen = parser.parse_args()
    if chosen.one:
        name, *shape = chosen.one
        n, T, d = map(int, shape)
        print(json.dumps(measure(name, (n, T, d))))
        return
    results = [contest(shape, rivals) for shape, rivals in CONTESTS.items()]
    save({**machine(), "results": results}, chosen.out / "large.json")
    draw(results, chosen.out / "large.png")


if __name__ == "__main__":
    main()
