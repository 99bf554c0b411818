"""Paper B on a GPU: one training step of its classifier, and one mirror update of many weights.

    PYTHONPATH=src:. python -m benchmarks.transformer     # on a machine with a GPU

The papers' way is an eager loop in float32: attention by explicit products, every batch padded to
512 tokens, the update by plain tensor operations. Ours is compiled, in bfloat16, with fused
attention and update. Both take batches of 100 texts of 512 random tokens, ℓ1.1 descent on the
summed loss. The update is that of 256 M float32 weights, beside fused SGD, fused AdamW and a copy.
"""

import argparse
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import attnmargin as am
from attnmargin.text.classifier.transformer import Shape, TextClassifier
from benchmarks.harness import RESULTS, machine, save

BATCH, LENGTH, WORDS, P, RATE = 100, 512, 30_522, 1.1, 8e-4
WEIGHTS = 256 * 1024 * 1024


def _milliseconds(work: Callable[[], object], count: int) -> float:
    """Per call, after three that warm up."""
    for _ in range(3):
        work()
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    first.record()
    for _ in range(count):
        work()
    last.record()
    torch.cuda.synchronize()
    return float(first.elapsed_time(last)) / count


class PapersModel(nn.Module):
    """The same classifier with attention written out."""

    def __init__(self, model: TextClassifier) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: Tensor) -> Tensor:
        model: Any = self.model
        x, seen = model.embed(ids)
        for block in model.blocks:
            q, k, v = block.attention.parts(x)
            logits = (q @ k.transpose(-2, -1)) / math.sqrt(q.shape[-1])
            s = block.dropout(torch.softmax(logits.masked_fill(~seen, -1e9), -1))
            mixed = block.attention.outer((s @ v).transpose(1, 2).flatten(-2))
            x = block.first(x + block.dropout(mixed))
            hidden = block.dropout(F.relu(block.up(x)))
            x = block.second(x + block.dropout(block.down(hidden)))
        out: Tensor = model.head(x[:, 0])
        return out


@torch.no_grad()
def papers_update(parameters: list[Tensor]) -> None:
    """``∇ψ(w) − lr g``, and back, by plain operations."""
    for w in parameters:
        assert w.grad is not None
        dual = torch.sign(w) * torch.abs(w) ** (P - 1.0) - RATE * w.grad
        w.copy_(torch.sign(dual) * torch.abs(dual) ** (1.0 / (P - 1.0)))


def papers_step(ids: Tensor, labels: Tensor) -> Callable[[], object]:
    model = PapersModel(TextClassifier(Shape(WORDS))).cuda()
    parameters: list[Tensor] = list(model.parameters())

    def step() -> None:
        model.zero_grad()
        F.cross_entropy(model(ids), labels, reduction="sum").backward()
        papers_update(parameters)

    return step


def our_step(ids: Tensor, labels: Tensor) -> Callable[[], object]:
    model = TextClassifier(Shape(WORDS)).cuda()
    forward = torch.compile(model, dynamic=False)
    optimiser = am.MirrorDescent(model.parameters(), lr=RATE, p=P)

    def step() -> None:
        with torch.autocast("cuda", dtype=torch.bfloat16):
            logits = forward(ids)
        optimiser.zero_grad(set_to_none=True)
        F.cross_entropy(logits.float(), labels, reduction="sum").backward()
        optimiser.step()

    return step


def steps() -> dict[str, float]:
    generator = torch.Generator(device="cuda").manual_seed(0)
    ids = torch.randint(4, WORDS, (BATCH, LENGTH), device="cuda", generator=generator)
    labels = torch.randint(0, 2, (BATCH,), device="cuda", generator=generator)
    torch.set_float32_matmul_precision("highest")  # theirs is plain float32
    slow = _milliseconds(papers_step(ids, labels), 10)
    torch.set_float32_matmul_precision("high")
    fast = _milliseconds(our_step(ids, labels), 50)
    print(f"step: ours {fast:.2f} ms, the papers' way {slow:.1f} ms: {slow / fast:.1f} ×")
    return {"ours": fast, "papers' way": slow, "ratio": slow / fast}


def updates() -> dict[str, float]:
    w = torch.randn(WEIGHTS, device="cuda")
    w.grad, copy = torch.randn_like(w), torch.empty_like(w)
    makers: dict[str, Callable[[], Any]] = {
        "mirror descent, p = 1.1": lambda: am.MirrorDescent([w], lr=1e-3, p=1.1),
        "mirror descent, plain operations": lambda: am.MirrorDescent([w], lr=1e-3, p=1.1,
                                                                     fused=False),
        "SGD, fused": lambda: torch.optim.SGD([w], lr=1e-3, fused=True),
        "AdamW, fused": lambda: torch.optim.AdamW([w], lr=1e-3, fused=True),
    }  # fmt: skip
    found = {"copy": _milliseconds(lambda: copy.copy_(w), 50)}
    for name, make in makers.items():
        found[name] = _milliseconds(make().step, 50)
    for name, value in found.items():
        print(f"{name:<34} {value:6.2f} ms")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    record = {**machine(), "device": torch.cuda.get_device_name(), "weights": WEIGHTS,
              "update, ms": updates(), "step, ms": steps()}  # fmt: skip
    save(record, chosen.out / "transformer.json")


if __name__ == "__main__":
    main()
