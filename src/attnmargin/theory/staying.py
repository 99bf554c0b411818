"""When descent can no longer leave the optimal tokens.

If a share q of the attention of sequence i is not on its optimal token, its loss is at least
``ℓ(γ_i1 − q (γ_i1 − γ_i2))``, with the best score γ_i1 and the second best γ_i2. So once

    L(W) − L⋆  <  min_i [ℓ(γ_i1 − q (γ_i1 − γ_i2)) − ℓ(γ_i1)] / n,

every optimal token has more than 1 − q of the attention, and keeps it as long as the loss does not
rise. With q = 1/2 that is the majority. With ``q = γ_gap / 4ΓA`` (paper A, (53) and (58) for W_mm)
the gradient points along W_mm from there on: descent with steps of at most 1/L_W cannot stop, and
turns towards W_mm.
"""

import torch
from torch import Tensor

from attnmargin.attention.softmax import Objective
from attnmargin.training.rates import excess

# Doublings and halvings of the length of a step.
_DOUBLINGS, _HALVINGS = 60, 40


def staying_loss(goal: Objective, q: Tensor | float = 0.5) -> Tensor:
    """Compute the excess loss below which optimal tokens keep more than 1 − q, ``(B,)``."""
    assert goal.gamma is not None
    gamma, hidden = goal.gamma, goal.flat.hidden
    if hidden is not None:
        gamma = gamma.masked_fill(hidden, -torch.inf)
    if gamma.shape[-1] == 1:
        return torch.full_like(gamma[:, 0, 0], torch.inf)
    first, second = gamma.topk(2, dim=-1).values.unbind(-1)
    share = torch.as_tensor(q, dtype=gamma.dtype, device=gamma.device).reshape(-1, 1)
    gap = (first - second).where(torch.isfinite(second), 0.0)
    cost = goal.loss.value(first - share * gap) - goal.loss.value(first)
    return cost.where(torch.isfinite(second), torch.inf).amin(-1) / gamma.shape[-2]


def excess_loss(goal: Objective, logits: Tensor) -> Tensor:
    """Compute ``L − L⋆`` at logits ``(B, N, T)``, shape ``(B,)``."""
    slope = goal.slope(logits)
    return (excess(goal, slope) * slope.log_scale.exp())[:, 0, 0]


def staying_step(goal: Objective, logits: Tensor, usable: Tensor, q: Tensor) -> Tensor:
    """Find a length r with ``L(r V) − L⋆`` below :func:`staying_loss`, ``(B,)``.

    V is a direction with logits ``(B, N, T)`` that separates the optimal tokens where usable; r is
    infinite elsewhere, and where none was found. It is the least one that bisection finds.
    """
    level = staying_loss(goal, q)
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
    reached = excess_loss(goal, high[:, None, None] * logits) < level
    return high.where(usable & reached, torch.inf)
