"""Theorem A: below the loss of every other selection, descent ends in the best tokens.

Let the SVM of the best tokens be feasible, and ℓ strictly decreasing. The least loss of any other
selection is ``L₂ = L⋆ + min_i [ℓ(γ_i2) − ℓ(γ_i1)] / n``. If ``L(W) < L₂``, then gradient flow from
W, and steps along the gradient of length at most ℓ_A with an infinite sum, end in the direction of
``W_mm``. ℓ_A is the root of

    (e^{bℓ} − 1 − bℓ) / ((1 + λ) ℓ) = Θ,   b = (1 + λ) B.

Where tokens tie for the best score, γ_i2 is the best score below theirs, and ``1/Θ`` the length of
the shortest W that prefers them to all others; then their common attention tends to one.
"""

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from attnmargin.attention.softmax import Objective
from attnmargin.margin.solution import Solution
from attnmargin.theory.guarantees.case import Case
from attnmargin.theory.guarantees.tube import Tube
from attnmargin.theory.staying import best_and_gap, excess_loss, staying_loss

# What is left for rounding: sums of positive terms, each exact up to some units in the last place.
_SAFE = 1.0 - 1e-9
_HALVINGS = 80


@final
@dataclass(frozen=True, eq=False)
class Level:
    """What the loss at a point proves; tensors ``(B,)``."""

    proved: Tensor  # bool
    longest: Tensor  # ℓ_A
    share: Tensor  # least attention of a best token, or of tied ones together, for ever
    gradient: Tensor  # bound of ‖∇L‖ for ever
    tube: Tube  # in which W stays, with steps of at most the given length

    @property
    def rate(self) -> Tensor:
        """The largest rate of plain descent that is covered."""
        return self.longest / self.gradient


def level_at(case: Case, logits: Tensor, W: Tensor, step: Tensor) -> Level:
    """Check Theorem A.

    Args:
        case: the instances.
        logits: ``(B, N, T)`` of the point, those of copies together.
        W: the point, ``(B, d, d)``.
        step: the longest step to come, ``(B,)``.
    """
    goal, solution = case.goal, case.of_best
    first, gap = best_and_gap(goal, case.doubt)
    several = torch.isfinite(gap)
    excess, level = excess_loss(goal, logits), staying_loss(goal, 1.0, case.doubt)
    bound = _largest_drop(goal, first, gap.where(several, 0.0), excess * gap.shape[-1])
    away = (bound / gap).where(several, 0.0).clamp_max(1.0)
    # s_i D_i ≤ D̂_i, and s (1 − s) ≤ 1/4 times the range of the scores
    pull = torch.minimum(bound, 0.25 * _range(goal))
    bend = goal.loss.bend(first - bound, first).where(several, 0.0)
    bent = (bend * pull).where(several, 0.0).amax(-1)
    wide = _widest(goal, solution, away.where(~case.tied.unsqueeze(-1), torch.inf))
    theta = (1.0 / solution.certificate.upper).to(wide)
    rises = goal.loss.log_slope(first - bound).exp()
    known = torch.isfinite(bent) & solution.feasible
    proved = known & (excess < _SAFE * level)
    kappa = torch.maximum(rises, goal.loss.log_slope(first).exp())
    length = solution.problem.lengths().where(solution.problem.mask, 0.0)
    longest_row = length.amax(-1) if length.shape[-1] else torch.zeros_like(theta)
    return Level(
        proved,
        _SAFE * _longest(theta, bent, wide),
        1.0 - away.amax(-1),
        (kappa * pull).mean(-1) * longest_row,
        _tube(solution, W, _entropy(case, first, gap, bound), step * longest_row),
    )


def _entropy(case: Case, first: Tensor, gap: Tensor, bound: Tensor) -> Tensor:
    """Compute K̂, ``(B,)``: log of the number of rows times the largest ratio of their weights."""
    goal, mask = case.goal, case.of_best.problem.mask
    slopes = goal.loss.log_slope(first - bound), goal.loss.log_slope(first)
    least, most = torch.minimum(*slopes), torch.maximum(*slopes)
    several = torch.isfinite(gap)
    high = (most + _range(goal).log()).where(several, -torch.inf).amax(-1)
    stays = (1.0 - bound / gap).clamp_min(0.0).log() + (gap - bound).clamp_min(0.0).log()
    low = (least + stays).where(several, torch.inf).amin(-1)
    count = mask.sum(-1).clamp_min(1).to(high.dtype).log()
    copies = 2.0 * case.log_count.amax((-2, -1))  # of a token, over those of the best one
    return (count + high - low + copies).nan_to_num(nan=torch.inf)


def _tube(solution: Solution, W: Tensor, entropy: Tensor, jump: Tensor) -> Tube:
    """The tube ``‖W_⊥‖² ≤ ‖W_⊥(W₀)‖² + (2K̂ + ℓ max ‖A_j‖)(g − g₀) / Θ²``."""
    length = solution.certificate.upper.to(W)
    theta2 = length**-2
    g = theta2 * (W * solution.W.nan_to_num(nan=0.0)).sum((-2, -1))
    across = (W.flatten(1).norm(dim=-1) ** 2 - g**2 / theta2).clamp_min(0.0).sqrt()
    growth = 0.5 * (2.0 * entropy + jump) / theta2
    return Tube(g, theta2.sqrt(), torch.zeros_like(g), across, growth)


def _range(goal: Objective) -> Tensor:
    assert goal.rise is not None
    unseen = goal.flat.unseen()
    high = goal.rise.masked_fill(unseen, -torch.inf).amax(-1)
    return high - goal.rise.masked_fill(unseen, torch.inf).amin(-1)


def _largest_drop(goal: Objective, first: Tensor, gap: Tensor, rise: Tensor) -> Tensor:
    """Find the D̂_i with ``ℓ(γ_i1 − D̂_i) − ℓ(γ_i1) = n (L − L⋆)``, from above, at most the gap."""
    low, high = torch.zeros_like(gap), gap.clone()
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        inside = goal.loss.rise(first, middle) <= rise.unsqueeze(-1)
        low, high = low.where(~inside, middle), high.where(inside, middle)
    return high


def _widest(goal: Objective, solution: Solution, away: Tensor) -> Tensor:
    """Compute B, ``(B,)``: how far logits of a sequence move apart in a step of length one."""
    X, z = goal.flat.relative, goal.flat.z
    unseen = goal.flat.unseen().unsqueeze(-1)
    seen = X.masked_fill(unseen, 0.0)
    apart = torch.cdist(seen, seen, compute_mode="donot_use_mm_for_euclid_dist")
    hidden = unseen | unseen.mT
    apart = apart.masked_fill(hidden, 0.0).amax((-2, -1)) * z.norm(dim=-1)
    B, N = away.shape
    length = solution.problem.lengths().where(solution.problem.mask, 0.0)
    length = length.reshape(B, N, length.shape[-1] // N)
    own = length.amax(-1) if length.shape[-1] else torch.zeros_like(away)
    around = ((1.0 + away) * own).nan_to_num(nan=torch.inf)
    return torch.minimum(apart, around).amax(-1)


def _longest(theta: Tensor, bent: Tensor, wide: Tensor) -> Tensor:
    """Find ℓ_A from below; infinite if no step moves a logit."""
    slope = 1.0 + bent
    b = slope * wide
    low, high = torch.zeros_like(b), 4.0 * slope * theta / b**2 + 4.0 / b
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        x = b * middle
        good = torch.expm1(x) - x <= theta * slope * middle
        low, high = low.where(~good, middle), high.where(good, middle)
    return low.where(b > 0, torch.inf)
