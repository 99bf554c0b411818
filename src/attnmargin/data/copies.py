"""Equal tokens of a sequence, such as a word that occurs twice, as one token with a weight.

Equal tokens have equal logits for every W, and share what attention they get: c copies are one
token whose logit is larger by log c.
"""

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from attnmargin.data.attention_data import AttentionData


@final
@dataclass(frozen=True, eq=False)
class Copies:
    """Data without copies, and how many there were; tokens are those of the given data."""

    data: AttentionData  # visible are the first ones of equal tokens
    first: Tensor  # int (*B, n, T) or (*B, n, K, T): the first visible token that equals this one,
    # or itself if none does
    count: Tensor  # shaped alike: how many visible tokens equal this one; 0 where hidden

    @property
    def any(self) -> Tensor:
        """Whether a query sees a token twice, bool ``(*B, n)`` or ``(*B, n, K)``."""
        return (self.count > 1).any(-1)


def merge_copies(data: AttentionData) -> Copies:
    """Keep the first of equal tokens of a sequence.

    Example:
        >>> import attnmargin as am
        >>> from attnmargin.data.copies import merge_copies
        >>> found = merge_copies(am.AttentionData([[[1.0], [2.0], [1.0]]], [[1.0]]))
        >>> found.first.tolist(), found.count.tolist(), found.data.mask.tolist()
        ([[0, 1, 0]], [[2, 1, 2]], [[True, True, False]])
    """
    several = data.z.ndim == data.X.ndim
    kind = _kinds(data.X)
    visible = torch.ones_like(kind, dtype=torch.bool) if data.mask is None else data.mask
    if several:
        queries = data.z.shape[-2]
        kind = kind.unsqueeze(-2).expand(*kind.shape[:-1], queries, data.T)
        visible = visible if visible.ndim == kind.ndim else visible.unsqueeze(-2)
    elif visible.ndim > kind.ndim:
        visible = visible.squeeze(-2)
    kind, visible = torch.broadcast_tensors(kind, visible)
    place = torch.arange(data.T, device=kind.device).expand_as(kind)
    seen = place.where(visible, data.T)
    first = torch.full_like(seen, data.T).scatter_reduce(-1, kind, seen, "amin").gather(-1, kind)
    first = first.where(first < data.T, place)
    count = torch.zeros_like(seen).scatter_add(-1, kind, visible.long()).gather(-1, kind)
    count = count.where(visible, 0)
    if not bool((count > 1).any()):
        return Copies(data, first, count)
    shown = visible & (first == place)
    return Copies(AttentionData(data.X, data.z, data.y, data.v, shown), first, count)


def _kinds(X: Tensor) -> Tensor:
    """Number the different tokens of each sequence, int ``(*B, n, T)``, equal ones alike."""
    # Sorted by two random sums, equal tokens are neighbours.
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(X.shape[-1], 2, generator=generator, dtype=torch.float64).to(X.device)
    first, second = (X.double() @ weight).unbind(-1)
    order = second.argsort(dim=-1, stable=True)
    order = order.gather(-1, first.gather(-1, order).argsort(dim=-1, stable=True))
    ordered = X.gather(-2, order.unsqueeze(-1).expand(X.shape))
    new = (ordered[..., 1:, :] != ordered[..., :-1, :]).any(-1).long().cumsum(-1)
    number = torch.cat((torch.zeros_like(order[..., :1]), new), -1)
    return torch.empty_like(order).scatter(-1, order, number)
