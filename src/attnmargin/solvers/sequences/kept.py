"""The working set: rows of a source that are built, and where they come from."""

from dataclasses import dataclass, fields, replace
from typing import Any, final

import torch
from torch import Tensor

from attnmargin.margin.problem import MarginProblem, RowNames, margin_problem

# Rows of one query in a group. Larger groups save more of the work that each costs, and pad more.
_GROUP = 4


@final
@dataclass(frozen=True)
class Kept:
    """Rows ``left rightᵀ``, by their keys: numbers that every pass gives to the same rows."""

    key: Tensor  # int64 (m,)
    left: Tensor  # (m, d)
    right: Tensor  # (m, d)
    equality: Tensor  # bool (m,): = 0, else ≥ 1
    names: Tensor  # int64 (m, 4): sequence, query, chosen and other token

    def __len__(self) -> int:
        return len(self.key)

    def __getitem__(self, index: Any) -> "Kept":
        """Return some of the rows."""
        return Kept(*(getattr(self, field.name)[index] for field in fields(self)))

    def problem(self) -> MarginProblem:
        """Build the problem of these rows, with their names."""
        bound = (~self.equality).to(self.left.dtype)
        problem = margin_problem(self.left, self.right, bound, self.equality)
        return replace(problem, names=RowNames(*self.names.T.contiguous()))

    def grouped(self) -> tuple[MarginProblem, Tensor]:
        """Build the same problem with padding, so that rows share their queries.

        Returns the problem, and the places of the rows in it, ``(m,)``.
        """
        _, owner, count = torch.unique_consecutive(
            self.names[:, :2], return_inverse=True, return_counts=True, dim=0
        )
        groups = (count + _GROUP - 1) // _GROUP
        rank = torch.arange(len(self)) - (count.cumsum(0) - count)[owner]
        place = (groups.cumsum(0) - groups)[owner] * _GROUP + rank
        size = int(groups.sum()) * _GROUP
        left, bound = self.left.new_zeros(size, self.left.shape[1]), self.left.new_zeros(size)
        query = self.left.new_zeros(size // _GROUP, self.right.shape[1])
        equality, mask = (torch.zeros(size, dtype=torch.bool) for _ in range(2))
        left[place], query[place // _GROUP] = self.left, self.right
        bound[place], equality[place] = (~self.equality).to(bound.dtype), self.equality
        mask[place] = True
        return margin_problem(left, query, bound, equality, mask), place


def no_rows(d: int) -> Kept:
    """Return a working set without rows, for tokens of width d."""
    factor = torch.empty(0, d, dtype=torch.float64)
    key, names = torch.empty(0, dtype=torch.int64), torch.empty(0, 4, dtype=torch.int64)
    return Kept(key, factor, factor, torch.empty(0, dtype=torch.bool), names)


def joined(first: Kept, second: Kept) -> Kept:
    """Put rows after others."""
    names = (field.name for field in fields(Kept))
    return Kept(*(torch.cat((getattr(first, name), getattr(second, name))) for name in names))
