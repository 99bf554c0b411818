"""The trained weights: W by its entries, W by its coefficients, or the factors K and Q."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import final

import numpy as np
import torch
from torch import Tensor

from attnmargin.attention.softmax import Sequences, Slope
from attnmargin.base.arrays import tiny
from attnmargin.base.compiled import in_threads
from attnmargin.margin.norms import power_norm
from attnmargin.training.rules import Mirror, Rule

# Incrementally updated logits are recomputed after this many steps.
_REFRESH = 256
# Above this many steps over all trials, Ctrl-C must work before they end.
_PATIENCE = 4096
# A squared norm below this many units in the last place of its value without cancellation is
# rounding.
_NOISE = 16
# Scores and their rise, dense, ``(B, N, T)`` each: see :class:`attnmargin.attention.Objective`.
Scores = tuple[Tensor, Tensor]


def _in_kernel(
    kernel: Callable[..., None], arrays: list[Tensor], rates: Tensor, loss: int, rule: Mirror
) -> None:
    """Run a kernel that updates some of the arrays in place."""
    B = len(rates)
    log_penalty = -math.inf if rule.log_penalty is None else rule.log_penalty
    options = np.empty((B, 4))
    options[:, :3] = float(loss), float(rule.normalize), log_penalty
    options[:, 3] = rule.p if isinstance(rule.p, float) else rule.p.reshape(B).numpy()
    given = [x.numpy() for x in (*arrays, rates.contiguous())]
    in_threads(kernel, [*given, options], B, patient=rates.numel() > _PATIENCE)


class Weights(ABC):
    """Weights of B trials, together with their sequences."""

    @abstractmethod
    def logits(self) -> Tensor:
        """Compute ``X W z`` up to a constant per sequence, ``(B, N, T)``."""

    @abstractmethod
    def descend(self, slope: Slope, lr: Tensor, rule: Rule) -> None:
        """Take one step; lr is ``(B, 1, 1)``."""

    @abstractmethod
    def advance(self, scores: Scores, rates: Tensor, loss: int, rule: Mirror) -> None:
        """Take one compiled step per rate ``(B, steps)``."""

    @abstractmethod
    def matrix(self) -> Tensor:
        """Return W, ``(B, d, e)``."""

    @abstractmethod
    def square(self, slope: Slope) -> Tensor:
        """Compute the squared norm of the gradient over ``e^{2 log_scale}``, ``(B, 1, 1)``."""

    @abstractmethod
    def parts(self) -> tuple[Tensor, ...]:
        """Return the trained tensors: (W,) or (K, Q)."""


@final
class Coefficients(Weights):
    """``W = W₀ + Σ β_it x_it z_iᵀ``: gradient descent never leaves this form.

    Since ``Σ_t β_it = 0``, the tokens may be taken without what they share.

    A step costs one product with the kernel ``G = (token Gram) ∘ (query Gram)``, whatever the
    width of the tokens: logits are ``a₀ + Gβ``, and ``‖∇‖_F² = cᵀGc``. If W must not move in the
    span of orthonormal matrices ``fixed`` ``(B, m, d, d)``, both the form and the kernel use the
    projected ``x_it z_iᵀ``. Where the coefficients of a normalised gradient cancel, ``cᵀGc`` is
    rounding, and W₀ moves instead.
    """

    def __init__(self, flat: Sequences, W: Tensor, fixed: Tensor | None = None) -> None:
        self.flat, self.W, self.fixed = flat, W, fixed
        B, N, T, d = flat.X.shape
        tokens = flat.relative.reshape(B, N * T, d)
        queries = flat.z.repeat_interleave(T, dim=-2)
        self.G = (tokens @ tokens.mT) * (queries @ queries.mT)
        # Lengths before the projection, because its rounding is relative to them.
        self.lengths = self.G.diagonal(dim1=-2, dim2=-1).sqrt().unsqueeze(-1)
        if fixed is not None:
            self.along = torch.einsum("bntd,bmde,bne->bntm", flat.relative, fixed, flat.z)
            self.along = self.along.reshape(B, N * T, -1)
            self.G = self.G - self.along @ self.along.mT
        self.base = (flat.relative @ (flat.z @ W.mT).unsqueeze(-1)).reshape(B, N * T, 1)
        self.beta, self.a = torch.zeros_like(self.base), self.base.clone()
        self.age = 0

    @staticmethod
    def pays(flat: Sequences) -> bool:
        """Check whether the kernel is cheaper than W itself, and its squares do not overflow."""
        _, N, T, d = flat.X.shape
        sizes = [float(x.abs().max()) if x.numel() else 1.0 for x in (flat.relative, flat.z)]
        plain = all(1e-8 < size < 1e8 for size in sizes)
        return plain and 4 * (2 * N * T * d + 2 * N * d * d) >= (N * T) ** 2

    def logits(self) -> Tensor:
        return self.flat.seen(self.a.reshape(self.flat.X.shape[:-1]))

    def descend(self, slope: Slope, lr: Tensor, rule: Rule) -> None:
        c = slope.c.reshape(self.beta.shape)
        h, log_scale = self.G @ c, slope.log_scale
        if rule.log_penalty is not None:
            c, h, log_scale = self._penalised(c, h, log_scale, rule.log_penalty)
        if rule.normalize:
            square = (c * h).sum(-2, keepdim=True)
            size = (c.abs() * self.lengths).sum(-2, keepdim=True)
            eps = torch.finfo(c.dtype).eps
            # If the gradient cancels, the remainder is rounding: do not move.
            moves = square > _NOISE * eps * size**2
            cancels = square <= eps**0.5 * size**2
            if self.fixed is None and rule.log_penalty is None and bool(cancels.any()):
                self._move_start(slope.c, lr.where(cancels, 0.0))
                moves &= ~cancels
            factor = (lr * square.clamp_min(tiny(c)).rsqrt()).where(moves, 0.0)
        else:
            factor = lr * log_scale.exp()
        self.beta.addcmul_(factor, c)
        self.age += 1
        if self.age % _REFRESH == 0:
            self.a = torch.baddbmm(self.base, self.G, self.beta)
        else:
            self.a.addcmul_(factor, h)

    def _move_start(self, c: Tensor, lr: Tensor) -> None:
        """Take a normalised step in the entries of W₀, where the coefficients cancel.

        Tokens are taken relative to the one with the largest c, so that nearly equal ones lose no
        digits.
        """
        X, z = self.flat.relative, self.flat.z
        top = c.abs().argmax(-1)[..., None, None].expand(*X.shape[:2], 1, X.shape[-1])
        X = X - X.gather(-2, top)
        keys = (c.unsqueeze(-2) @ X).squeeze(-2)
        D = keys.mT @ z
        size = (keys.norm(dim=-1) * z.norm(dim=-1)).sum(-1)[:, None, None]
        length = power_norm(D, 2.0)
        known = length > _NOISE * torch.finfo(c.dtype).eps * size
        step = (lr / length.where(known, 1.0)).where(known, 0.0) * D
        moved = (X @ (z @ step.mT).unsqueeze(-1)).reshape(self.base.shape)
        self.W, self.base, self.a = self.W + step, self.base + moved, self.a + moved

    def advance(self, scores: Scores, rates: Tensor, loss: int, rule: Mirror) -> None:
        from attnmargin.training.kernel import advance_coefficients

        X, z = self.flat.dense()
        X = X if self.fixed is None else X[..., :0].contiguous()
        self.W = self.W.clone(memory_format=torch.contiguous_format)
        rows = (self.lengths[..., 0], self.base[..., 0], self.beta[..., 0], self.a[..., 0])
        arrays = [X, z, self.W, self.G, *scores, self.flat.unseen(), *rows]
        _in_kernel(advance_coefficients, arrays, rates, loss, rule)

    def _penalised(
        self, c: Tensor, h: Tensor, log_scale: Tensor, log_penalty: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Do the same as ``penalised`` of the rules, in coefficients; W₀ is zero."""
        square, own = (c * h).sum(-2, keepdim=True), (self.beta * self.a).sum(-2, keepdim=True)
        log_D = log_scale + 0.5 * square.clamp_min(tiny(c)).log()
        log_x = log_penalty + 0.5 * own.clamp_min(tiny(c)).log()
        largest = torch.maximum(log_D, log_x)
        keep, pull = (log_scale - largest).exp(), (log_penalty - largest).exp()
        return keep * c - pull * self.beta, keep * h - pull * self.a, largest

    def matrix(self) -> Tensor:
        moved = keys(self.flat, self.beta.reshape(self.flat.X.shape[:-1])).mT @ self.flat.z
        if self.fixed is not None:
            moved = moved - torch.einsum(
                "bm,bmde->bde", (self.along.mT @ self.beta)[..., 0], self.fixed
            )
        return self.W + moved

    def square(self, slope: Slope) -> Tensor:
        c = slope.c.reshape(self.beta.shape)
        return (c * (self.G @ c)).sum(-2, keepdim=True)

    def parts(self) -> tuple[Tensor, ...]:
        return (self.matrix(),)


