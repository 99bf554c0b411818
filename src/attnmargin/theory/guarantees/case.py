"""Instances whose runs are to be proved: one batch dimension, float64, no token twice."""

from dataclasses import dataclass
from functools import cached_property
from typing import final

import torch
from torch import Tensor

from attnmargin.attention.losses import Loss
from attnmargin.attention.score import best_tokens, optimal_tokens, value_rounding
from attnmargin.attention.softmax import Objective, objective
from attnmargin.data.attention_data import AttentionData
from attnmargin.data.copies import merge_copies
from attnmargin.margin.builders import set_problem, token_problem
from attnmargin.margin.implied import implied_norm
from attnmargin.margin.solution import Solution
from attnmargin.solvers.entry import solve
from attnmargin.theory.guarantees.cone import Direction
from attnmargin.theory.guarantees.frame import Frame


@final
@dataclass(eq=False)
class Case:
    """B instances, their loss, and what their copies of tokens weigh."""

    data: AttentionData  # batch (B,); equal tokens of a sequence are hidden but for the first
    loss: str | Loss
    log_count: Tensor  # (B, N, T): log of the number of copies
    first: Tensor  # int (B, n, T) or (B, n, K, T): the token that stands for equal ones
    p: float = 2.0  # of mirror descent
    kept: tuple[Tensor, Frame | Direction] | None = None  # the last selection, what follows from it

    @cached_property
    def goal(self) -> Objective:
        """The loss of a linear head."""
        return objective(self.data, "linear", self.loss)

    @cached_property
    def doubt(self) -> Tensor:
        """Within which distance scores of a sequence count as equal, ``(B, N)``."""
        assert self.data.v is not None
        flat = self.goal.flat
        return value_rounding(flat.relative, self.data.v.expand(len(flat.X), -1)).amax(-1)

    @cached_property
    def best(self) -> Tensor:
        """The tokens of largest score, int ``(B, n)`` or ``(B, n, K)``."""
        return optimal_tokens(self.data)

    @cached_property
    def sets(self) -> Tensor:
        """All visible tokens with the largest score, bool ``(B, N, T)``."""
        return best_tokens(self.data).reshape(*self.log_count.shape)

    @cached_property
    def tied(self) -> Tensor:
        """Where several tokens of a sequence have its largest score, bool ``(B,)``."""
        return (self.sets.sum(-1) > 1).any(-1)

    @cached_property
    def of_best(self) -> Solution:
        """Their direction; where tokens tie, the shortest W that prefers them to all others."""
        if not bool(self.tied.any()):
            return self.solve(self.best)
        data, sets = self.data, self.sets.reshape(*self.best.shape, -1)
        return solve(set_problem(data.X, data.z, sets, data.mask))

    def solve(self, selection: Tensor) -> Solution:
        """Find the direction of a selection, in the norm that descent implies."""
        problem = token_problem(self.data.X, self.data.z, selection, self.data.mask)
        return solve(problem, implied_norm("W", self.p))

    def logits(self, W: Tensor) -> Tensor:
        """Compute logits at W ``(B, d, d)``, those of copies together, ``(B, N, T)``."""
        return self.goal.flat.logits(W) + self.log_count

    def selected(self, logits: Tensor) -> Tensor:
        """Find the most likely tokens, int ``(B, n)`` or ``(B, n, K)``."""
        return self.goal.flat.shaped(logits.argmax(-1))

    def merged(self, selection: Tensor) -> Tensor:
        """Replace copies in a selection by the tokens that stand for them."""
        return self.first.gather(-1, selection.unsqueeze(-1))[..., 0]

    def take(self, rows: Tensor) -> "Case":
        """Take some instances, int ``(B',)``."""
        if len(rows) == len(self.first):
            return self
        part = Case(self.data[rows], self.loss, self.log_count[rows], self.first[rows], self.p)
        if "of_best" in self.__dict__:
            part.__dict__["of_best"] = self.of_best[rows]
        return part


def build_case(data: AttentionData, loss: str | Loss, p: float = 2.0) -> Case:
    """Flatten the batch, widen to float64, and merge equal tokens."""
    found = merge_copies(_widened(data.flatten()))
    count = found.count.flatten(1, -2)
    return Case(found.data, loss, count.clamp_min(1).to(torch.float64).log(), found.first, p)


def _widened(data: AttentionData) -> AttentionData:
    """Return the data in float64, with at least two tokens a sequence."""
    X, mask = data.X.double(), data.mask
    assert data.v is not None
    if data.T == 1:  # a second token that is hidden: its row does not exist
        seen = torch.ones_like(X[..., 0], dtype=torch.bool) if mask is None else mask
        mask = torch.cat((seen, torch.zeros_like(seen)), -1)
        X = torch.cat((X, torch.zeros_like(X)), -2)
    y = None if data.y is None else data.y.double()
    return AttentionData(X, data.z.double(), y, data.v.double(), mask)
