"""Norms of rows or columns of W: the longest one counts."""

from dataclasses import dataclass
from typing import final

from torch import Tensor

from attnmargin.margin.norms.norm import Norm, scaled_norm, unit_rows


@final
@dataclass(frozen=True)
class RowMax(Norm):
    """``max_i ‖W_i·‖₂``; dual: the sum. Descent with each row normalised by itself."""

    @property
    def name(self) -> str:
        return "rows"

    def value(self, W: Tensor) -> Tensor:
        return scaled_norm(W).amax(-1)

    def dual_value(self, W: Tensor) -> Tensor:
        return scaled_norm(W).sum(-1)

    def _steepest(self, D: Tensor) -> Tensor:
        return unit_rows(D)


@final
@dataclass(frozen=True)
class ColumnMax(Norm):
    """``max_j ‖W_·j‖₂``; dual: the sum. Descent with each column normalised by itself."""

    @property
    def name(self) -> str:
        return "columns"

    def value(self, W: Tensor) -> Tensor:
        return RowMax().value(W.mT)

    def dual_value(self, W: Tensor) -> Tensor:
        return RowMax().dual_value(W.mT)

    def _steepest(self, D: Tensor) -> Tensor:
        return unit_rows(D.mT).mT
