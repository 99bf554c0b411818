"""Training steps: ours against the papers' way, side by side in one run; and on a GPU.

    python -m benchmarks.training                                    # two cores, 100 trials
    python -m benchmarks.training --device cuda --trials 100000      # on a machine with a GPU

The papers' way is autograd on one trial at a time. Every method takes normalised steps with rate
0.1 on the same data, (n, T, d) = (6, 8, 10). Each run keeps what the other one left in
``results/training.json``.
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import attnmargin as am
from benchmarks.harness import RESULTS, machine, save

SHAPE = (6, 8, 10)
OURS: dict[str, dict[str, Any]] = {
    "W, gradient descent": {},
    "(K, Q), gradient descent": {"parameter": "KQ"},
    "W, mirror descent, p = 3": {"method": "mirror", "p": 3.0},
    "(v, W), gradient descent": {"parameter": "vW"},
}


def papers_way(data: am.AttentionData, steps: int, factors: bool) -> None:
    """One trial: forward, backward, normalise, step."""
    d = data.d
    W = torch.zeros(d, d, dtype=torch.float64, requires_grad=True)
    K, Q = (torch.randn(d, d, dtype=torch.float64).requires_grad_() for _ in range(2))
    parameters = [K, Q] if factors else [W]
    optimiser = torch.optim.SGD(parameters, lr=0.1)
    X, z, y, v = (_given(x) for x in (data.X, data.z, data.y, data.v))
    for _ in range(steps):
        optimiser.zero_grad()
        weights = K @ Q.T if factors else W
        s = torch.softmax((X @ weights @ z.unsqueeze(-1)).squeeze(-1), dim=-1)
        output = (X.transpose(1, 2) @ s.unsqueeze(-1)).squeeze(-1) @ v
        loss = torch.log(1 + torch.exp(-y * output)).mean()
        loss.backward()
        for parameter in parameters:
            gradient = _given(parameter.grad)
            parameter.grad = gradient / torch.linalg.norm(gradient)
        optimiser.step()


def _given(x: Tensor | None) -> Tensor:
    assert x is not None
    return x


def _microseconds(work: Callable[[], None], count: int, device: torch.device) -> float:
    """Per step and trial, the best of three after one that warms up."""
    best = float("inf")
    for attempt in range(4):
        start = time.perf_counter()
        work()
        if device.type == "cuda":
            torch.cuda.synchronize()
        if attempt:
            best = min(best, time.perf_counter() - start)
    return best / count * 1e6


def measure(device: torch.device, trials: int, steps: int) -> list[dict[str, Any]]:
    data = am.random_data(*SHAPE, trials=min(trials, 1000), name="training benchmark")
    parts = [_given(x) for x in (data.X, data.z, data.y, data.v)]
    times = -(-trials // len(parts[0]))
    parts = [x.repeat(times, *[1] * (x.ndim - 1))[:trials].to(device) for x in parts]
    data = am.AttentionData(*parts)
    rows = []
    for name, options in OURS.items():
        work = _ours(data, steps, options)
        rows.append({"work": name, "microseconds": _microseconds(work, steps * trials, device)})
    return rows


def _ours(data: am.AttentionData, steps: int, options: dict[str, Any]) -> Callable[[], None]:
    return lambda: _run(data, steps, options)


def _run(data: am.AttentionData, steps: int, options: dict[str, Any]) -> None:
    am.train(data, steps=steps, record=steps, keep_weights=False, **options)


def rivals(steps: int) -> dict[str, float]:
    data = am.random_data(*SHAPE, name="training benchmark")
    cpu = torch.device("cpu")
    return {
        "W, gradient descent": _microseconds(lambda: papers_way(data, steps, False), steps, cpu),
        "(K, Q), gradient descent": _microseconds(
            lambda: papers_way(data, steps, True), steps, cpu
        ),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--out", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    device, path = torch.device(chosen.device), chosen.out / "training.json"
    record = json.loads(path.read_text()) if path.exists() else {}
    rows = measure(device, chosen.trials, chosen.steps)
    slow = rivals(500) if device.type == "cpu" else {}
    for row in rows:
        other = slow.get(row["work"])
        row |= {} if other is None else {"papers' way": other, "ratio": other / row["microseconds"]}
        beside = "" if other is None else f"   the papers' way {other:7.1f}   {row['ratio']:6.0f} ×"
        print(f"{row['work']:<26} {row['microseconds']:8.3f} µs a step and trial{beside}")
    name = torch.cuda.get_device_name() if device.type == "cuda" else "CPU"
    own = {**machine(), "device": name, "trials": chosen.trials, "steps": chosen.steps}
    record[device.type] = own | {"shape": SHAPE, "results": rows}
    save(record, path)


if __name__ == "__main__":
    main()
