"""One step of gradient flow on a decoder: coordinates of the finite and of the growing part."""

from dataclasses import fields
from typing import final

import torch
from torch import Tensor

from attnmargin.base.errors import InaccurateError
from attnmargin.decoders.contexts import NextWords
from attnmargin.decoders.finite import spread
from attnmargin.decoders.subspace import Inside, inside

# Logarithm of the time before which weights count as zero.
_FIRST = -7.0
# Largest rise of the logarithm of the largest pull in one step: linearisation overshoots beyond.
_RISE = 0.5
# Largest change of a logit among words that follow in one step.
_MOVE = 1.0
_MOST, _NEAR, _TINY = 100_000, 1e-9, 1e-300
# What a step changes.
_STATE = ("theta", "beta", "clock", "stride")


@final
class Flow:
    """The point that gradient flow has reached, for data of one batch dimension.

    ``W = U + N``, U in the span F of words that follow, and ``N = Σ β_jv ρ_jv``; see
    :func:`attnmargin.decoders.flow`.
    """

    def __init__(self, data: NextWords, stride: float) -> None:
        self.data, self.span = data, inside(data)
        h, follows = data.contexts, data.follows
        self.shape = (data.V, h.shape[-1])
        self.theta = h.new_zeros(self.span.exists.shape)
        unit = torch.eye(data.V, dtype=h.dtype)
        first = unit[follows.to(torch.uint8).argmax(-1)].unsqueeze(-2)  # (B, m, 1, V)
        rows = (first - unit).unsqueeze(-1) * h[..., None, None, :]  # (B, m, V, V, d)
        rows = rows * ~follows[..., None, None]
        flat = rows.flatten(3).flatten(1, 2)  # (B, m V, V d)
        self.rows = flat - (flat @ self.span.basis) @ self.span.basis.mT
        self.K = self.rows @ self.rows.mT
        self.beta = torch.zeros_like(self.K[..., 0])
        self.log_weight = data.weight.log().unsqueeze(-1)
        self.missing = torch.diag_embed((~self.span.exists).to(h))
        # Logarithms of the time and of its factor per step. W(e^_FIRST) is that of a short step.
        self.longest = stride
        self.clock = h.new_full((len(h),), _FIRST)
        self.stride = torch.full_like(self.clock, stride)

    @property
    def W(self) -> Tensor:
        """U + N, ``(B, V, d)``."""
        N = (self.rows.mT @ self.beta.unsqueeze(-1))[..., 0].unflatten(-1, self.shape)
        return self.span.matrix(self.theta, self.shape) + N

    def advance(self, end: float) -> None:
        """Move to time ``e^end``, each member with its own steps."""
        for _ in range(_MOST):
            left = (end - self.clock > _NEAR).nonzero()[:, 0]
            if not len(left):
                return
            if len(left) == len(self.clock):
                self._step(end)
            else:
                self._step_some(left, end)
        raise InaccurateError(f"gradient flow: {_MOST:,} steps do not reach the time e^{end:g}")

    def _step_some(self, members: Tensor, end: float) -> None:
        """Move some members alone."""
        part = Flow.__new__(Flow)
        part.data, part.longest, part.shape = self.data[members], self.longest, self.shape
        part.span = Inside(*(getattr(self.span, field.name)[members] for field in fields(Inside)))
        for name in (*_STATE, "K", "log_weight", "missing"):
            setattr(part, name, getattr(self, name)[members])
        part._step(end)
        for name in _STATE:
            getattr(self, name)[members] = getattr(part, name)

    def _step(self, end: float) -> None:
        """Move from time t to ``t e^stride``; members that would overshoot stay."""
        stride = torch.minimum(self.stride, end - self.clock).clamp_min(0.0)
        follows, weight = self.data.follows, self.data.weight.unsqueeze(-1)
        inner = (self.span.logits @ self.theta.unsqueeze(-1)).reshape(follows.shape)
        below = (self.K @ self.beta.unsqueeze(-1)).reshape(follows.shape)
        a = inner - below.where(~follows, 0.0)
        share = torch.softmax(a.masked_fill(~follows, -torch.inf), -1)
        log_q = torch.log_softmax(a, -1).masked_fill(follows, -torch.inf)
        q = log_q.exp()
        off = weight * (share * (1.0 - q.sum(-1, keepdim=True)) - self.data.probabilities + q)
        log_step = (self.clock + stride.expm1().clamp_min(_TINY).log()).unsqueeze(-1)
        log_pull = (self.log_weight + log_q).flatten(1)
        grown = self._growth(log_pull, log_step)
        later = log_pull - (self.K @ grown.unsqueeze(-1))[..., 0]
        relaxed = self._relaxation(share, off, log_step)
        moved = (self.span.logits @ relaxed.unsqueeze(-1))[..., 0].abs().amax(-1)
        rises = (later.amax(-1) > log_pull.amax(-1) + _RISE) | (moved > _MOVE)
        good = ~rises & (stride > 0)
        self.beta = self.beta + grown * good.unsqueeze(-1)
        self.theta = self.theta - relaxed * good.unsqueeze(-1)
        self.clock = self.clock + stride * good
        self.stride = torch.where(rises, 0.25 * stride, 2.0 * self.stride).clamp_max(self.longest)

    def _relaxation(self, share: Tensor, off: Tensor, log_step: Tensor) -> Tensor:
        """Solve ``(1/τ + H) Δ = g`` in U, H the Hessian among words that follow."""
        J = self.span.logits
        H = spread(J, share, self.data.weight) + self.missing
        H = H + torch.diag_embed((-log_step).exp().expand(H.shape[:-1]))
        g = J.mT @ off.flatten(1).unsqueeze(-1)
        return torch.cholesky_solve(g, torch.linalg.cholesky(H))[..., 0]

    def _growth(self, log_pull: Tensor, log_step: Tensor) -> Tensor:
        """Solve ``(1/τ + Σ w ρ ρᵀ) Δ = Σ w ρ`` in N, w = ``e^log_pull``, by coordinates β."""
        top = torch.maximum(log_pull.amax(-1, keepdim=True), -log_step)
        root = (0.5 * (log_pull - top)).exp()
        H = root.unsqueeze(-1) * self.K * root.unsqueeze(-2)
        H = H + torch.diag_embed((-log_step - top).exp().expand(root.shape))
        factor = torch.linalg.cholesky(H)
        return root * torch.cholesky_solve(root.unsqueeze(-1), factor)[..., 0]
