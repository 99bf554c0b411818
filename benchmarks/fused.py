"""Frobenius and nuclear instances per second on a GPU, for several sizes of problem and batch.

    python -m benchmarks.fused    # on a machine with a GPU and Triton

Writes ``results/fused.json``. Building the problems and their certificates counts.
"""

import time
from typing import Any

import torch

import attnmargin as am
from benchmarks.harness import RESULTS, machine, save

CASES = [
    ("fro", (5, 5, 5), 200_000),
    ("fro", (5, 5, 20), 200_000),
    ("fro", (6, 8, 10), 10_000),
    ("fro", (6, 8, 10), 200_000),
    ("fro", (6, 8, 10), 1_000_000),
    ("fro", (20, 5, 40), 50_000),
    ("nuc", (5, 5, 20), 100_000),
    ("nuc", (6, 8, 10), 10_000),
    ("nuc", (6, 8, 10), 100_000),
    ("nuc", (6, 8, 10), 200_000),
]


def instances(shape: tuple[int, int, int], trials: int) -> tuple[torch.Tensor, ...]:
    """Draw tokens, queries and the tokens of largest score on the GPU."""
    n, T, d = shape
    generator = torch.Generator("cuda").manual_seed(1)

    def sphere(*size: int) -> torch.Tensor:
        normal = torch.randn(*size, generator=generator, device="cuda", dtype=torch.float64)
        return torch.nn.functional.normalize(normal, dim=-1)

    X, z, v = sphere(trials, n, T, d), sphere(trials, n, d), sphere(trials, d, 1)
    sign = torch.rand(trials, n, 1, generator=generator, device="cuda") < 0.5
    scores = (X @ v.unsqueeze(1)).squeeze(-1)
    return X, z, torch.where(sign, scores, -scores).argmax(-1)


def measure(
    norm: str, shape: tuple[int, int, int], trials: int, repeats: int = 5
) -> dict[str, Any]:
    """Take the best of the repeats, after one that warms up."""
    X, z, selection = instances(shape, trials)
    best = float("inf")
    for attempt in range(repeats + 1):
        torch.cuda.synchronize()
        start = time.perf_counter()
        solution = am.solve(am.token_problem(X, z, selection), norm)
        optimal = int(solution.optimal.sum())  # waits for the GPU
        if attempt:
            best = min(best, time.perf_counter() - start)
    gap = float(solution.certificate.gap.max())
    speed = {"per second": trials / best, "optimal": optimal, "worst gap": gap}
    row = {"norm": norm, "shape": shape, "instances": trials, **speed}
    print(norm, shape, f"{trials:9,}", f"{row['per second']:14,.0f}/s", optimal, f"{gap:.1e}")
    return row


def main() -> None:
    results = [measure(*case) for case in CASES]
    own = {**machine(), "device": torch.cuda.get_device_name(), "results": results}
    save(own, RESULTS / "fused.json")


if __name__ == "__main__":
    main()
