"""The loss as a function of one vector per trial, in a form that does not underflow."""

import math
from abc import ABC, abstractmethod
from typing import Self, final

import torch
from torch import Tensor
from torch.nn.functional import pad

from attnmargin.attention.losses import Log, Loss
from attnmargin.attention.score import barrier
from attnmargin.attention.softmax import Objective, Sequences
from attnmargin.base.arrays import tiny
from attnmargin.margin.norms import power_norm
from attnmargin.training.rates import excess
from attnmargin.training.weights import Entries, Factors, Movable

# Rounding of a loss, in units in the last place.
_ROUNDING = 64.0
# A smaller relative difference of the lengths of factors is left by the descent.
_SHORTER = 1e-6


class Landscape(ABC):
    """A loss of vectors ``(B, k)``, which consist of parts with a bound each."""

    goal: Objective
    weights: Movable
    parts: tuple[int, ...]  # lengths of the parts

    @abstractmethod
    def at(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Compute the value ``(B,)``, infinite where x is not allowed, and the gradient in x."""

    @abstractmethod
    def take(self, rows: Tensor) -> Self:
        """Build the landscape of some trials, int ``(B',)``."""

    @abstractmethod
    def starts(self, count: int, generator: torch.Generator) -> Tensor:
        """Draw points at which the softmax is not saturated, ``(B, count, k)``."""

    def shortest(self, x: Tensor) -> Tensor:
        """Find the shortest vector of the same weights as x."""
        return x

    @abstractmethod
    def doubt(self, x: Tensor) -> Tensor:
        """Compute the rounding of the value at x, ``(B,)``."""

    @abstractmethod
    def proved(self, x: Tensor) -> Tensor:
        """Check whether x proves that no other minima need to be searched, bool ``(B,)``."""


def best_tokens(goal: Objective) -> Tensor:
    """Mark the tokens of largest score, bool ``(B, N, T)``."""
    assert goal.gamma is not None
    gamma, hidden = goal.gamma, goal.flat.hidden
    visible = gamma if hidden is None else gamma.masked_fill(hidden, -torch.inf)
    return visible == visible.amax(-1, keepdim=True)


def some(flat: Sequences, rows: Tensor) -> Sequences:
    """Select trials of sequences."""
    hidden, y, blind = (None if x is None else x[rows] for x in (flat.hidden, flat.y, flat.blind))
    X, z, batch = flat.X[rows], flat.z[rows], torch.Size((len(rows),))
    return Sequences(X, z, hidden, y, batch, flat.queries, blind)


def _some_goal(goal: Objective, flat: Sequences, rows: Tensor) -> Objective:
    gamma = None if goal.gamma is None else goal.gamma[rows]
    return Objective(flat, goal.head, goal.loss, gamma)


def _reach(flat: Sequences) -> tuple[Tensor, Tensor]:
    """Compute the largest ``‖x_it − x_i1‖ ‖z_i‖`` and the largest ``‖x_it‖``, ``(B, 1, 1)``."""
    size = power_norm(flat.z.flatten(0, 1).unsqueeze(-1), 2.0)[:, 0, 0].reshape(flat.z.shape[:2])
    apart = torch.linalg.vector_norm(flat.X - flat.X[:, :, :1], dim=-1).amax(-1)
    longest = torch.linalg.vector_norm(flat.X, dim=-1).amax((-2, -1))
    both = torch.stack(((apart * size).amax(-1), longest))
    both = both.where(both > 0, 1.0)
    return both[0, :, None, None], both[1, :, None, None]


def _normal(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def _draws(flat: Sequences, count: int, generator: torch.Generator) -> Tensor:
    """Draw matrices ``(B, count, d, d)`` with logits from about 0.3 to 30.

    Half of them are plain noise, half pull every sequence to a random token, by a random force. All
    trials have the same draws, so that a batch equals its loop.
    """
    _, N, T, d = flat.X.shape
    noise = _normal((count, d, d), generator).to(flat.X)
    force = _normal((count, N, T), generator) * _normal((count, N, 1), generator).exp()
    spread = torch.linspace(0.0, 1.0, count, dtype=torch.float64)
    length = (0.3 * 100.0**spread)[:, None, None].to(flat.X)
    pulled = torch.einsum("mnt,bntd,bne->bmde", force.to(flat.X), flat.X, flat.z)
    even = torch.arange(count, device=flat.X.device)[:, None, None] % 2 == 0
    both = torch.where(even, noise, pulled)
    size = torch.linalg.matrix_norm(both, keepdim=True).clamp_min(tiny(both))
    return length * both / size / _reach(flat)[0].unsqueeze(1)


def _length(x: Tensor) -> Tensor:
    return torch.linalg.vector_norm(x, dim=-1, keepdim=True)


def _balanced(W: Tensor, m: int) -> Tensor:
    """Factor W ``(…, d, d)`` as ``K Qᵀ`` of width m with the same singular values, ``(…, k)``."""
    U, sizes, Vh = torch.linalg.svd(W)
    root = sizes.sqrt().unsqueeze(-2)
    wide = (0, max(m - W.shape[-1], 0))
    both = (pad(part * root, wide)[..., :m].flatten(-2) for part in (U, Vh.mT))
    return torch.cat(tuple(both), -1)


@final
class WeightsLandscape(Landscape):
    """``log(L − L⋆)`` of W or (K, Q), in the cone of a selection if tokens are given."""

    def __init__(
        self, goal: Objective, weights: Movable, tokens: Tensor | None, cone: float
    ) -> None:
        self.goal, self.weights, self.tokens, self.cone = goal, weights, tokens, cone
        self.parts = (weights.vector().shape[-1],)

    def at(self, x: Tensor) -> tuple[Tensor, Tensor]:
        self.weights.place(x)
        logits = self.weights.logits()
        slope = self.goal.slope(logits)
        above = excess(self.goal, slope, self.tokens)[:, 0]
        value = (slope.log_scale[:, 0] + above.clamp_min(0.0).log())[:, 0]
        g = -self.weights.pull(slope) / above.where(above > 0, 1.0)
        allowed = above[:, 0] > 0
        if self.tokens is not None:
            least = self.cone * power_norm(self.weights.matrix(), 2.0)[:, 0, 0]
            wall = barrier(logits, *self._masks(self.tokens))
            allowed = allowed & (wall >= least)
        return value.where(allowed, torch.inf), g

    def _masks(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Mask tokens of lower score than the chosen ones, and the others, bool ``(B, N, T)``."""
        gamma, hidden = self.goal.gamma, self.goal.flat.hidden
        assert gamma is not None
        own = tokens.unsqueeze(-1)
        low = gamma < gamma.gather(-1, own)
        high = (~low).scatter(-1, own, False)
        return (low, high) if hidden is None else (low & ~hidden, high & ~hidden)

    def take(self, rows: Tensor) -> Self:
        flat = some(self.goal.flat, rows)
        weights: Movable
        if isinstance(self.weights, Factors):
            weights = Factors(flat, self.weights.K[rows], self.weights.Q[rows])
        else:
            weights = Entries(flat, self.weights.matrix()[rows])
        tokens = None if self.tokens is None else self.tokens[rows]
        return type(self)(_some_goal(self.goal, flat, rows), weights, tokens, self.cone)

    def starts(self, count: int, generator: torch.Generator) -> Tensor:
        W = _draws(self.goal.flat, count, generator)
        if not isinstance(self.weights, Factors):
            return W.flatten(2)
        return _balanced(W, self.weights.K.shape[-1])

    def shortest(self, x: Tensor) -> Tensor:
        """The factors of W with ``(‖K‖² + ‖Q‖²) / 2 = ‖W‖_*``, unless rounding decides."""
        if not isinstance(self.weights, Factors):
            return x
        self.weights.place(x)
        short = _balanced(self.weights.matrix(), self.weights.K.shape[-1])
        shorter = _length(short) < (1.0 - _SHORTER) * _length(x)
        return short.where(shorter, x)

    def doubt(self, x: Tensor) -> Tensor:
        value, _ = self.at(x)
        loss = self.goal.slope(self.weights.logits()).loss
        eps = torch.finfo(x.dtype).eps
        return _ROUNDING * eps * (1.0 + loss.abs() * (-value).exp())

    def proved(self, x: Tensor) -> Tensor:
        """If W selects the optimal tokens, the loss falls to its infimum along it.

        A local path has the cone of its selection, and ``−Σ log s_i,opt`` is convex. Different
        tokens of the same largest score are a minimum each.
        """
        self.weights.place(x)
        if self.tokens is not None:
            return torch.ones(len(x), dtype=torch.bool, device=x.device)
        best, logits = best_tokens(self.goal), self.weights.logits()
        others = logits.masked_fill(best, -torch.inf).amax(-1)
        own = logits.masked_fill(~best, -torch.inf).amax(-1)
        return ((own > others).all(-1) | self._convex(best)) & self._one_best(best)

    def _one_best(self, best: Tensor) -> Tensor:
        """Check whether the best tokens of every sequence are copies of one, bool ``(B,)``."""
        X = self.goal.flat.X
        first = best.to(torch.int8).argmax(-1)[..., None, None].expand(-1, -1, 1, X.shape[-1])
        return ((X.gather(-2, first) == X).all(-1) | ~best).all((-2, -1))

    def _convex(self, best: Tensor) -> Tensor:
        goal = self.goal
        assert goal.gamma is not None
        zero_one = (goal.gamma == best.to(goal.gamma)).all((-2, -1))
        return zero_one & isinstance(goal.loss, Log)


def log_value(loss: Loss, u: Tensor) -> Tensor:
    """Compute ``log ℓ(u)``, also where ℓ(u) is about e^{−u} and would underflow."""
    if loss.name not in ("logistic", "exponential"):
        return loss.value(u).log()
    far = u > 15.0
    near = loss.value(u.clamp_max(15.0)).log()
    tail = -u - (0.5 * (-u).exp() if loss.name == "logistic" else 0.0)
    return tail.where(far, near)


def mean_loss(loss: Loss, u: Tensor) -> tuple[Tensor, Tensor]:
    """Compute ``log L``, or L if it may be negative, of margins ``(B, N)``, and −∂/∂u."""
    if loss.name == "linear":
        return -u.mean(-1), torch.full_like(u, 1.0 / u.shape[-1])
    total = torch.logsumexp(log_value(loss, u), -1)
    weight = (loss.log_slope(u) - total.unsqueeze(-1)).exp() * loss.falls(u)
    return total - math.log(u.shape[-1]), weight


@final
class JointLandscape(Landscape):
    """``log L`` of a head and weights (v, W); L itself for the linear loss."""

    def __init__(self, goal: Objective, W: Tensor) -> None:
        self.goal, self.weights = goal, Entries(goal.flat, W)
        d = W.shape[-1]
        self.parts = (d, d * d)

    def at(self, x: Tensor) -> tuple[Tensor, Tensor]:
        v, W = x.split(self.parts, -1)
        self.goal.use_head(v)
        self.weights.place(W)
        slope, flat = self.goal.slope(self.weights.logits()), self.goal.flat
        assert flat.y is not None
        pulled = flat.y.unsqueeze(-1) * (slope.s.unsqueeze(-2) @ flat.X).squeeze(-2)
        u = (pulled @ v.unsqueeze(-1)).squeeze(-1)
        value, weight = mean_loss(self.goal.loss, u)
        scale = slope.log_scale[:, 0]
        if self.goal.loss.name != "linear":
            scale = scale - value.unsqueeze(-1)
        of_W = -scale.exp() * self.weights.pull(slope)
        of_v = -(weight.unsqueeze(-1) * pulled).sum(-2)
        return value.where(torch.isfinite(value), torch.inf), torch.cat((of_v, of_W), -1)

    def take(self, rows: Tensor) -> Self:
        flat = some(self.goal.flat, rows)
        return type(self)(_some_goal(self.goal, flat, rows), self.weights.matrix()[rows])

    def starts(self, count: int, generator: torch.Generator) -> Tensor:
        W, flat = _draws(self.goal.flat, count, generator), self.goal.flat
        v = _normal((count, self.parts[0]), generator).to(W)
        size = torch.linalg.vector_norm(v, dim=-1, keepdim=True)
        return torch.cat((v / size / _reach(flat)[1], W.flatten(2)), -1)

    def doubt(self, x: Tensor) -> Tensor:
        value, _ = self.at(x)
        return _ROUNDING * torch.finfo(x.dtype).eps * (1.0 + value.abs())

    def proved(self, x: Tensor) -> Tensor:
        """Never: several selections can have heads that separate them, with a minimum each."""
        return torch.zeros(len(x), dtype=torch.bool, device=x.device)
