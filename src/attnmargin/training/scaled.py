"""Numbers far outside the range of floating point: tensors with a logarithmic scale."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self, final

import torch
from torch import Tensor


@final
@dataclass(frozen=True)
class Scaled:
    """The tensor ``e^{scale} value``; the largest entry of a member of the batch is ±1.

    >>> one = torch.ones(1, 1, 1, dtype=torch.float64)
    >>> small = Scaled.of(3.0 * one, -5000.0 * one)
    >>> round((small + small.times(0.5)).over(small).item(), 9)
    1.5
    """

    value: Tensor  # (B, r, c)
    scale: Tensor  # (B, 1, 1); −inf where the value is zero

    @classmethod
    def of(cls, value: Tensor, scale: Tensor) -> Self:
        """Rescale ``e^{scale} value``."""
        size = value.abs().amax((-2, -1), keepdim=True)
        return cls(value / size.where(size > 0, 1.0), scale + size.log())

    @classmethod
    def zero(cls, like: Tensor) -> Self:
        """Return zero with the shape of ``like``."""
        return cls.of(torch.zeros_like(like), like.new_zeros(len(like), 1, 1))

    def times(self, factor: float) -> "Scaled":
        """Multiply by a number that is not negative."""
        return Scaled(self.value, self.scale + (math.log(factor) if factor > 0.0 else -math.inf))

    def __add__(self, other: "Scaled") -> "Scaled":
        return self._joined(other, torch.add)

    def hypot(self, other: "Scaled") -> "Scaled":
        """Compute the square root of the sum of squares, entry by entry."""
        return self._joined(other, torch.hypot)

    def _joined(self, other: "Scaled", join: Callable[..., Tensor]) -> "Scaled":
        largest = torch.maximum(self.scale, other.scale)
        largest = largest.where(largest > -torch.inf, 0.0)
        parts = ((x.scale - largest).exp() * x.value for x in (self, other))
        return Scaled.of(join(*parts), largest)

    def over(self, other: "Scaled", floor: float = 0.0) -> Tensor:
        """Compute the quotient by ``other + floor``, entry by entry; 0 where that is zero."""
        below = other.value + floor * (-other.scale).exp() if floor > 0.0 else other.value
        ratio = (self.value / below).where(below != 0, 0.0)
        shift = (self.scale - other.scale).where(self.scale > -torch.inf, 0.0)
        return shift.exp() * ratio

    def plain(self) -> Tensor:
        """Return the numbers themselves; they may underflow."""
        return self.scale.exp() * self.value