def keys(flat: Sequences, c: Tensor) -> Tensor:
    """Compute ``Σ_t c_it x_it``, ``(B, N, d)``, for c that sums to zero over tokens."""
    return (c.unsqueeze(-2) @ flat.relative).squeeze(-2)


class Movable(Weights):
    """Weights that can be read and set as vectors ``(B, k)``."""

    @abstractmethod
    def vector(self) -> Tensor:
        """Return the trained parameters as one vector."""

    @abstractmethod
    def place(self, x: Tensor) -> None:
        """Set the trained parameters from one vector."""

    @abstractmethod
    def pull(self, slope: Slope) -> Tensor:
        """Compute the negative gradient in this vector over ``e^{log_scale}``."""

    def square(self, slope: Slope) -> Tensor:
        return power_norm(self.pull(slope).unsqueeze(-1), 2.0) ** 2


@final
class Entries(Movable):
    """W by its entries, for all but gradient descent, or for penalties with a nonzero start."""

    def __init__(self, flat: Sequences, W: Tensor) -> None:
        self.flat, self.W = flat, W

    def logits(self) -> Tensor:
        return self.flat.logits(self.W)

    def _direction(self, slope: Slope) -> Tensor:
        return keys(self.flat, slope.c).mT @ self.flat.z

    def descend(self, slope: Slope, lr: Tensor, rule: Rule) -> None:
        self.W = rule.step(self.W, self._direction(slope), slope.log_scale, lr)

    def advance(self, scores: Scores, rates: Tensor, loss: int, rule: Mirror) -> None:
        from attnmargin.training.kernel import advance_entries

        self.W = self.W.clone(memory_format=torch.contiguous_format)
        arrays = [*self.flat.dense(), *scores, self.flat.unseen(), self.W]
        _in_kernel(advance_entries, arrays, rates, loss, rule)

    def matrix(self) -> Tensor:
        return self.W

    def vector(self) -> Tensor:
        return self.W.flatten(1)

    def place(self, x: Tensor) -> None:
        self.W = x.reshape(self.W.shape)

    def pull(self, slope: Slope) -> Tensor:
        return self._direction(slope).flatten(1)

    def parts(self) -> tuple[Tensor, ...]:
        return (self.W,)


