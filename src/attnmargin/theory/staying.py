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

# Doublings and halvings of the length of a step.
_DOUBLINGS, _HALVINGS = 60, 40


def staying_loss(goal: Objective, q: Tensor | float = 0.5, doubt: Tensor | None = None) -> Tensor:
    """Compute the excess loss below which optimal tokens keep more than 1 − q, ``(B,)``.

    With ``doubt``, the tokens that tie for the best score keep it together.
    """
    first, gap = best_and_gap(goal, doubt)
    share = torch.as_tensor(q, dtype=gap.dtype, device=gap.device).reshape(-1, 1)
    cost = goal.loss.rise(first, share * gap.where(torch.isfinite(gap), 0.0))
    return cost.where(torch.isfinite(gap), torch.inf).amin(-1) / gap.shape[-1]


def best_and_gap(goal: Objective, doubt: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Compute γ_i1, and γ_i1 − γ_i2, infinite if there is no second token, ``(B, N)`` each.

    Scores within the distance ``doubt``, ``(B, N)``, of the best one count as the best.
    """
    assert goal.gamma is not None
    assert goal.rise is not None
    unseen = goal.flat.unseen()
    best = goal.gamma.masked_fill(unseen, -torch.inf).argmax(-1, keepdim=True)
    below = (goal.rise.gather(-1, best) - goal.rise).masked_fill(unseen, torch.inf)
    if doubt is not None:
        below = below.masked_fill(below <= doubt.unsqueeze(-1), torch.inf)
    gap = below.scatter(-1, best, torch.inf).amin(-1).clamp_min(0.0)
    return goal.gamma.gather(-1, best)[..., 0], gap


def drops(goal: Objective, logits: Tensor) -> Tensor:
    """Compute ``D_i = Σ_t s_it (γ_i1 − γ_it)``, ``(B, N)``: a sum without cancellation."""
    assert goal.gamma is not None
    assert goal.rise is not None
    unseen = goal.flat.unseen()
    best = goal.gamma.masked_fill(unseen, -torch.inf).argmax(-1, keepdim=True)
    below = (goal.rise.gather(-1, best) - goal.rise).masked_fill(unseen, 0.0)
    return (torch.softmax(logits, -1) * below).sum(-1).clamp_min(0.0)


def excess_loss(goal: Objective, logits: Tensor) -> Tensor:
    """Compute ``L − L⋆`` at logits ``(B, N, T)``, shape ``(B,)``."""
    return goal.loss.rise(best_and_gap(goal)[0], drops(goal, logits)).mean(-1)


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
