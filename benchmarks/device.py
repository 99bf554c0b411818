"""Instances per second in every norm, on a GPU and on the CPU.

    python -m benchmarks.device --device cuda    # on a machine with a GPU
    python -m benchmarks.device --device cpu     # all cores; prints the ratio where both are known
    python -m benchmarks.device --norm 10 --norm nuc                    # these norms alone

Each run keeps what others left in ``results/device.json``: the other device, and norms that were
not measured again. Every row has its date.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import torch

import attnmargin as am
from benchmarks.harness import RESULTS, machine, save, today

NORMS: list[str | float] = ["fro", "nuc", 1.1, 1.25, 1.75, 3.0, 6.0, 10.0]
SHAPE = (6, 8, 10)


def measure(
    device: torch.device, norms: list[str | float], instances: int, repeats: int
) -> list[dict[str, Any]]:
    """Best of the repeats, after one that warms up; building and certificate count."""
    data = am.random_data(*SHAPE, trials=instances, name="device")
    X, z, alpha = (x.to(device) for x in (data.X, data.z, am.optimal_tokens(data)))
    return [_one(norm, X, z, alpha, repeats) for norm in norms]


def _one(norm: str | float, X: Any, z: Any, alpha: Any, repeats: int) -> dict[str, Any]:
    best = float("inf")
    for attempt in range(repeats + 1):
        start = time.perf_counter()
        solution = am.solve(am.token_problem(X, z, alpha), norm)
        optimal = int(solution.optimal.sum())
        if attempt:
            best = min(best, time.perf_counter() - start)
    gap = float(solution.certificate.gap.max())
    found = {"per second": len(X) / best, "optimal": optimal, "worst gap": gap}
    return {"norm": norm, "when": today(), "instances": len(X), **found}


def merged(before: dict[str, Any], results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Replace the rows of the measured norms, and date those that stay."""
    kept = {row["norm"]: {"when": before["when"], **row} for row in before.get("results", ())}
    rows = kept | {row["norm"]: row for row in results}
    return [rows[norm] for norm in NORMS if norm in rows]


def named(text: str) -> str | float:
    """Find a norm of the benchmark by its name."""
    names: dict[str, str | float] = {str(norm): norm for norm in NORMS}
    names |= {f"{norm:g}": norm for norm in NORMS if isinstance(norm, float)}
    if text not in names:
        raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(map(str, NORMS))}")
    return names[text]


def show(record: dict[str, Any]) -> None:
    """Plain text: a machine with a GPU may have nothing but torch."""
    print("norm", *(f"{kind:>16}/s" for kind in record), "   ratio" if len(record) == 2 else "")
    tables = [{row["norm"]: row["per second"] for row in own["results"]} for own in record.values()]
    for norm in NORMS:
        speeds = [table[norm] for table in tables if norm in table]
        ratio = f"{speeds[0] / speeds[1]:7.1f} ×" if len(speeds) == 2 else ""
        if len(speeds) == len(tables):
            print(f"{norm:<4}", *(f"{speed:18,.0f}" for speed in speeds), ratio)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--instances", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--norm", type=named, action="append", help="repeatable; default: all")
    parser.add_argument("--out", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    device, path = torch.device(chosen.device), chosen.out / "device.json"
    record = json.loads(path.read_text()) if path.exists() else {}
    results = measure(device, chosen.norm or NORMS, chosen.instances, chosen.repeats)
    name = torch.cuda.get_device_name() if device.type == "cuda" else "CPU"
    own = {**machine(), "device": name, "instances": chosen.instances, "shape": SHAPE}
    record[device.type] = own | {"results": merged(record.get(device.type, {}), results)}
    record = {kind: record[kind] for kind in ("cuda", "cpu") if kind in record}
    show(record)
    save(record, path)


if __name__ == "__main__":
    main()
