"""Linear classifiers of several classes as attention, so that training is exact in the logarithm.

The classes are the tokens, one unit vector each, and the features the queries: the softmax of
attention is that of the classifier, and the loss "log" of the score one at the label is the
cross-entropy.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any, final

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from attnmargin.attention.heads import ScoreHead
from attnmargin.base.progress import Progress
from attnmargin.base.seeds import seed_of
from attnmargin.data.attention_data import AttentionData
from attnmargin.margin.classes import class_problem
from attnmargin.margin.norms import as_norm
from attnmargin.solvers.entry import solve
from attnmargin.training import train
from attnmargin.training.methods import Method


@final
@dataclass(frozen=True)
class Classes:
    """Examples of a linear classifier: features ``(*B, n, d)`` and labels ``(*B, n)``."""

    x: Tensor
    y: Tensor
    count: int

    @property
    def data(self) -> AttentionData:
        """The classifier as attention; W is ``(d, d)``, zero in the rows beyond the classes."""
        unit = torch.eye(self.x.shape[-1], dtype=self.x.dtype)[: self.count]
        return AttentionData(unit.expand(*self.x.shape[:-1], *unit.shape), self.x)

    @property
    def head(self) -> ScoreHead:
        """The score of the label is one, that of the other classes zero."""
        return ScoreHead(one_hot(self.y, self.count).to(self.x))

    def margin(self, W: Tensor, norm: str) -> Tensor:
        """Compute ``min (w_y − w_c)·x / ‖W‖``, ``(R, *B)``; W is ``(R, *B, d, d)``."""
        W = W[..., : self.count, :]
        logits = self.x @ W.mT
        y = self.y.expand(logits.shape[:-1]).unsqueeze(-1)
        own = logits.gather(-1, y)
        other = logits.scatter(-1, y, -torch.inf).amax(-1, keepdim=True)
        size = as_norm(norm).value(W)
        return (own - other).amin((-2, -1)) / size.where(size > 0, 1.0)

    def train(self, method: Method, progress: Progress | None = None, **options: Any) -> Any:
        """Train the classifier by its cross-entropy."""
        return train(self.data, method=method, head=self.head, loss="log", progress=progress,
                     **options)  # fmt: skip


@cache
def largest_margins(trials: int, seed: int, norm: str, per: int) -> Tensor:
    """Compute the largest margins of :func:`random_classes` in a norm, ``(trials,)``.

    One by one: for large problems a batch is no faster.
    """
    classes = random_classes(trials, seed, per=per)
    problem = class_problem(classes.x, classes.y, classes.count)
    return torch.stack([solve(problem[k], norm).raise_for_status().margin for k in range(trials)])


def random_classes(trials: int, seed: int = 0, *, count: int = 15, d: int = 25, per: int = 10,
                   noise: float = 0.1) -> Classes:  # fmt: skip
    """Draw class means on the unit sphere, and ``per`` examples around each."""
    drawn = []
    for trial in range(trials):
        generator = torch.Generator().manual_seed(seed_of("N:classes", trial, base=seed))
        mean = torch.randn(count, d, generator=generator, dtype=torch.float64)
        mean = (mean / mean.norm(dim=-1, keepdim=True)).repeat_interleave(per, 0)
        drawn.append(mean + noise * torch.randn(mean.shape, generator=generator).double())
    y = torch.arange(count).repeat_interleave(per)
    return Classes(torch.stack(drawn), y.expand(trials, -1), count)
