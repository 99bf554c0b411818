"""Norms of W: Frobenius, nuclear and entrywise ℓp, each with its dual norm."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from numbers import Real
from typing import final

import torch
from torch import Tensor

from attnmargin.base.checks import check_number
from attnmargin.base.errors import InputError

# The solvers reach full accuracy in float64 for p in this range.
LEAST_POWER, LARGEST_POWER = 1.1, 10.0


class Norm(ABC):
    """A norm on matrices ``(*B, d, e)``; a vector is a matrix with one column."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name that :func:`as_norm` reads."""

    @abstractmethod
    def value(self, W: Tensor) -> Tensor:
        """Compute ``‖W‖``, shape ``(*B,)``."""

    @abstractmethod
    def dual_value(self, W: Tensor) -> Tensor:
        """Compute ``max ⟨W, V⟩`` over ``‖V‖ ≤ 1``, shape ``(*B,)``."""


def scaled_norm(x: Tensor, p: float = 2.0) -> Tensor:
    """Compute the ℓp norm over the last dimension, scaled if powers would over- or underflow."""
    if x.shape[-1] == 0:
        return x.sum(-1)
    plain = torch.linalg.vector_norm(x, ord=p, dim=-1)
    if plain.numel() == 0:
        return plain
    power = 0.9 * math.log10(torch.finfo(x.dtype).max) / p
    least, largest = plain.aminmax()
    if not bool((least > 10.0**-power) & (largest < 10.0**power)):
        unsafe = ~((plain > 10.0**-power) & (plain < 10.0**power))
        rows = x[unsafe]  # mostly rows of zeros
        largest = rows.abs().amax(-1, keepdim=True)
        scaled = rows / largest.where(largest > 0, 1.0)
        again = largest.squeeze(-1) * torch.linalg.vector_norm(scaled, ord=p, dim=-1)
        plain = plain.masked_scatter(unsafe, again)
    return plain


def _entrywise(W: Tensor, p: float) -> Tensor:
    return scaled_norm(W.flatten(-2), p)


@final
@dataclass(frozen=True)
class Frobenius(Norm):
    """``‖W‖_F``, its own dual norm. Gradient descent on W (paper A)."""

    @property
    def name(self) -> str:
        return "fro"

    def value(self, W: Tensor) -> Tensor:
        return _entrywise(W, 2.0)

    def dual_value(self, W: Tensor) -> Tensor:
        return self.value(W)


@final
@dataclass(frozen=True)
class Nuclear(Norm):
    """Sum of singular values; dual: the largest one. Gradient descent on (K, Q) (paper A)."""

    @property
    def name(self) -> str:
        return "nuc"

    def value(self, W: Tensor) -> Tensor:
        return _singular_values(W).sum(-1)

    def dual_value(self, W: Tensor) -> Tensor:
        return _singular_values(W).amax(-1)


def _singular_values(W: Tensor) -> Tensor:
    """Compute singular values; NaN, not an error, for a matrix that is not finite."""
    bad = ~torch.isfinite(W).all(-1).all(-1)
    values = torch.linalg.svdvals(W.masked_fill(bad[..., None, None], 0.0))
    return values.masked_fill(bad.unsqueeze(-1), torch.nan)


@final
@dataclass(frozen=True)
class Lp(Norm):
    """``(Σ |W_ij|^p)^{1/p}``, 1 < p < ∞; dual: ℓq with 1/p + 1/q = 1 (paper B)."""

    p: float

    def __post_init__(self) -> None:
        p = check_number("norm", self.p, "a finite p > 1")
        if not 1.0 < p < float("inf"):
            raise InputError("norm", f"p = {p:g}", "a finite p > 1")
        object.__setattr__(self, "p", p)

    @property
    def name(self) -> str:
        return repr(float(self.p))

    def value(self, W: Tensor) -> Tensor:
        return _entrywise(W, self.p)

    def dual_value(self, W: Tensor) -> Tensor:
        return _entrywise(W, self.p / (self.p - 1.0))


