"""Second-order cones ``‖w‖ ≤ t``: products, steps, and the scaling of Nesterov and Todd.

Every function takes cones ``(…, G)`` of one width m, ``t`` of shape ``(…, G)`` and ``w`` of shape
``(…, G, m)``.
"""

from typing import NamedTuple, final

import torch
from torch import Tensor

from attnmargin.margin.norms import scaled_norm

_TINY = 1e-300


class Cones(NamedTuple):
    """Points of second-order cones, or directions."""

    t: Tensor
    w: Tensor

    def times(self, other: "Cones") -> Tensor:
        """Compute the inner product in each cone."""
        return self.t * other.t + (self.w * other.w).sum(-1)

    def determinant(self) -> Tensor:
        """Compute ``t² − ‖w‖²``, without cancelling squares."""
        size = scaled_norm(self.w)
        return ((self.t - size) * (self.t + size)).clamp_min(_TINY)


def cone_step(x: Cones, dx: Cones) -> Tensor:
    """Find the largest step along dx, ``(…,)``, that keeps all cones; x is inside them.

    The first positive root of ``a α² + 2 b α + c``, the determinant at ``x + α dx``.
    """
    a = dx.t**2 - (dx.w * dx.w).sum(-1)
    b = x.t * dx.t - (x.w * dx.w).sum(-1)
    c = x.determinant()
    square = b * b - a * c
    below = -b + square.clamp_min(0.0).sqrt()
    longest = (c / below).where((below > 0) & (square >= 0), torch.inf)
    return longest.amin(-1)


@final
class Scaling(NamedTuple):
    """The matrix T with ``T z = T⁻¹ x``; ``T² = weight (2 v vᵀ − J)``, ``v = (v0, w)``."""

    v0: Tensor  # (…, G)
    w: Tensor  # (…, G, m)
    weight: Tensor  # (…, G), √(det x / det z)
    bend: Tensor  # (…, G), 1 + 2 ‖w‖²
    slope: Tensor  # (…, G, m), what w follows as t moves
    x: Cones
    z: Cones

    def inside(self, force: Tensor) -> Tensor:
        """Apply the inverse of the w-block of ``T⁻²``: how w answers a force at fixed t."""
        along = (self.w * force).sum(-1)
        bent = force - self.w * (2.0 * along / self.bend).unsqueeze(-1)
        return bent * self.weight.unsqueeze(-1)

    def pulled(self, rho: Cones, t: Tensor, w: Tensor) -> Tensor:
        """Compute the t-part of dz from dx's t-part and dz's w-part: no large numbers cancel.

        ``dz + T⁻² dx = rho``, with dx eliminated but for t.
        """
        return rho.t + (self.slope * (rho.w - w)).sum(-1) - t / (self.weight * self.bend)

    def _turned(self, y: Cones, sign: float) -> Cones:
        """Apply T (sign 1) or T⁻¹ (sign −1)."""
        along = (self.w * y.w).sum(-1)
        factor = self.weight ** (0.5 * sign)
        t = factor * (self.v0 * y.t + sign * along)
        part = sign * y.t + along / (1.0 + self.v0)
        return Cones(t, factor.unsqueeze(-1) * (y.w + self.w * part.unsqueeze(-1)))

    def target(self, mu: Tensor, before: tuple[Cones, Cones] | None) -> Cones:
        """Compute ``μ x⁻¹ − z``, less the second-order term of earlier changes of x and z."""
        inverse = mu / self.x.determinant()
        plain = Cones(inverse * self.x.t - self.z.t, -inverse.unsqueeze(-1) * self.x.w - self.z.w)
        if before is None:
            return plain
        dx, dz = self._turned(before[0], -1.0), self._turned(before[1], 1.0)
        product = Cones(dx.times(dz), dx.t.unsqueeze(-1) * dz.w + dz.t.unsqueeze(-1) * dx.w)
        off = self._turned(_divided(product, self._turned(self.z, 1.0)), -1.0)
        return Cones(plain.t - off.t, plain.w - off.w)


def _divided(y: Cones, by: Cones) -> Cones:
    """Solve ``by ∘ u = y`` for u, in the product ``(xᵀy, x₀ y₁ + y₀ x₁)``."""
    t = (by.t * y.t - (by.w * y.w).sum(-1)) / by.determinant()
    return Cones(t, (y.w - t.unsqueeze(-1) * by.w) / by.t.unsqueeze(-1))


def scaling(x: Cones, z: Cones) -> Scaling:
    """Compute the scaling of Nesterov and Todd at points inside the cones."""
    dx, dz = x.determinant(), z.determinant()
    rx, rz = dx.rsqrt(), dz.rsqrt()
    half = (0.5 * (1.0 + x.times(z) * rx * rz)).clamp_min(1.0).sqrt()
    w = (x.w * rx.unsqueeze(-1) - z.w * rz.unsqueeze(-1)) / (2.0 * half).unsqueeze(-1)
    square = (w * w).sum(-1)
    v0 = (1.0 + square).sqrt()
    bend = 1.0 + 2.0 * square
    slope = w * (2.0 * v0 / bend).unsqueeze(-1)
    return Scaling(v0, w, (dx / dz).sqrt(), bend, slope, x, z)
