"""The authors' way of training: plain torch, softmax and autograd, in float64.

An opinion that shares no code with :func:`attnmargin.train`. It is exact for as long as the
gradient is not lost in the rounding of the softmax.
"""

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from attnmargin.attention.losses import as_loss
from attnmargin.attention.softmax import sequences
from attnmargin.base.compiled import one_thread
from attnmargin.data.attention_data import AttentionData
from attnmargin.margin.norms import as_norm
from attnmargin.prediction.course import Course
from attnmargin.training import Trajectory
from attnmargin.training.methods import Adam, Steepest

# A gradient below this share of the terms that it is a sum of is rounded by about 1e-7.
_LOST = 1e-9
# Logits that differ by less, relative to their size, are the same.
_TIED = 1e-10
# Weights that differ by more, relative to their size, are not the same.
_SAME = 1e-6


@final
@dataclass(frozen=True, eq=False)
class PlainRun:
    """A plain run beside an exact one; tensors have the batch shape."""

    steps: Tensor  # int: the last record at which the plain gradient was still exact
    agrees: Tensor  # bool: until then, both selected the same tokens wherever one was clear
    apart: Tensor  # largest relative distance of the weights until then


@one_thread
def plain_run(data: AttentionData, course: Course, run: Trajectory) -> PlainRun:
    """Train with autograd from the same start, and compare at the records of a run."""
    batch = data.batch_shape
    B = batch.numel()
    steps = torch.zeros(B, dtype=torch.int64)
    agrees, apart = torch.ones(B, dtype=torch.bool), torch.zeros(B, dtype=torch.float64)
    if B == 0:
        return PlainRun(*(x.reshape(batch) for x in (steps, agrees, apart)))
    model = _Model(data, course, run)
    exact, k = torch.ones(B, dtype=torch.bool), 0
    for r, moment in enumerate(run.steps.tolist()):
        while k < moment and bool(exact.any()):
            exact &= model.step() > _LOST
            k += 1
        if not bool(exact.any()):
            break
        W = model.weights()
        own = run.W[r].reshape(B, data.d, data.d).double().cpu()
        distance = (W - own).norm(dim=(-2, -1)) / own.norm(dim=(-2, -1)).clamp_min(1.0)
        steps[exact], apart[exact] = moment, torch.maximum(apart, distance)[exact]
        agrees &= ~exact | model.same(W, own) | (distance < _SAME)
    return PlainRun(*(x.reshape(batch) for x in (steps, agrees, apart)))


@final
class _Model:
    """Attention in plain torch."""

    def __init__(self, data: AttentionData, course: Course, run: Trajectory) -> None:
        flat = sequences(data)
        B, d = len(flat.X), data.d
        assert flat.y is not None
        assert data.v is not None
        self.X, self.z, self.y = (x.double().cpu() for x in (flat.X, flat.z, flat.y))
        self.hidden = flat.unseen().cpu()
        self.v = data.v.expand(*data.batch_shape, d).reshape(B, d).double().cpu()
        self.loss, self.course = as_loss(course.loss), course
        self.lr = course.lr.reshape(-1, 1, 1)
        score = torch.einsum("bntd,bd->bnt", self.X, self.v).abs().amax(-1)
        self.size = score * self.X.norm(dim=-1).amax(-1) * self.z.norm(dim=-1)
        start = (run.W[0],) if len(run.last) == 1 else course.train(data, 0, 1).last
        self.parts = [x.reshape(B, d, -1).double().cpu().clone() for x in start]
        self.moments = [[torch.zeros_like(x), torch.zeros_like(x)] for x in self.parts]
        self.count = 0

    def weights(self) -> Tensor:
        """W, or K Qᵀ."""
        return self.parts[0] if len(self.parts) == 1 else self.parts[0] @ self.parts[1].mT

    def logits(self, W: Tensor) -> Tensor:
        found = torch.einsum("bntd,bde,bne->bnt", self.X, W, self.z)
        return found.masked_fill(self.hidden, -torch.inf)

    def same(self, W: Tensor, other: Tensor) -> Tensor:
        """Check whether two weights have the same most likely tokens, up to rounding."""
        first, second = self.logits(W), self.logits(other)
        size = first.masked_fill(self.hidden, 0.0).abs().amax(-1)
        behind = first.amax(-1) - first.gather(-1, second.argmax(-1, keepdim=True))[..., 0]
        return (behind <= _TIED * size).all(-1)

    def step(self) -> Tensor:
        """Take a step of the course; return gradients over the terms they are sums of, ``(B,)``."""
        parts = [part.requires_grad_() for part in self.parts]
        W = parts[0] if len(parts) == 1 else parts[0] @ parts[1].mT
        attention = torch.softmax(self.logits(W), -1)
        u = self.y * torch.einsum("bnt,bntd,bd->bn", attention, self.X, self.v)
        gradients = torch.autograd.grad(self.loss.value(u).mean(-1).sum(), parts)
        terms = (self.loss.log_slope(u.detach()).exp() * self.size).mean(-1)
        others = [x.detach().norm(dim=(-2, -1)) for x in reversed(parts)]
        others = others if len(parts) == 2 else [torch.ones_like(terms)]
        pairs = enumerate(zip(parts, gradients, strict=True))
        self.count += 1
        self.parts = [self._moved(x.detach(), g, self.moments[i]) for i, (x, g) in pairs]
        sizes = zip(gradients, others, strict=True)
        ratio = torch.stack([g.norm(dim=(-2, -1)) / (terms * other) for g, other in sizes])
        return ratio.nan_to_num(nan=0.0).amin(0)

    def _moved(self, x: Tensor, g: Tensor, moments: list[Tensor]) -> Tensor:
        p, settings = self.course.p, self.course.settings
        if isinstance(settings, Adam):
            return x - self.lr * self._of_adam(g, moments, settings)
        if settings is not None:
            return x - self.lr * self._of_steepest(g, moments, settings)
        if self.course.normalize:
            size = torch.linalg.vector_norm(g, p / (p - 1.0), dim=(-2, -1), keepdim=True)
            g = g / size.clamp_min(1e-300)
        if p == 2.0:
            return x - self.lr * g
        y = x.sign() * x.abs() ** (p - 1.0) - self.lr * g
        return y.sign() * y.abs() ** (1.0 / (p - 1.0))

    def _of_steepest(self, g: Tensor, moments: list[Tensor], settings: Steepest) -> Tensor:
        moments[0] = settings.momentum * moments[0] + g
        D = g + settings.momentum * moments[0] if settings.nesterov else moments[0]
        V = as_norm(settings.norm).steepest(D)
        return V if self.course.normalize else (D * V).sum((-2, -1), keepdim=True) * V

    def _of_adam(self, g: Tensor, moments: list[Tensor], settings: Adam) -> Tensor:
        one, two = settings.betas
        moments[0] = one * moments[0] + (1.0 - one) * g
        moments[1] = two * moments[1] + (1.0 - two) * g * g
        m = moments[0] / (1.0 - one**self.count)
        root = (moments[1] / (1.0 - two**self.count)).sqrt() + settings.eps
        return (m / root).nan_to_num(nan=0.0)
