"""What a head selects: the top token of every query, its share, and its lead over the rest."""

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from attnmargin.models.head import Head

# Tokens that agree to so many parts of the largest entry count as equal.
_GRID = 2e4


@final
@dataclass(frozen=True, eq=False)
class Queries:
    """Queries with at least two tokens to choose from; every tensor has shape ``(N,)``."""

    text: Tensor
    position: Tensor
    token: Tensor  # the token with the largest logit
    share: Tensor  # of its attention, float64
    gap: Tensor  # its logit minus the next one
    entropy: Tensor  # of the attention, over the log of the number of visible tokens

    def __len__(self) -> int:
        return len(self.text)

    def __getitem__(self, places: Tensor) -> "Queries":
        own = (self.text, self.position, self.token, self.share, self.gap, self.entropy)
        return Queries(*(x[places] for x in own))


def selections(head: Head) -> Queries:
    """Find what every query of a head selects.

    Example:
        >>> import attnmargin as am
        >>> head = am.models.Head([[3.0]], [[1.0]], [[1.0], [0.0], [-1.0]])
        >>> own = am.models.selections(head)
        >>> own.token.tolist(), [round(float(s), 2) for s in own.share]
        ([0, 0, 2], [0.95, 0.33, 0.95])
    """
    parts = [_of_text(head, i) for i in range(head.n)]
    return Queries(*(torch.cat(own) for own in zip(*parts, strict=True)))


def widest(head: Head, queries: Queries, most: int) -> Queries:
    """Return up to ``most`` queries, the widest gap first, no two of which see the same tokens.

    In a causal model, texts that begin alike have the same first queries; they count once.
    """
    order = queries.gap.argsort(descending=True, stable=True)
    grid = (head.hidden * (_GRID / head.hidden.abs().max().clamp_min(1e-30))).round().short().cpu()
    whole: dict[int, int] = {}
    kept: list[int] = []
    seen: set[tuple[int, int]] = set()
    for k in order.tolist():
        i, t = int(queries.text[k]), int(queries.position[k])
        end = t + 1 if head.causal else head.T
        own = hash(grid[i, :end].numpy().tobytes()) if head.causal or i not in whole else whole[i]
        whole[i] = own
        if (t, own) not in seen:
            seen.add((t, own))
            kept.append(k)
        if len(kept) == most:
            break
    return queries[torch.tensor(kept, dtype=torch.int64, device=order.device)]


def _of_text(head: Head, i: int) -> tuple[Tensor, ...]:
    logits, seen = head.logits(i), head.visible(i)
    count = seen.sum(-1)
    position = (count > 1).nonzero().flatten()
    if not len(position):
        none, empty = position.new_zeros(0), logits.new_zeros(0)
        return none, none, none, empty, empty, empty
    logits, count = logits[position], count[position]
    best = logits.topk(2, -1)
    shares = torch.softmax(logits, -1)
    entropy = torch.special.entr(shares).sum(-1) / count.double().log()
    return (
        torch.full_like(position, i),
        position,
        best.indices[:, 0],
        shares.gather(-1, best.indices[:, :1]).squeeze(-1),
        best.values[:, 0] - best.values[:, 1],
        entropy,
    )
