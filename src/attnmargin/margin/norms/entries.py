"""Norms of the entries of W: Frobenius, ℓp, the largest entry, and the sum of all."""

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from attnmargin.base.checks import check_number
from attnmargin.base.errors import InputError
from attnmargin.margin.norms.norm import Norm, entrywise, scaled, unit_rows
from attnmargin.margin.norms.potential import inverse_mirror


def _unit(D: Tensor, p: float) -> Tensor:
    """Divide each matrix by its ℓp norm."""
    return unit_rows(D.flatten(-2), p).unflatten(-1, D.shape[-2:])


@final
@dataclass(frozen=True)
class Frobenius(Norm):
    """``‖W‖_F``, its own dual norm. Gradient descent on W (paper A)."""

    @property
    def name(self) -> str:
        return "fro"

    def value(self, W: Tensor) -> Tensor:
        return entrywise(W, 2.0)

    def dual_value(self, W: Tensor) -> Tensor:
        return self.value(W)

    def _steepest(self, D: Tensor) -> Tensor:
        return _unit(D, 2.0)


@final
@dataclass(frozen=True)
class Lp(Norm):
    """``(Σ |W_ij|^p)^{1/p}``, 1 < p < ∞; dual: ℓq with 1/p + 1/q = 1 (paper B)."""

    p: float

    def __post_init__(self) -> None:
        needs = "a finite p > 1; 'sum' stands for p = 1, 'max' for p = ∞"
        p = check_number("norm", self.p, needs)
        if not 1.0 < p < float("inf"):
            raise InputError("norm", f"p = {p:g}", needs)
        object.__setattr__(self, "p", p)

    @property
    def name(self) -> str:
        return repr(float(self.p))

    def value(self, W: Tensor) -> Tensor:
        return entrywise(W, self.p)

    def dual_value(self, W: Tensor) -> Tensor:
        return entrywise(W, self.p / (self.p - 1.0))

    def _steepest(self, D: Tensor) -> Tensor:
        return _unit(inverse_mirror(scaled(D), self.p), self.p)


@final
@dataclass(frozen=True)
class Max(Norm):
    """The largest ``|W_ij|``; dual: the sum. Sign descent, and Adam without memory."""

    @property
    def name(self) -> str:
        return "max"

    def value(self, W: Tensor) -> Tensor:
        return W.abs().amax((-2, -1))

    def dual_value(self, W: Tensor) -> Tensor:
        return W.abs().sum((-2, -1))

    def _steepest(self, D: Tensor) -> Tensor:
        return D.sign()


@final
@dataclass(frozen=True)
class Sum(Norm):
    """``Σ |W_ij|``; dual: the largest. Greedy coordinate descent, one entry per step."""

    @property
    def name(self) -> str:
        return "sum"

    def value(self, W: Tensor) -> Tensor:
        return W.abs().sum((-2, -1))

    def dual_value(self, W: Tensor) -> Tensor:
        return W.abs().amax((-2, -1))

    def _steepest(self, D: Tensor) -> Tensor:
        """Choose the entry of largest ``|D_ij|``, the first one in ties."""
        entries = D.flatten(-2)
        place = entries.abs().argmax(-1, keepdim=True)
        sign = entries.gather(-1, place).sign()
        return torch.zeros_like(entries).scatter(-1, place, sign).unflatten(-1, D.shape[-2:])
