"""The rows of a selection and its SVM, as the two theorems about reached points need them.

Rows ``j = (i, t)``, t ≠ α_i visible: ``A_j = (x_iα − x_it) z_iᵀ``, ``Δ_j = γ_iα − γ_it``. With the
support rows S and their multipliers ``λ > 0``

    W_mm = Σ_S λ_j A_j,   K_SS λ = 1,   Θ² = 1 / Σ_S λ_j,   σ_j = ⟨A_j, W_mm⟩ = 1 + δ_j.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple, final

import torch
from torch import Tensor

from attnmargin.attention.softmax import Objective
from attnmargin.margin.problem import MarginProblem
from attnmargin.margin.solution import Solution

# Units in the last place, and the largest condition of the support rows: rounding then changes ρ₀
# and σ by less than the share of the radius that is kept back.
_UNITS, _CONDITION = 64.0, 1e9


class Obstacle(IntEnum):
    """Why the funnel around a direction does not exist, or is not known to."""

    NONE = 0
    NO_DIRECTION = 1  # the SVM of the selection has no certified solution
    DOUBTFUL = 2  # rounding hides which rows support it
    DEPENDENT = 3  # the support rows are dependent, or nearly so
    SUPPORT = 4  # a support token does not score lower
    LEVEL = 5  # a token that does not score lower stands exactly at the margin
    LOSS = 6  # the slope of the loss vanishes, or its curvature is not known


@final
@dataclass(frozen=True, eq=False)
class Frame:
    """What depends on data and selection alone; B trials of M rows, at most s of them support."""

    solution: Solution  # batch (B,)
    gap: Tensor  # (B, M), Δ
    sequence: Tensor  # int (B, M)
    count: int  # N, the number of sequences
    log_kappa: Tensor  # (B, M), log −ℓ'(γ_iα)
    bend: Tensor  # (B, M), Λ_i
    weight: Tensor  # (B, M), log of how many copies the other token has, over the chosen one
    length: Tensor  # (B, M), ‖A_j‖
    held: Tensor  # bool (B, M), S
    place: Tensor  # int (B, s), the support rows; any row where there are fewer
    there: Tensor  # bool (B, s)
    gram: Tensor  # (B, M, s), K_jS
    factor: Tensor  # (B, s, s), Cholesky factor of K_SS, for rows of length one
    least: Tensor  # (B,), least eigenvalue of that matrix
    dual: Tensor  # (B, s), λ
    theta2: Tensor  # (B,), Θ²
    sigma: Tensor  # (B, M), from below
    spread: Tensor  # (B,), M, the largest eigenvalue of Λ^{1/2} (K_SS − Θ² 11ᵀ) Λ^{1/2}
    obstacle: Tensor  # int (B,), an Obstacle

    @property
    def problem(self) -> MarginProblem:
        """The rows."""
        return self.solution.problem

    @property
    def delta(self) -> Tensor:
        """δ, ``(B, M)``, not below zero."""
        return (self.sigma - 1.0).clamp_min(0.0).masked_fill(self.held, 0.0)

    @property
    def across(self) -> Tensor:
        """``‖A_j^⊥‖``, the part of a row orthogonal to W_mm, from above, ``(B, M)``."""
        square = self.length**2 - self.theta2.unsqueeze(-1) * self.sigma**2
        rounding = _UNITS * torch.finfo(square.dtype).eps * self.length**2
        return (square.clamp_min(0.0) + rounding).sqrt()

    def at_support(self, rows: Tensor) -> Tensor:
        """Take the support rows of ``(B, M)``, ``(B, s)``; zero where there are fewer."""
        return rows.gather(-1, self.place).where(self.there, 0.0)


def build_frame(goal: Objective, solution: Solution, weight: Tensor, doubt: Tensor) -> Frame:
    """Build the frame of a solved selection; tensors of the goal and the solution have batch B.

    Args:
        goal: the loss of a linear head.
        solution: of the selection's :func:`token_problem`, in the Frobenius norm, batch ``(B,)``.
        weight: ``(B, N, T)``, log of the number of copies of a token, over that of the chosen one.
        doubt: ``(B, N)``, within which distance scores count as equal.
    """
    problem, mask = solution.problem, solution.problem.mask
    rows = score_rows(goal, problem, weight, doubt)
    length = problem.lengths()
    held = _support(solution)
    basis = _basis(problem, held, length)
    sigma, unsure = _margins(basis, mask)
    obstacle = _obstacle(solution, basis, held, rows, sigma, unsure)
    sigma = torch.where(held | ~mask, torch.ones_like(sigma), sigma - unsure)
    return Frame(
        solution, *rows, length, held, basis.place, basis.there, basis.gram, basis.factor,
        basis.least, basis.dual, basis.theta2, sigma, _spread(basis), obstacle,
    )  # fmt: skip


class ScoreRows(NamedTuple):
    """The scores behind rows; B trials of M rows."""

    gap: Tensor  # (B, M), Δ
    sequence: Tensor  # int (B, M)
    sequences: int  # N, the number of sequences
    log_kappa: Tensor  # (B, M), log −ℓ'(γ_iα)
    bend: Tensor  # (B, M), Λ_i
    weight: Tensor  # (B, M), log of how many copies the other token has, over the chosen one

    def per_sequence(self, values: Tensor) -> Tensor:
        """Sum ``(B, M)`` over the rows of a sequence, for each of them, ``(B, M)``."""
        sums = values.new_zeros(len(values), self.sequences).scatter_add(-1, self.sequence, values)
        return sums.gather(-1, self.sequence)


def score_rows(goal: Objective, problem: MarginProblem, weight: Tensor, doubt: Tensor) -> ScoreRows:
    """Compute the scores behind the rows of a selection; see :func:`build_frame`."""
    assert goal.gamma is not None
    assert goal.rise is not None
    B, N, T = goal.gamma.shape
    device, names = goal.gamma.device, problem.names
    sequence = torch.arange(N, device=device).repeat_interleave(T - 1).expand(B, -1)
    own, other = (x.expand(B, N * (T - 1)).clamp_min(0) for x in (names.chosen, names.other))
    rise = goal.rise.flatten(1)
    gap = rise.gather(-1, sequence * T + own) - rise.gather(-1, sequence * T + other)
    # A score that is lower by rounding only is not lower.
    gap = gap.where(gap > doubt.gather(-1, sequence), gap.clamp_max(0.0))
    level = goal.gamma.flatten(1).gather(-1, sequence * T + own)
    seen = goal.gamma.masked_fill(goal.flat.unseen(), torch.nan)
    low, high = seen.nan_to_num(torch.inf).amin(-1), seen.nan_to_num(-torch.inf).amax(-1)
    bend = goal.loss.bend(low, high).gather(-1, sequence)
    copies = weight.flatten(1).gather(-1, sequence * T + other)
    return ScoreRows(gap, sequence, N, goal.loss.log_slope(level), bend, copies)


def _support(solution: Solution) -> Tensor:
    """Find the rows that hold W_mm: tight, with a multiplier, bool ``(B, M)``."""
    return solution.support & (solution.dual > 0) & solution.optimal.unsqueeze(-1)


@final
@dataclass(frozen=True, eq=False)
class _Basis:
    """The support rows and what follows from their Gram matrix."""

    place: Tensor
    there: Tensor
    gram: Tensor
    factor: Tensor
    least: Tensor
    dual: Tensor
    theta2: Tensor
    unit: Tensor  # (B, s), lengths


def _basis(problem: MarginProblem, held: Tensor, length: Tensor) -> _Basis:
    count = max(int(held.sum(-1).amax()) if held.numel() else 0, 1)
    place = held.to(torch.int8).argsort(dim=-1, descending=True, stable=True)[..., :count]
    there = held.gather(-1, place)
    sides = []
    for side in (problem.left, problem.right):
        some = side.gather(-2, place.unsqueeze(-1).expand(*place.shape, side.shape[-1]))
        sides.append(side @ some.mT)
    gram = (sides[0] * sides[1]).where(there.unsqueeze(-2), 0.0)
    unit = length.gather(-1, place).where(there, 1.0)
    own = gram.gather(-2, place.unsqueeze(-1).expand(*place.shape, count))
    own = own.where(there.unsqueeze(-1), 0.0) / (unit.unsqueeze(-1) * unit.unsqueeze(-2))
    own = own + torch.diag_embed((~there).to(own.dtype))
    factor, failed = torch.linalg.cholesky_ex(own)
    least = torch.linalg.eigvalsh(own)[..., 0].masked_fill(failed > 0, 0.0)
    right = (1.0 / unit).where(there, 0.0).unsqueeze(-1)
    scaled = torch.cholesky_solve(right, factor)
    scaled = scaled + torch.cholesky_solve(right - own @ scaled, factor)
    dual = scaled[..., 0] / unit
    return _Basis(place, there, gram, factor, least, dual, 1.0 / dual.sum(-1), unit)


def _margins(basis: _Basis, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Compute σ and the bound of its error, ``(B, M)`` each."""
    sigma = (basis.gram @ basis.dual.unsqueeze(-1))[..., 0]
    size = (basis.gram.abs() @ basis.dual.abs().unsqueeze(-1))[..., 0]
    condition = (1.0 / basis.least).clamp_max(1e30).unsqueeze(-1)
    unsure = _UNITS * torch.finfo(sigma.dtype).eps * condition * size
    return sigma.where(mask, 1.0), unsure.where(mask, 0.0)


