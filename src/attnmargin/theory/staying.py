"""When descent can no longer leave the optimal tokens.

If the optimal token of sequence i has at most half of the attention, its loss is at least
``ℓ((γ_i1 + γ_i2)/2)``, with the best score γ_i1 and the second best γ_i2. So once

    L(W) − L⋆  <  min_i [ℓ((γ_i1 + γ_i2)/2) − ℓ(γ_i1)] / n,

the optimal tokens have the majority everywhere, and keep it as long as the loss does not rise.
"""

import torch
from torch import Tensor

from attnmargin.attention import Objective
from attnmargin.training.rates import excess

# Doublings and halvings of the length of a step.
_DOUBLINGS, _HALVINGS = 60, 40


def staying_loss(goal: Objective) -> Tensor:
    """The excess loss below which no descent leaves the optimal tokens, ``(B,)``."""
    assert goal.gamma is not None
    gamma, hidden = goal.gamma, goal.flat.hidden
    if hidden is not None:
        gamma = gamma.masked_fill(hidden, -torch.inf)
    if gamma.shape[-1] == 1:
        return torch.full_like(gamma[:, 0, 0], torch.inf)
    first, second = gamma.topk(2, dim=-1).values.unbind(-1)
    half = goal.loss.value(0.5 * (first + second)) - goal.loss.value(first)
    half = half.where(torch.isfinite(second), torch.inf)
    return half.amin(-1) / gamma.shape[-2]


def excess_loss(goal: Objective, logits: Tensor) -> Tensor:
    """``L − L⋆`` at logits ``(B, N, T)``, shape ``(B,)``."""
    slope = goal.slope(logits)
    return (excess(goal, slope) * slope.log_scale.exp())[:, 0, 0]


def first_step(goal: Objective, logits: Tensor, usable: Tensor) -> Tensor:
    """A length r with ``L(r V) − L⋆`` below the level of :func:`staying_loss`, ``(B,)``.

    V is a direction with logits ``(B, N, T)`` that separates the optimal tokens where usable; it
    is infinite elsewhere. The length is the least one that bisection finds.
    """
    level = staying_loss(goal)
    high = torch.ones_like(level)
    for _ in range(_DOUBLINGS):
        above = usable & ~(excess_loss(goal, high[:, None, None] * logits) < level)
        if not bool(above.any()):
            break
        high = high.where(~above, 2.0 * high)
    low = torch.zeros_like(high)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        below = excess_loss(goal, middle[:, None, None] * logits) < level
        low, high = low.where(below, middle), high.where(~below, middle)
    return high.where(usable, torch.inf)
