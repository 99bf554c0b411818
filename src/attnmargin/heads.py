"""Prediction heads on the attention output ``o = Xᵀ s``, with the pull that they exert on it."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from attnmargin.arrays import Array, floats, integers
from attnmargin.errors import InputError
from attnmargin.losses import Loss


@dataclass
class Pull:
    """``−∂loss/∂o = κ · direction``, with the logarithm of κ, and the loss itself."""

    loss: Tensor  # (B, N)
    log_slope: Tensor  # (B, N)
    direction: Tensor  # (B, N, d)


class Head(ABC):
    """What turns an attention output into a loss."""

    @abstractmethod
    def pull(self, o: Tensor, y: Tensor | None, loss: Loss) -> Pull:
        """The loss at outputs ``(B, N, d)`` with labels ``(B, N)``, and what pulls at them."""


class MarginHead(Head):
    """A head with one number ``h(o)``; the loss is that of the margin ``y h(o)``."""

    @abstractmethod
    def value(self, o: Tensor) -> Tensor:
        """``h(o)``, ``(B, N)``."""

    @abstractmethod
    def gradient(self, o: Tensor) -> Tensor:
        """``∇h(o)``, ``(B, N, d)``."""

    def pull(self, o: Tensor, y: Tensor | None, loss: Loss) -> Pull:
        if y is None:
            raise InputError("y", "nothing", "labels, which the loss needs")
        u = y * self.value(o)
        sign = (y * loss.falls(u)).unsqueeze(-1)
        return Pull(loss.value(u), loss.log_slope(u), sign * self.gradient(o))


@final
class ReLUHead(MarginHead):
    """``h(x) = 1ᵀ ReLU(V x)`` with a value matrix V ``(*B, k, d)`` (paper A, figure 8)."""

    def __init__(self, V: Array) -> None:
        self.V = floats("V", V)

    def value(self, o: Tensor) -> Tensor:
        return torch.relu(o @ self._matrix(o).mT).sum(-1)

    def gradient(self, o: Tensor) -> Tensor:
        V = self._matrix(o)
        return (o @ V.mT > 0).to(o.dtype) @ V

    def _matrix(self, o: Tensor) -> Tensor:
        V = self.V.to(o)
        return V.expand(len(o), *V.shape[-2:]) if V.ndim == 2 else V.flatten(0, -3)


@final
class QuadraticHead(MarginHead):
    """``h(x) = vᵀx − λ‖x‖²`` (paper A, figures 9 and 12); v ``(*B, d)``, λ ``(*B)``."""

    def __init__(self, v: Array, weight: Array) -> None:
        self.v, self.weight = floats("v", v), floats("weight", weight)

    def _parts(self, o: Tensor) -> tuple[Tensor, Tensor]:
        v, weight = self.v.to(o), self.weight.to(o)
        v = v.reshape(-1, 1, v.shape[-1])
        return v, weight.reshape(-1, 1)

    def value(self, o: Tensor) -> Tensor:
        v, weight = self._parts(o)
        return (o * v).sum(-1) - weight * (o * o).sum(-1)

    def gradient(self, o: Tensor) -> Tensor:
        v, weight = self._parts(o)
        return v - 2.0 * weight.unsqueeze(-1) * o


@final
class FunctionHead(MarginHead):
    """Any function from outputs ``(B, N, d)`` to numbers ``(B, N)`` that autograd can follow."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        self.function = function

    def value(self, o: Tensor) -> Tensor:
        value = self.function(o)
        if not isinstance(value, Tensor) or value.shape != o.shape[:-1]:
            got = f"a {type(value).__name__} of shape {tuple(getattr(value, 'shape', ()))}"
            raise InputError("head", got, f"one number per output, shape {tuple(o.shape[:-1])}")
        return value.detach()

    def gradient(self, o: Tensor) -> Tensor:
        with torch.enable_grad():
            at = o.detach().requires_grad_()
            (gradient,) = torch.autograd.grad(self.function(at).sum(), at)
        return gradient


@final
class VocabularyHead(Head):
    """Cross-entropy of logits ``C o`` with class labels, C ``(*B, k, d)``, labels ``(*B, n)``.

    The loss of ``train`` is not used: this head has its own.
    """

    def __init__(self, C: Array, labels: Array) -> None:
        self.C = floats("C", C)
        self.labels = integers("labels", labels, self.C)
        if not bool(((self.labels >= 0) & (self.labels < self.C.shape[-2])).all()):
            needs = f"classes from 0 to {self.C.shape[-2] - 1}"
            raise InputError("labels", f"up to {int(self.labels.max())}", needs)

    def pull(self, o: Tensor, y: Tensor | None, loss: Loss) -> Pull:
        C = self.C.to(o)
        C = C.expand(len(o), *C.shape[-2:]) if C.ndim == 2 else C.flatten(0, -3)
        labels = self.labels.to(o.device).expand(*self.labels.shape[:-1], o.shape[1])
        own = labels.reshape(-1, o.shape[1], 1).expand(len(o), -1, -1)
        log_p = torch.log_softmax(o @ C.mT, -1)
        others = log_p.scatter(-1, own, -torch.inf)
        log_slope = torch.logsumexp(others, -1)
        weight = (others - log_slope.unsqueeze(-1)).exp()
        wanted = C.gather(1, own.expand(-1, -1, C.shape[-1]))
        return Pull(-log_p.gather(-1, own)[..., 0], log_slope, wanted - weight @ C)


def as_head(head: str | Head | Callable[[Tensor], Tensor]) -> Head | None:
    """The head that is meant; None for the linear one, whose scores do not change."""
    if head == "linear":
        return None
    if isinstance(head, Head):
        return head
    if callable(head):
        return FunctionHead(head)
    raise InputError("head", repr(head), "'linear', a Head, or a function of the outputs")
