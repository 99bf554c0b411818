"""Steps of optimisers on a GPU, in milliseconds: sign descent, spectral descent, and their rivals.

    python -m benchmarks.optimizers    # on a machine with a GPU

``max`` is SteepestDescent with norm="max"; spectral descent takes a step of 64 matrices of 2048 ×
2048 with momentum, beside torch.optim.Muon where PyTorch has it. The polar factor that both
approximate is checked by its singular values. Writes ``results/optimizers.json``.
"""

import argparse
from collections.abc import Callable
from pathlib import Path

import torch

import attnmargin as am
from attnmargin.optim.polar import newton_schulz
from benchmarks.harness import RESULTS, machine, milliseconds, save

WEIGHTS, MATRICES, SIZE = 256 * 1024 * 1024, 64, 2048


def signs() -> dict[str, float]:
    """Update one tensor of 256 M float32 weights."""
    w = torch.randn(WEIGHTS, device="cuda")
    w.grad, copy = torch.randn_like(w), torch.empty_like(w)
    found = {"copy": milliseconds(lambda: copy.copy_(w), 50)}
    makers: dict[str, Callable[[], torch.optim.Optimizer]] = {
        "SteepestDescent, max": lambda: am.SteepestDescent([w], lr=1e-4, norm="max"),
        "SteepestDescent, max, one by one": lambda: am.SteepestDescent(
            [w], lr=1e-4, norm="max", foreach=False
        ),
        "MirrorDescent, p = 1.1": lambda: am.MirrorDescent([w], lr=1e-4, p=1.1),
        "SGD, fused": lambda: torch.optim.SGD([w], lr=1e-4, fused=True),
        "AdamW, fused": lambda: torch.optim.AdamW([w], lr=1e-4, fused=True),
    }
    return found | {name: milliseconds(make().step, 50) for name, make in makers.items()}


def spectral() -> dict[str, float]:
    """Update 64 matrices with momentum 0.95, by Newton–Schulz in bfloat16."""
    parameters = [
        torch.nn.Parameter(torch.randn(SIZE, SIZE, device="cuda")) for _ in range(MATRICES)
    ]
    for w in parameters:
        w.grad = torch.randn_like(w)
    own = am.SteepestDescent(parameters, lr=1e-4, norm="spectral", momentum=0.95, nesterov=True)
    found = {"SteepestDescent, spectral": milliseconds(own.step, 10)}
    if hasattr(torch.optim, "Muon"):
        rival = torch.optim.Muon(
            parameters, lr=1e-4, momentum=0.95, nesterov=True, weight_decay=0.0
        )
        found["torch.optim.Muon"] = milliseconds(rival.step, 10)
        by_kernel = torch.compile(rival.step)
        try:
            found["torch.optim.Muon, compiled"] = milliseconds(by_kernel, 10)
        except RuntimeError as error:
            print(f"torch.optim.Muon does not compile here: {type(error).__name__}")
    return found


def singular_values() -> dict[str, float]:
    """Least and largest singular value of what stands in for a polar factor."""
    draw = torch.Generator("cuda").manual_seed(0)
    values = torch.linalg.svdvals(
        newton_schulz(torch.randn(SIZE, SIZE, generator=draw, device="cuda"))
    )
    return {"least of the upper 99 %": float(values[int(0.99 * SIZE)]), "largest": float(values[0])}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    record = {
        **machine(), "device": torch.cuda.get_device_name(),
        "256 M weights, ms": signs(),
        f"{MATRICES} matrices of {SIZE} × {SIZE}, ms": spectral(),
        "singular values": singular_values(),
    }  # fmt: skip
    print(record)
    save(record, chosen.out / "optimizers.json")


if __name__ == "__main__":
    main()
