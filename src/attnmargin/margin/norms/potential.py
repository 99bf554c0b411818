"""The potential of mirror descent, ``ψ(x) = (1/p) Σ |x|^p``: its gradient, inverse and steps."""

import torch
from torch import Tensor

from attnmargin.margin.norms.norm import entrywise, working_dtype


def mirror(x: Tensor, p: "float | Tensor") -> Tensor:
    """Compute ``∇ψ(x) = sign(x) |x|^{p−1}``, with the potential ``ψ = (1/p) Σ |x|^p`` (paper B)."""
    return x if isinstance(p, float) and p == 2.0 else x.sign() * x.abs() ** (p - 1.0)


def inverse_mirror(y: Tensor, p: "float | Tensor") -> Tensor:
    """Solve ``∇ψ(x) = y`` for x: ``sign(y) |y|^{1/(p−1)}``."""
    return y if isinstance(p, float) and p == 2.0 else y.sign() * y.abs() ** (1.0 / (p - 1.0))


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
        return entrywise(x, p)[..., None, None]
    largest = x.abs().amax((-2, -1), keepdim=True)
    ratio = x.abs() / largest.where(largest > 0, 1.0)
    return largest * (ratio**p).sum((-2, -1), keepdim=True) ** (1.0 / p)
