"""Paper B on a GPU: one training step of its classifier, and one mirror update of many weights.

    PYTHONPATH=src:. python -m benchmarks.transformer --data FOLDER     # on a machine with a GPU

The papers' way is an eager loop in float32: attention by explicit products, every batch padded to
512 tokens, the update by plain tensor operations. Ours is :func:`attnmargin.text.train_text`:
compiled, in bfloat16, texts without padding, with fused attention and update. Both train on the
same reviews (``train.npz`` in FOLDER, see docs/results/B), in batches of 100, by ℓ1.1 descent on
the summed loss. The update is that of 256 M float32 weights, beside fused SGD, fused AdamW and a
copy.
"""

import argparse
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import attnmargin as am
from attnmargin.text.batches import Batches
from attnmargin.text.classifier.transformer import Shape, TextClassifier
from benchmarks.harness import RESULTS, machine, milliseconds, save

BATCH, LENGTH, P, RATE = 100, 512, 1.1, 8e-4
# Texts and epochs of our run, the last of which is timed; and steps of the papers' way.
TEXTS, EPOCHS, SLOW = 25_000, 3, 10
WEIGHTS = 256 * 1024 * 1024


class PapersModel(nn.Module):
    """The same classifier with attention written out."""

    def __init__(self, model: TextClassifier) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: Tensor) -> Tensor:
        model: Any = self.model
        x, seen = model.embed(ids)
        for block in model.blocks:
            q, k, v = (part.transpose(1, 2) for part in block.attention.parts(x, x))
            logits = (q @ k.transpose(-2, -1)) / math.sqrt(q.shape[-1])
            s = block.dropout(torch.softmax(logits.masked_fill(~seen, -1e9), -1))
            x = block(x, block.attention.outer((s @ v).transpose(1, 2).flatten(-2)))
        out: Tensor = model.head(x[:, 0])
        return out


@torch.no_grad()
def papers_update(parameters: list[Tensor]) -> None:
    """``∇ψ(w) − lr g``, and back, by plain operations."""
    for w in parameters:
        assert w.grad is not None
        dual = torch.sign(w) * torch.abs(w) ** (P - 1.0) - RATE * w.grad
        w.copy_(torch.sign(dual) * torch.abs(dual) ** (1.0 / (P - 1.0)))


def papers_way(data: am.text.Pieces) -> float:
    """Milliseconds of a step, mean of some batches."""
    torch.set_float32_matmul_precision("highest")  # theirs is plain float32
    model = PapersModel(TextClassifier(Shape(len(data.vocabulary)))).cuda()
    parameters: list[Tensor] = list(model.parameters())
    padding = data.vocabulary.index("[PAD]")
    source = Batches(data, padding, torch.device("cuda"), LENGTH, LENGTH)
    batches = iter([source.take(places) for places in source.shuffled(BATCH, 0)[: SLOW + 3]])

    def step() -> None:
        ids, labels = next(batches)
        model.zero_grad()
        logits = model(ids)[:, 0]
        F.binary_cross_entropy_with_logits(logits, labels.float(), reduction="sum").backward()
        papers_update(parameters)

    return milliseconds(step, SLOW)


def our_way(data: am.text.Pieces) -> float:
    """Milliseconds of a step, mean of the last epoch."""
    torch.set_float32_matmul_precision("high")
    recipe = am.text.Recipe(p=P, lr=RATE, batch=BATCH, epochs=EPOCHS, compiled=True, packed=True)
    few = data.part(np.arange(len(data)) < BATCH)
    run = am.text.train_text(data, few, Shape(len(data.vocabulary)), recipe, device="cuda")
    return 1e3 * run.history[-1]["seconds"] / math.ceil(len(data) / BATCH)


def steps(folder: Path) -> dict[str, float]:
    data = am.text.Pieces.load(folder / "train.npz")
    data = data.part(np.arange(len(data)) < TEXTS)
    slow, fast = papers_way(data), our_way(data)
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
    found = {"copy": milliseconds(lambda: copy.copy_(w), 50)}
    for name, make in makers.items():
        found[name] = milliseconds(make().step, 50)
    for name, value in found.items():
        print(f"{name:<34} {value:6.2f} ms")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--data", type=Path, required=True)
    chosen = parser.parse_args()
    record = {**machine(), "device": torch.cuda.get_device_name(), "weights": WEIGHTS,
              "update, ms": updates(), "step, ms": steps(chosen.data)}  # fmt: skip
    save(record, chosen.out / "transformer.json")


if __name__ == "__main__":
    main()
