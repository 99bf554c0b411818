"""How far a row can move inside a cone of ℓp directions.

For u, v of ℓp norm one, ``ε = 1 − ⟨∇ψ(u), v⟩`` is the Bregman divergence ``D_ψ(v, u)``, and
``|⟨A_j, u − v⟩|`` is at most

    p ≤ 2:  f min(‖A_j‖_q, (Σ A_j² |v|^{2−p} + ‖A_j‖_q² f^{2−p})^{1/2}),   f² = 2ε / (p − 1)
    p > 2:  (Σ_G A_j² |v|^{2−p} / c₂)^{1/2} ε^{1/2} + (Σ_{not G} |A_j|^q)^{1/q} (ε / c₁)^{1/p}

for any set G of entries; c₁ and c₂ are the largest with ``d(a, b) ≥ c₁ |a − b|^p`` and
``d(a, b) ≥ c₂ |a|^{p−2} |a − b|²``, d the divergence of two numbers.
"""

from dataclasses import dataclass
from functools import cache
from typing import final

import torch
from torch import Tensor

from attnmargin.margin.norms import scaled_norm
from attnmargin.margin.problem import MarginProblem

# Shares of the entries, the smallest, that are left out of G.
_SHARES = (0.0, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 1.0)
# Points at which c₂ is looked for, up to this ratio −b/a, and what its rounding may cost.
_GRID, _REACH, _BELOW = 20_001, 4.0, 1.0 - 1e-6


@final
@dataclass(frozen=True, eq=False)
class Spread:
    """Coefficients of the bounds; B trials of M rows."""

    p: float
    length: Tensor  # (B, M), ‖A_j‖_q
    square: Tensor  # (S, B, M), Σ_G A_j² |v|^{2−p}
    rest: Tensor  # (S, B, M), (Σ_{not G} |A_j|^q)^{1/q}

    def bound(self, divergence: Tensor) -> Tensor:
        """Bound ``|⟨A_j, u − v⟩|``, ``(B, M)``, for divergences ``(B, 1)``."""
        p = self.p
        if p <= 2.0:
            f = (2.0 * divergence / (p - 1.0)).sqrt()
            close = self.square[0] + self.length**2 * f ** (2.0 - p)
            return f * torch.minimum(self.length, close.sqrt())
        c1 = 1.0 / (p * (2.0 ** (p - 1.0) - 1.0))
        even = (self.square / curvature(p) * divergence).sqrt()
        return (even + self.rest * (divergence / c1) ** (1.0 / p)).amin(0)


def build_spread(problem: MarginProblem, v: Tensor, p: float) -> Spread:
    """Compute the coefficients of rows around directions v ``(B, d, e)``."""
    q, size = p / (p - 1.0), v.abs()
    length = scaled_norm(problem.left, q) * scaled_norm(problem.right, q)
    if p <= 2.0:
        return Spread(p, length, _weighted(problem, 2.0, size ** (2.0 - p))[None], length[None])
    square, rest = [], []
    for share in _SHARES:
        edge = size.flatten(1).quantile(share, dim=-1)[:, None, None]
        inside = (size > edge) if share > 0.0 else (size > 0.0)
        inside &= share < 1.0
        power = size.where(inside, 1.0) ** (2.0 - p)
        square.append(_weighted(problem, 2.0, power.where(inside, 0.0)))
        rest.append(_weighted(problem, q, (~inside).to(size)) ** (1.0 / q))
    return Spread(p, length, torch.stack(square), torch.stack(rest))


def _weighted(problem: MarginProblem, power: float, weight: Tensor) -> Tensor:
    """Compute ``Σ_ab |left_a right_b|^power weight_ab``, ``(B, M)``."""
    left, right = (x.abs() ** power for x in (problem.left, problem.right))
    return ((left @ weight) * right).sum(-1)


@cache
def curvature(p: float) -> float:
    """Find the largest c₂, p > 2: the least divergence of 1 and b over ``(1 − b)²``.

    It is attained at some b in [−1, 0]; at b = 0 it is 1/p.
    """
    b = -torch.linspace(0.0, _REACH, _GRID, dtype=torch.float64)
    divergence = (1.0 - b.abs() ** p) / p + b.abs() ** (p - 1.0) * (1.0 - b)
    return _BELOW * float((divergence / (1.0 - b) ** 2).min())
