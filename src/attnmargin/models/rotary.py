"""Rotary positions: queries and keys turn with their position, so logits depend on distance."""

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from attnmargin.base.errors import InputError


@final
@dataclass(frozen=True, eq=False)
class Rotary:
    """Turns of every position: entries i and i + r/2 of a key or query turn together.

    Both tables are ``(T, r/2)``. The other m − r entries do not turn. A factor that scales the
    tables, as long-context models have it, scales keys and queries.
    """

    cos: Tensor
    sin: Tensor

    def __post_init__(self) -> None:
        if self.cos.ndim != 2 or self.cos.shape != self.sin.shape:
            got = f"tables of shapes {tuple(self.cos.shape)} and {tuple(self.sin.shape)}"
            raise InputError("rotary", got, "two of shape (T, r/2)")

    @property
    def length(self) -> int:
        """Number of positions that the tables cover."""
        return len(self.cos)

    def turned(self, x: Tensor) -> Tensor:
        """Turn keys or queries ``(…, T, m)`` by their positions."""
        T = x.shape[-2]
        return _turned(x, self.cos[:T].to(x), self.sin[:T].to(x))

    def between(self, columns: Tensor, distance: int) -> Tensor:
        """Turn columns ``(m, e)`` as a query is turned, as seen from a key at ``s − t`` from it.

        ``(R_s k)ᵀ (R_t q) = kᵀ R_{t−s} q``.
        """
        far = abs(distance)
        if far >= self.length:
            got = f"{distance} with texts of {self.length} tokens"
            raise InputError("distance", got, f"a number from {1 - self.length} to 0 or above")
        factor = self.cos[0].to(columns)  # a turn by 0: the cosine is the scale itself
        cos, sin = self.cos[far].to(columns) * factor, self.sin[far].to(columns) * factor
        return _turned(columns.mT, cos, -sin if distance > 0 else sin).mT


def _turned(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    half = cos.shape[-1]
    one, two, rest = x.split((half, half, x.shape[-1] - 2 * half), -1)
    return torch.cat((one * cos - two * sin, two * cos + one * sin, rest), -1)
