"""Prediction heads on the attention output ``o = Xᵀ s``, with the pull that they exert on it."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import torch
from torch import Tensor

from attnmargin.attention.losses import Loss
from attnmargin.base.arrays import Array, finite, floats, integers
from attnmargin.base.errors import InputError


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
        """Compute the loss at outputs ``(B, N, d)`` with labels ``(B, N)``, and its pull."""


class MarginHead(Head):
    """A head with one number ``h(o)``; the loss is that of the margin ``y h(o)``."""

    @abstractmethod
    def value(self, o: Tensor) -> Tensor:
        """Compute ``h(o)``, ``(B, N)``."""

    @abstractmethod
    def gradient(self, o: Tensor) -> Tensor:
        """Compute ``∇h(o)``, ``(B, N, d)``."""

    def pull(self, o: Tensor, y: Tensor | None, loss: Loss) -> Pull:
        if y is None:
            raise InputError("y", "nothing", "labels, which the loss needs")
        u = y * self.value(o)
        sign = (y * loss.falls(u)).unsqueeze(-1)
        return Pull(loss.value(u), loss.log_slope(u), sign * self.gradient(o))


def _for_trials(name: str, x: Tensor, tail: int, o: Tensor) -> Tensor:
    """Expand an array with ``tail`` own dimensions to all trials of outputs ``(B, N, d)``."""
    x, own = x.to(o), x.shape[x.ndim - tail :]
    if tail and own[-1] != o.shape[-1]:
        raise InputError(
            name, f"shape {tuple(x.shape)}", f"the token width {o.shape[-1]} at its end"
        )
    if x.ndim == tail:
        return x.expand(len(o), *own)
    if x.shape[: x.ndim - tail].numel() != len(o):
        needs = f"one for all {len(o)} trials, or one for each"
        raise InputError(name, f"shape {tuple(x.shape)}", needs)
    return x.reshape(len(o), *own)


def _numbers(name: str, value: Array, least: int, meaning: str) -> Tensor:
    x = finite(name, floats(name, value))
    if x.ndim < least:
        raise InputError(name, f"shape {tuple(x.shape)}", meaning)
    return x


@final
class ScoreHead:
    """A linear head given by its token scores: ``u_i = Σ_t s_it γ_it``, no labels.

    Scores are ``(*B, n, T)``, or ``(*B, n, K, T)`` with several queries. In paper C they are
    ``γ_it = c_yᵀ x_it`` with y the label of sequence i.
    """

    def __init__(self, scores: Array) -> None:
        self.scores = _numbers("scores", scores, 2, "one score per token, (*B, n, T)")

    def of(self, X: Tensor) -> Tensor:
        """Compute the scores ``(B, N, T)`` of tokens ``(B, N, T, d)``."""
        B, N, T, _ = X.shape
        if self.scores.numel() not in (N * T, B * N * T) or self.scores.shape[-1] != T:
            needs = f"one score per token, {(B, N, T)}, or the same for all trials"
            raise InputError("scores", f"shape {tuple(self.scores.shape)}", needs)
        return self.scores.to(X).reshape(-1, N, T).expand(B, N, T).contiguous()


@final
class ReLUHead(MarginHead):
    """``h(x) = 1ᵀ ReLU(V x)`` with a value matrix V ``(*B, k, d)`` (paper A, figure 8)."""

    def __init__(self, V: Array) -> None:
        self.V = _numbers("V", V, 2, "a matrix (*B, k, d)")

    def value(self, o: Tensor) -> Tensor:
        return torch.relu(o @ _for_trials("V", self.V, 2, o).mT).sum(-1)

    def gradient(self, o: Tensor) -> Tensor:
        V = _for_trials("V", self.V, 2, o)
        return (o @ V.mT > 0).to(o.dtype) @ V


@final
class QuadraticHead(MarginHead):
    """``h(x) = vᵀx − λ‖x‖²`` (paper A, figures 9 and 12); v ``(*B, d)``, λ ``(*B)``."""

    def __init__(self, v: Array, weight: Array) -> None:
        self.v = _numbers("v", v, 1, "a vector (*B, d)")
        self.weight = _numbers("weight", weight, 0, "a number, or one per trial")

    def member(self, index: Any) -> "QuadraticHead":
        """Return the head of members of a batch; what is the same for all trials stays."""
        v = self.v[index] if self.v.ndim > 1 else self.v
        return QuadraticHead(v, self.weight[index] if self.weight.ndim else self.weight)

    def _parts(self, o: Tensor) -> tuple[Tensor, Tensor]:
        v = _for_trials("v", self.v, 1, o).unsqueeze(-2)
        return v, _for_trials("weight", self.weight, 0, o).unsqueeze(-1)

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
            total = self.function(at).sum()
            if not total.requires_grad:
                return torch.zeros_like(o)
            (gradient,) = torch.autograd.grad(total, at, allow_unused=True)
        return torch.zeros_like(o) if gradient is None else gradient


@final
class VocabularyHead(Head):
    """Cross-entropy of logits ``C o`` with class labels, C ``(*B, k, d)``, labels ``(*B, n)``.

    With several queries labels are ``(*B, n, K)``.
    The loss of ``train`` is not used: this head has its own.
    """

    def __init__(self, C: Array, labels: Array) -> None:
        self.C = _numbers("C", C, 2, "a matrix (*B, k, d)")
        self.labels = integers("labels", labels, self.C)
        if not bool(((self.labels >= 0) & (self.labels < self.C.shape[-2])).all()):
            needs = f"classes from 0 to {self.C.shape[-2] - 1}"
            got = f"classes from {int(self.labels.min())} to {int(self.labels.max())}"
            raise InputError("labels", got, needs)

    def pull(self, o: Tensor, y: Tensor | None, loss: Loss) -> Pull:
        C, B, N = _for_trials("C", self.C, 2, o), o.shape[0], o.shape[1]
        if self.labels.numel() not in (N, B * N):
            got = f"{self.labels.numel()} labels"
            raise InputError("labels", got, f"one per output: {N}, or {B * N} for all trials")
        own = self.labels.to(o.device).reshape(-1, N, 1).expand(B, N, 1)
        log_p = torch.log_softmax(o @ C.mT, -1)
        others = log_p.scatter(-1, own, -torch.inf)
        log_slope = torch.logsumexp(others, -1)
        weight = (others - log_slope.unsqueeze(-1)).exp().nan_to_num()
        wanted = C.gather(1, own.expand(-1, -1, C.shape[-1]))
        return Pull(-log_p.gather(-1, own)[..., 0], log_slope, wanted - weight @ C)


# What may be given as a head: "linear", a head, or a function of the outputs.
HeadLike = str | Head | ScoreHead | Callable[[Tensor], Tensor]


def as_head(head: HeadLike) -> Head | None:
    """Return the head; None for linear ones, whose scores do not change."""
    if isinstance(head, ScoreHead) or (isinstance(head, str) and head == "linear"):
        return None
    if isinstance(head, Head):
        return head
    if callable(head):
        return FunctionHead(head)
    raise InputError("head", repr(head), "'linear', a head, or a function of the outputs")
