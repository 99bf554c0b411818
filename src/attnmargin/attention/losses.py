"""Losses of a margin u, each with the logarithm of its slope, which does not underflow."""

from abc import ABC, abstractmethod
from typing import final

import torch
from torch import Tensor
from torch.nn.functional import softplus

from attnmargin.base.errors import InputError


class Loss(ABC):
    """A loss ``ℓ(u)`` of a margin; all methods work entry by entry."""

    name: str = "a loss of its own"

    @property
    def always_falls(self) -> bool:
        """Whether ``ℓ' ≤ 0`` everywhere: then :meth:`falls` is not overridden."""
        return type(self).falls is Loss.falls

    @abstractmethod
    def value(self, u: Tensor) -> Tensor:
        """Compute ``ℓ(u)``."""

    @abstractmethod
    def log_slope(self, u: Tensor) -> Tensor:
        """Compute ``log |ℓ'(u)|``."""

    def falls(self, u: Tensor) -> Tensor:
        """Return +1 where ``ℓ' ≤ 0``, −1 where it is positive."""
        return torch.ones_like(u)

    @abstractmethod
    def constants(self, largest: Tensor) -> tuple[Tensor, Tensor]:
        """Compute ``(M₀, M₁)`` of paper A, Assumption A, over ``|u| ≤ largest``."""

    def rise(self, u: Tensor, drop: Tensor) -> Tensor:
        """Compute ``ℓ(u − drop) − ℓ(u)``, for small drops without cancellation."""
        return self.value(u - drop) - self.value(u)

    def bend(self, low: Tensor, high: Tensor) -> Tensor:
        """Bound ``|ℓ''/ℓ'|`` between two scores; infinite if the slope vanishes, or is unknown."""
        return torch.full_like(high, torch.inf)


@final
class Logistic(Loss):
    """``log(1 + e^{−u})``."""

    name = "logistic"

    def value(self, u: Tensor) -> Tensor:
        return softplus(-u)

    def log_slope(self, u: Tensor) -> Tensor:
        return -softplus(u)

    def constants(self, largest: Tensor) -> tuple[Tensor, Tensor]:
        return torch.full_like(largest, 0.25), torch.ones_like(largest)

    def rise(self, u: Tensor, drop: Tensor) -> Tensor:
        return torch.log1p(torch.sigmoid(-u) * torch.expm1(drop))

    def bend(self, low: Tensor, high: Tensor) -> Tensor:
        return torch.sigmoid(high)


@final
class Exponential(Loss):
    """``e^{−u}``."""

    name = "exponential"

    def value(self, u: Tensor) -> Tensor:
        return (-u).exp()

    def log_slope(self, u: Tensor) -> Tensor:
        return -u

    def constants(self, largest: Tensor) -> tuple[Tensor, Tensor]:
        return largest.exp(), largest.exp()

    def rise(self, u: Tensor, drop: Tensor) -> Tensor:
        return (-u).exp() * torch.expm1(drop)

    def bend(self, low: Tensor, high: Tensor) -> Tensor:
        return torch.ones_like(high)


@final
class Linear(Loss):
    """``−u``."""

    name = "linear"

    def value(self, u: Tensor) -> Tensor:
        return -u

    def log_slope(self, u: Tensor) -> Tensor:
        return torch.zeros_like(u)

    def constants(self, largest: Tensor) -> tuple[Tensor, Tensor]:
        return torch.zeros_like(largest), torch.ones_like(largest)

    def rise(self, u: Tensor, drop: Tensor) -> Tensor:
        return drop.clone()

    def bend(self, low: Tensor, high: Tensor) -> Tensor:
        return torch.zeros_like(high)


@final
class Squared(Loss):
    """``(1 − u)²``; it falls for u < 1 only.

    At u = 1 its slope vanishes. A sequence whose best score is 1 then pulls like the square of the
    attention to its other tokens, and training need not turn to the direction of the SVM.
    """

    name = "squared"

    def value(self, u: Tensor) -> Tensor:
        return (1.0 - u) ** 2

    def log_slope(self, u: Tensor) -> Tensor:
        return (2.0 * (1.0 - u).abs()).log()

    def falls(self, u: Tensor) -> Tensor:
        return torch.where(u <= 1.0, 1.0, -1.0).to(u.dtype)

    def constants(self, largest: Tensor) -> tuple[Tensor, Tensor]:
        return torch.full_like(largest, 2.0), 2.0 * (1.0 + largest)

    def rise(self, u: Tensor, drop: Tensor) -> Tensor:
        return drop * (2.0 * (1.0 - u) + drop)

    def bend(self, low: Tensor, high: Tensor) -> Tensor:
        return torch.where(high < 1.0, 1.0 / (1.0 - high), torch.inf)


@final
class Log(Loss):
    """``−log u`` for u > 0: the log-loss of paper C, where u is a probability."""

    name = "log"

    def value(self, u: Tensor) -> Tensor:
        return -u.log()

    def log_slope(self, u: Tensor) -> Tensor:
        return -u.log()

    def constants(self, largest: Tensor) -> tuple[Tensor, Tensor]:
        raise InputError("lr", "'auto' with the loss 'log'", "a loss with a bounded slope")

    def rise(self, u: Tensor, drop: Tensor) -> Tensor:
        return -torch.log1p(-drop / u)

    def bend(self, low: Tensor, high: Tensor) -> Tensor:
        return torch.where(low > 0.0, 1.0 / low, torch.inf)


LOSSES: dict[str, type[Loss]] = {
    loss.name: loss for loss in (Logistic, Exponential, Linear, Squared, Log)
}


def as_loss(loss: str | Loss) -> Loss:
    """Return the loss with a name.

    >>> as_loss("logistic").value(torch.tensor(0.0))
    tensor(0.6931)
    """
    if isinstance(loss, Loss):
        return loss
    if not isinstance(loss, str) or loss not in LOSSES:
        raise InputError("loss", f"{loss!r:.80}", f"one of {', '.join(LOSSES)}, or a Loss")
    return LOSSES[loss]()
