"""Learning rates: constant, per trial, scheduled, Lipschitz, Polyak and guarded."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch import Tensor

from attnmargin.attention.losses import Log, Squared
from attnmargin.attention.softmax import Objective, Slope
from attnmargin.base.arrays import as_tensor, tiny
from attnmargin.base.errors import InputError
from attnmargin.training.weights import Weights

_NEEDS = "a positive number, one per trial, a function of the step, Guarded, 'auto' or 'polyak'"


def lipschitz(objective: Objective, v: Tensor) -> Tensor:
    """Compute ``L_W``, the Lipschitz constant of the gradient in W (paper A, Lemma 4), ``(B,)``.

    ``L_W = (1/n) Σ a_i b_i`` with ``a_i = ‖v‖ ‖z_i‖² ‖X_i‖³``, ``b_i = M₀ ‖v‖ ‖X_i‖ + 3 M₁``.
    """
    flat = objective.flat
    X = torch.linalg.matrix_norm(flat.X, 2)
    size = torch.linalg.vector_norm(v, dim=-1, keepdim=True)
    largest = (torch.linalg.vector_norm(flat.X, dim=-1).amax((-2, -1)) * size[..., 0]).unsqueeze(-1)
    M0, M1 = objective.loss.constants(largest)
    a = size * flat.z.square().sum(-1) * X**3
    return (a * (M0 * size * X + 3.0 * M1)).mean(-1)


def log_lipschitz(E: Tensor, longest: float) -> Tensor:
    """Compute ``L = 2 √T_max ‖E‖⁴`` of the log-loss with C Eᵀ = I (paper C, (23)), ``(*B,)``.

    ``‖E‖`` is the spectral norm of embeddings ``(*B, K, d)``, and T_max the longest sequence.
    """
    return 2.0 * longest**0.5 * torch.linalg.matrix_norm(E, 2) ** 4


def _log_lipschitz(objective: Objective) -> Tensor:
    """Compute L of (23), ``(B,)``; E has the different tokens and queries of a trial as rows."""
    flat, gamma = objective.flat, objective.gamma
    assert gamma is not None
    seen = torch.ones_like(gamma, dtype=torch.bool) if flat.hidden is None else ~flat.hidden
    label = (gamma == 1.0) & seen
    if not bool((label | (gamma == 0.0) | ~seen).all() and label.any(-1).all()):
        needs = "scores 1 at the label, which must occur, and 0 elsewhere (C Eᵀ = I)"
        raise InputError("lr", "'auto' with the loss 'log' and other scores", needs)
    found = []
    for X, z, mask in zip(flat.X, flat.z, seen, strict=True):
        E = torch.cat((X[mask], z)).unique(dim=0)
        found.append(log_lipschitz(E, float(mask.sum(-1).max())))
    return torch.stack(found)


def excess(objective: Objective, slope: Slope, tokens: Tensor | None = None) -> Tensor:
    """Compute ``(L − L⋆) / e^{log_scale}``, ``(B, 1, 1)``, with L⋆ the loss of the optimal tokens.

    ``tokens`` ``(B, N)`` replace the optimal ones. Near its best value, the excess of a sequence is
    its slope times ``Σ_t s_it (γ_opt − γ_it)``, summed in a form that does not underflow.
    """
    gamma, loss, hidden = objective.gamma, objective.loss, objective.flat.hidden
    if gamma is None:
        raise InputError("head", "another head", "the linear head, whose best loss is known")
    # (1 − u)² falls up to 1: if all scores are below, the optimal tokens have its least value.
    below = isinstance(loss, Squared) and bool(
        (gamma if hidden is None else gamma[~hidden]).lt(1.0).all()
    )
    if not (loss.always_falls or below):
        needs = "a loss that falls at all scores, so that the optimal tokens have the least"
        raise InputError("loss", repr(loss.name), needs)
    if tokens is None:
        tokens = (gamma if hidden is None else gamma.masked_fill(hidden, -torch.inf)).argmax(-1)
    best = gamma.gather(-1, tokens.unsqueeze(-1))[..., 0]
    top = gamma.gather(-1, slope.top)[..., 0]
    u = top + slope.mean[..., 0]
    largest = slope.log_scale + math.log(gamma.shape[-2])
    direct = (loss.value(u) - loss.value(best)) * (-largest[..., 0]).clamp_max(700.0).exp()
    # The slope at the midpoint makes the product correct to second order.
    log_weight = slope.log_s + loss.log_slope(0.5 * (u + best)).unsqueeze(-1) - largest
    weight = log_weight.masked_fill(slope.lift == 0, -torch.inf).exp()
    near = -(weight * slope.lift).sum(-1)
    return near.where(((best - u).abs() < 1e-5) & (top == best), direct).sum(-1)[:, None, None]


class Rates(ABC):
    """The rate of a step."""

    # Whether the rate depends on the weights and on the gradient's scale.
    adaptive: ClassVar[bool] = False

    @abstractmethod
    def __call__(self, k: int, slope: Slope, weights: Weights) -> Tensor:
        """Return the rate of step k, ``(B, 1, 1)``."""


class Planned(Rates):
    """A rate that depends only on the step, so that many steps can run in one call."""

    @abstractmethod
    def between(self, k: int, end: int) -> Tensor:
        """Return the rates of steps k, …, end − 1, ``(B, end − k)``."""


@final
class Constant(Planned):
    """The same rate in every step."""

    def __init__(self, rate: Tensor) -> None:
        self.rate = rate  # (B, 1, 1)

    def __call__(self, k: int, slope: Slope, weights: Weights) -> Tensor:
        return self.rate

    def between(self, k: int, end: int) -> Tensor:
        return self.rate[:, 0].expand(-1, end - k)


@final
class Scheduled(Planned):
    """A rate given by a function of the step."""

    def __init__(self, schedule: Callable[[int], Tensor]) -> None:
        self.schedule = schedule

    def __call__(self, k: int, slope: Slope, weights: Weights) -> Tensor:
        return self.schedule(k)

    def between(self, k: int, end: int) -> Tensor:
        return torch.cat([self.schedule(step)[:, 0] for step in range(k, end)], -1)


@final
class Polyak(Rates):
    """``(L − L⋆) / ‖∇L‖²``, relative to the inverse of the scale of the gradient.

    No step is longer than one: near a selection that is locally but not globally optimal, the
    gradient vanishes but the excess does not.
    """

    adaptive = True

    def __init__(self, objective: Objective) -> None:
        self.objective = objective

    def __call__(self, k: int, slope: Slope, weights: Weights) -> Tensor:
        square = weights.square(slope)
        square = square.clamp_min(tiny(square))
        return torch.minimum(excess(self.objective, slope) / square, square.rsqrt())

    def between(self, k: int, end: int) -> Tensor:
        """Return zeros ``(B, end − k)``: the kernel computes the rates of these steps itself."""
        return self.objective.flat.X.new_zeros(len(self.objective.flat.X), end - k)


@final
@dataclass(frozen=True)
class Guarded(Rates):
    """Length of normalised steps with a guard, ``W⁺ = W − lr ∇L / (‖∇L‖ + guard)``.

    Typical float64 code adds such a guard, of the size of rounding, to avoid dividing by zero. Once
    the gradient has fallen to the guard, W grows only like the logarithm of the steps.

    Example:
        >>> import attnmargin as am
        >>> data = am.random_data(3, 4, 6, name="train")
        >>> free, held = (am.train(data, lr=lr, steps=9000, record=9000)
        ...               for lr in (0.1, am.Guarded(0.1)))
        >>> bool(held.W[-1].norm() < 0.2 * free.W[-1].norm())
        True
    """

    lr: float
    guard: float = 2.0**-52
    adaptive: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for name, value in (("lr", self.lr), ("guard", self.guard)):
            if not isinstance(value, float | int) or not 0.0 < value < math.inf:
                raise InputError(name, repr(value), "a positive number")

    def __call__(self, k: int, slope: Slope, weights: Weights) -> Tensor:
        square = weights.square(slope)
        log_norm = slope.log_scale + 0.5 * square.clamp_min(tiny(square)).log()
        return self.lr * torch.sigmoid(log_norm - math.log(self.guard))


@final
@dataclass(frozen=True)
class Decaying:
    """The rate ``η_t = lr t^{−power}`` of step t = 1, 2, …: a function of the step, counted from 0.

    With power 1/2 margins of normalised steepest descent on linear classifiers converge fastest
    (Fan, Schmidt and Thrampoulidis, 2502.04664).

    >>> [Decaying(0.6, 0.5)(k) for k in (0, 3, 8)]
    [0.6, 0.3, 0.19999999999999998]
    """

    lr: float
    power: float = 0.5

    def __post_init__(self) -> None:
        for name, value in (("lr", self.lr), ("power", self.power)):
            if not isinstance(value, float | int) or not 0.0 < value < math.inf:
                raise InputError(name, repr(value), "a positive number")

    def __call__(self, k: int) -> float:
        return float(self.lr * (k + 1) ** -self.power)


Rate = float | Tensor | Callable[[int], "float | Tensor"] | str | Guarded


def as_rates(lr: Rate, objective: Objective, v: Tensor | None, penalty: float) -> Rates:
    """Build the rates ``(B, 1, 1)`` from the user's ``lr``."""
    B, like = len(objective.flat.X), objective.flat.X
    if isinstance(lr, Guarded):
        return lr
    if isinstance(lr, str):
        if lr == "polyak":
            return Polyak(objective)
        if lr != "auto":
            raise InputError("lr", repr(lr), _NEEDS)
        lr = 1.0 / (_lipschitz(objective, v) + 2.0 * penalty)
    if callable(lr):
        schedule = lr
        return Scheduled(lambda k: _wide(schedule(k), B, like, objective.flat.batch))
    return Constant(_wide(lr, B, like, objective.flat.batch))


def _lipschitz(objective: Objective, v: Tensor | None) -> Tensor:
    """Compute the Lipschitz constant of the gradient in W, ``(B,)``: Lemma 4 of A, or (23) of C."""
    if objective.gamma is not None and isinstance(objective.loss, Log):
        return _log_lipschitz(objective)
    if v is None or objective.gamma is None:
        raise InputError("lr", "'auto' with this head", "the linear head of Lemma 4")
    return lipschitz(objective, v)


def _wide(lr: float | Tensor, B: int, like: Tensor, batch: torch.Size) -> Tensor:
    """Check a number, or one per trial, and expand it to ``(B, 1, 1)``."""
    rate = as_tensor("lr", lr).to(like)
    bad = ~(torch.isfinite(rate) & (rate > 0))
    if bool(bad.any()):
        raise InputError("lr", f"{float(rate[bad].flatten()[0]):g}", _NEEDS)
    if rate.ndim and rate.shape not in (batch, (B,)):
        raise InputError("lr", f"shape {tuple(rate.shape)}", f"a number or shape {tuple(batch)}")
    return rate.reshape(-1, 1, 1).expand(B, 1, 1)