def _spread(basis: _Basis) -> Tensor:
    own = basis.gram.gather(
        -2, basis.place.unsqueeze(-1).expand(*basis.place.shape, basis.place.shape[-1])
    )
    both = basis.there.unsqueeze(-1) & basis.there.unsqueeze(-2)
    root = basis.dual.clamp_min(0.0).sqrt()
    inner = (own - basis.theta2[:, None, None]) * root.unsqueeze(-1) * root.unsqueeze(-2)
    inner = inner.where(both, 0.0).nan_to_num(0.0, 0.0, 0.0)
    largest = torch.linalg.eigvalsh(inner)[..., -1].clamp_min(0.0)
    size = inner.abs().amax((-2, -1)) * inner.shape[-1]
    return largest + _UNITS * torch.finfo(inner.dtype).eps * size


def _obstacle(
    solution: Solution,
    basis: _Basis,
    held: Tensor,
    rows: ScoreRows,
    sigma: Tensor,
    unsure: Tensor,
) -> Tensor:
    """Find what stands against the theorem, the first in the order of :class:`Obstacle`."""
    mask, tight = solution.problem.mask, solution.support
    high = mask & (rows.gap <= 0)
    below = mask & ~held & (sigma - 1.0 < unsure) & ~(tight & (sigma - 1.0 > -unsure))
    weak = (basis.dual * basis.unit**2 <= 0) & basis.there
    found = {
        Obstacle.LOSS: (torch.isinf(rows.bend) & mask).any(-1),
        Obstacle.LEVEL: (high & tight & ~held).any(-1),
        Obstacle.SUPPORT: (high & held).any(-1),
        Obstacle.DEPENDENT: (basis.least * _CONDITION < 1.0) | weak.any(-1),
        Obstacle.DOUBTFUL: (solution.doubtful & mask).any(-1) | below.any(-1),
        Obstacle.NO_DIRECTION: ~solution.optimal,
    }
    code = torch.zeros(len(mask), dtype=torch.int64, device=mask.device)
    for obstacle, stands in found.items():
        code = code.masked_fill(stands, int(obstacle))
    return code
