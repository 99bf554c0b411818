"""The tube around a direction in which both theorems keep the weights, and its angle.

For ever ``W = g W_mm + V + r`` with ``V, r ⊥ W_mm``, g growing from g₀, and

    ‖r‖² ≤ R² + 2b (g − g₀),   so   tan ∠(W, W_mm) ≤ Θ (‖V‖ + √(R² + 2b (g − g₀))) / g.
"""

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

_HALVINGS = 80


@final
@dataclass(frozen=True, eq=False)
class Tube:
    """Tubes of B trials, ``(B,)`` each."""

    g: Tensor  # g₀; there is no bound of the angle unless it is positive
    theta: Tensor  # Θ
    offset: Tensor  # bound of ‖V‖
    radius: Tensor  # R
    growth: Tensor  # b

    def correlation(self, norm: Tensor) -> Tensor:
        """Bound the correlation of W with W_mm from below where ``‖W‖`` is this large, ``(B,)``."""
        tangent = self._tangent(self._least(norm))
        found = 1.0 / torch.sqrt(1.0 + tangent**2)
        return found.where(self.g > 0, -1.0).nan_to_num(nan=-1.0)

    def _reach(self, g: Tensor) -> Tensor:
        """Bound ‖r‖."""
        square = self.radius**2 + 2.0 * self.growth * (g - self.g).clamp_min(0.0)
        return square.sqrt()

    def _tangent(self, g: Tensor) -> Tensor:
        """Bound the tangent from g on; the share of r in it may rise at first, up to a peak."""
        peak = 2.0 * self.g - self.radius**2 / self.growth
        last = torch.maximum(g, peak.where(self.growth > 0, 0.0))
        return self.theta * (self.offset / g + self._reach(last) / last)

    def _least(self, norm: Tensor) -> Tensor:
        """Find the least g at which W can be that long, from below."""
        low, high = self.g, torch.maximum(self.theta * norm, self.g)
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            short = torch.hypot(middle / self.theta, self.offset + self._reach(middle)) < norm
            low, high = torch.where(short, middle, low), torch.where(short, high, middle)
        return low