@final
class Factors(Movable):
    """``W = K Qᵀ`` with K, Q ``(B, d, m)``; each gradient is normalised by its own norm."""

    def __init__(self, flat: Sequences, K: Tensor, Q: Tensor) -> None:
        self.flat, self.K, self.Q = flat, K, Q

    def logits(self) -> Tensor:
        image = (self.flat.z @ self.Q) @ self.K.mT
        return self.flat.seen((self.flat.relative @ image.unsqueeze(-1)).squeeze(-1))

    def _directions(self, slope: Slope) -> tuple[Tensor, Tensor]:
        """Compute the negative gradients ``D Q`` and ``Dᵀ K``, with ``D`` that in W."""
        pulled = keys(self.flat, slope.c)
        return pulled.mT @ (self.flat.z @ self.Q), self.flat.z.mT @ (pulled @ self.K)

    def descend(self, slope: Slope, lr: Tensor, rule: Rule) -> None:
        of_K, of_Q = self._directions(slope)
        self.K = rule.step(self.K, of_K, slope.log_scale, lr, "K")
        self.Q = rule.step(self.Q, of_Q, slope.log_scale, lr, "Q")

    def advance(self, scores: Scores, rates: Tensor, loss: int, rule: Mirror) -> None:
        from attnmargin.training.kernel import advance_factors

        self.K, self.Q = (x.clone(memory_format=torch.contiguous_format) for x in self.parts())
        arrays = [*self.flat.dense(), *scores, self.flat.unseen(), self.K, self.Q]
        _in_kernel(advance_factors, arrays, rates, loss, rule)

    def matrix(self) -> Tensor:
        return self.K @ self.Q.mT

    def vector(self) -> Tensor:
        return torch.cat((self.K.flatten(1), self.Q.flatten(1)), -1)

    def place(self, x: Tensor) -> None:
        self.K, self.Q = (part.reshape(self.K.shape) for part in x.chunk(2, -1))

    def pull(self, slope: Slope) -> Tensor:
        of_K, of_Q = self._directions(slope)
        return torch.cat((of_K.flatten(1), of_Q.flatten(1)), -1)

    def parts(self) -> tuple[Tensor, ...]:
        return (self.K, self.Q)
