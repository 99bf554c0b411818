"""The working set: rows of a source that are built, and where they come from."""

from dataclasses import dataclass, fields, replace
from typing import Any, final

import torch
from torch import Tensor

from attnmargin.margin.problem import MarginProblem, RowNames, margin_problem


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


def no_rows(d: int) -> Kept:
    """Return a working set without rows, for tokens of width d."""
    factor = torch.empty(0, d, dtype=torch.float64)
    key, names = torch.empty(0, dtype=torch.int64), torch.empty(0, 4, dtype=torch.int64)
    return Kept(key, factor, factor, torch.empty(0, dtype=torch.bool), names)


def joined(first: Kept, second: Kept) -> Kept:
    """Put rows after others."""
    names = (field.name for field in fields(Kept))
    return Kept(*(torch.cat((getattr(first, name), getattr(second, name))) for name in names))
