"""How a gradient becomes a step: the rule of gradient and mirror descent, and what all share."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from attnmargin.base.arrays import tiny
from attnmargin.margin.norms import mirror_step, power_norm


class Rule(ABC):
    """How to turn a gradient into a step."""

    normalize: bool
    log_penalty: float | None  # log 2λ

    @abstractmethod
    def step(self, x: Tensor, D: Tensor, log_scale: Tensor, lr: Tensor, part: str = "W") -> Tensor:
        """Step from x ``(B, r, c)`` along the negative gradient ``e^{log_scale} D``.

        Args:
            lr: ``(B, 1, 1)``.
            part: which parameter x is; rules with a memory have one for each.
        """


@final
@dataclass(frozen=True)
class Mirror(Rule):
    """Mirror descent ``∇ψ(x⁺) = ∇ψ(x) − lr ∇L``; p = 2 is gradient descent.

    ``∇L`` is divided by its dual norm if ``normalize``.
    """

    p: float | Tensor  # power of the mirror potential; (B, 1, 1) if it differs between trials
    normalize: bool
    log_penalty: float | None

    @property
    def plain(self) -> bool:
        """Whether this is gradient descent."""
        return isinstance(self.p, float) and self.p == 2.0

    def step(self, x: Tensor, D: Tensor, log_scale: Tensor, lr: Tensor, part: str = "W") -> Tensor:
        D, log_scale = penalised(x, D, log_scale, self.log_penalty)
        if self.normalize:
            size = power_norm(D, self.p / (self.p - 1.0))
            move = lr * D / size.where(size > 0, 1.0)
        else:
            move = (lr * log_scale.exp()) * D
        return mirror_step(x, -move, self.p, by_logs=False)


def penalised(
    x: Tensor, D: Tensor, log_scale: Tensor, log_penalty: float | None
) -> tuple[Tensor, Tensor]:
    """Add the ridge term ``λ‖x‖²`` to the negative gradient, and rescale it to ordinary size."""
    if log_penalty is None:
        return D, log_scale
    log_D = log_scale + power_norm(D, 2.0).clamp_min(tiny(D)).log()
    log_x = log_penalty + power_norm(x, 2.0).clamp_min(tiny(D)).log()
    largest = torch.maximum(log_D, log_x)
    return (log_scale - largest).exp() * D - (log_penalty - largest).exp() * x, largest
