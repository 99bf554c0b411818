"""How far the best score of a sequence is ahead."""

import torch
from torch import Tensor


def best_gap(gamma: Tensor) -> Tensor:
    """Subtract the second best score from the best, ``(*B, T)`` to ``(*B,)``; ∞ with one token.

    >>> best_gap(torch.tensor([[2.0, 6.0, 5.0]])).tolist()
    [1.0]
    """
    if gamma.shape[-1] == 1:
        return torch.full_like(gamma[..., 0], torch.inf)
    best = gamma.topk(2, dim=-1).values
    return best[..., 0] - best[..., 1]