def as_norm(norm: "str | float | Norm") -> Norm:
    """Convert a name or a number to a norm.

    >>> as_norm("fro"), as_norm("nuc"), as_norm(1.75), as_norm("3")
    (Frobenius(), Nuclear(), Lp(p=1.75), Lp(p=3.0))
    """
    if isinstance(norm, Norm):
        return norm
    if not isinstance(norm, str | Real):
        raise InputError("norm", f"a {type(norm).__name__}", "'fro', 'nuc' or a number p > 1")
    if norm == "fro":
        return Frobenius()
    if norm == "nuc":
        return Nuclear()
    try:
        return Lp(float(norm))
    except (ValueError, OverflowError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError("norm", f"{norm!r:.80}", "'fro', 'nuc' or a number p > 1") from None


def check_power(p: float) -> float:
    """Return p as a float, or raise InputError unless solutions of its ℓp norm are exact."""
    p = check_number("p", p, "a number p > 1")
    if not LEAST_POWER <= p <= LARGEST_POWER:
        needs = f"a power from {LEAST_POWER:g} to {LARGEST_POWER:g}, where solutions are exact"
        raise InputError("p", f"{p:g}", needs)
    return p


def mirror(x: Tensor, p: "float | Tensor") -> Tensor:
    """Compute ``∇ψ(x) = sign(x) |x|^{p−1}``, with the potential ``ψ = (1/p) Σ |x|^p`` (paper B)."""
    return x if isinstance(p, float) and p == 2.0 else x.sign() * x.abs() ** (p - 1.0)


def inverse_mirror(y: Tensor, p: "float | Tensor") -> Tensor:
    """Solve ``∇ψ(x) = y`` for x: ``sign(y) |y|^{1/(p−1)}``."""
    return y if isinstance(p, float) and p == 2.0 else y.sign() * y.abs() ** (1.0 / (p - 1.0))


def working_dtype(x: Tensor) -> torch.dtype:
    """Return the dtype to compute in: at least float32."""
    return torch.promote_types(x.dtype, torch.float32)


def mirror_step(w: Tensor, step: Tensor, p: "float | Tensor", *, by_logs: bool = True) -> Tensor:
    """Take a step of mirror descent: solve ``∇ψ(w⁺) = ∇ψ(w) − step`` for w⁺ (paper B).

    Args:
        p: power of the potential; a tensor broadcasts against w.
        by_logs: avoid powers of small weights, which low precision would lose, and keep w
            unchanged where the step is zero. Plain powers are two to ten times as fast, in float64.

    >>> w, step = torch.tensor([2.0, -1.0]).double(), torch.tensor([3.0, 0.0]).double()
    >>> mirror_step(w, step, 3.0, by_logs=False).tolist()
    [1.0, -1.0]
    """
    if not by_logs:
        return inverse_mirror(mirror(w, p) - step, p)
    old, move = w.to(working_dtype(w)), step.to(working_dtype(w))
    return torch.where(move == 0.0, old, _step_by_logs(old, move, p)).to(w.dtype)


def _step_by_logs(old: Tensor, move: Tensor, p: "float | Tensor") -> Tensor:
    """Step by the ratio ``x = move / ∇ψ(old)``, computed from logarithms.

    The result is ``old (1 − x)^{1/(p−1)}`` where ``|x| ≤ 1``, else
    ``∇ψ⁻¹(−move) (1 − 1/x)^{1/(p−1)}``.
    """
    log_move = move.abs().log()
    log_x = log_move - (p - 1.0) * old.abs().log()
    ratio = (-log_x.abs()).exp() * move.sign() * old.sign()
    rest = torch.log1p(-ratio)
    near = old * (rest / (p - 1.0)).exp()
    far = -move.sign() * ((log_move + rest) / (p - 1.0)).exp()
    return torch.where(log_x <= 0.0, near, far)


def power_norm(x: Tensor, p: "float | Tensor") -> Tensor:
    """Compute the entrywise ℓp norm ``(B, 1, 1)`` of ``(B, d, e)``; p may be ``(B, 1, 1)``."""
    if isinstance(p, float):
        return _entrywise(x, p)[..., None, None]
    largest = x.abs().amax((-2, -1), keepdim=True)
    ratio = x.abs() / largest.where(largest > 0, 1.0)
    return largest * (ratio**p).sum((-2, -1), keepdim=True) ** (1.0 / p)
