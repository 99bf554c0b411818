"""A small transformer, a batch for it, and the plain loop that trains it."""

from typing import Any

import torch
from torch import Tensor, nn


class Model(nn.Module):
    """Two encoder layers that tell whether a marked token is there."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(8, 16)
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
        self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(16, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(self.tokens(x))[:, 0])


def batch() -> tuple[Tensor, Tensor]:
    rng = torch.Generator().manual_seed(0)
    x = torch.randint(0, 7, (64, 6), generator=rng)
    y = torch.randint(0, 2, (64,), generator=rng)
    x[y == 1, 2] = 7
    return x, y


def fit(model: Any, optimiser: Any, scheduler: Any, steps: int) -> list[float]:
    x, y = batch()
    losses = []
    for _ in range(steps):
        optimiser.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimiser.step()
        scheduler.step()
        losses.append(float(loss.detach()))
    return losses
