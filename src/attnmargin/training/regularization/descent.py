"""L-BFGS for a batch of trials, with a line search per trial."""

from collections import deque
from collections.abc import Callable

import torch
from torch import Tensor

from attnmargin.base.arrays import tiny

# Maps (B, k) to values (B,), infinite at points that are not allowed, and gradients (B, k).
Function = Callable[[Tensor], tuple[Tensor, Tensor]]
_MEMORY, _HALVINGS = 30, 30
_ARMIJO = 1e-4
# A smaller relative gain of a step counts as none.
_PROGRESS = 1e-15


def _dot(x: Tensor, y: Tensor) -> Tensor:
    return (x * y).sum(-1, keepdim=True)


def _direction(g: Tensor, pairs: deque[tuple[Tensor, Tensor, Tensor]]) -> Tensor:
    """Compute −H g, with H the L-BFGS inverse Hessian; without pairs, plain descent."""
    q, alphas = g, []
    for s, y, rho in reversed(pairs):
        alphas.append(rho * _dot(s, q))
        q = q - alphas[-1] * y
    if pairs:
        s, y, rho = pairs[-1]
        scale = _dot(s, y) / _dot(y, y).clamp_min(tiny(y))
        q = q * scale.where(rho > 0, 1.0)
    for (s, y, rho), alpha in zip(pairs, reversed(alphas), strict=True):
        q = q + (alpha - rho * _dot(y, q)) * s
    return -q


def minimise(function: Function, x: Tensor, iterations: int, tolerance: float) -> Tensor:
    """Minimise from x ``(B, k)`` until the norm of the gradient times ‖x‖ is below the tolerance.

    A trial that has converged, or that no step improves, stays where it is.
    """
    value, g = function(x)
    pairs: deque[tuple[Tensor, Tensor, Tensor]] = deque(maxlen=_MEMORY)
    live = torch.isfinite(value)
    fresh = torch.ones_like(live)  # no memory: the next step is plain descent
    for _ in range(iterations):
        live = live & (g.norm(dim=-1) * x.norm(dim=-1) > tolerance)
        if not bool(live.any()):
            break
        d = _direction(g, pairs)
        plain = fresh.unsqueeze(-1) | (_dot(g, d) >= 0)
        short = 0.1 * x.norm(dim=-1, keepdim=True) / g.norm(dim=-1, keepdim=True).clamp_min(tiny(g))
        d = torch.where(plain, -short * g, d)
        new, new_value, new_g, moved = _search(function, x, value, g, d, live)
        s, y = new - x, new_g - g
        curvature = _dot(s, y)
        good = moved.unsqueeze(-1) & (curvature > 1e-14 * _dot(y, y).sqrt() * _dot(s, s).sqrt())
        pairs.append((s, y, torch.where(good, 1.0 / curvature, 0.0)))
        moved = moved & (value - new_value > _PROGRESS * value.abs())
        # A trial that could not move drops its memory; it ends if plain descent fails too.
        lost = live & ~moved
        live = live & ~(lost & plain[..., 0])
        if bool(lost.any()):
            pairs = deque(
                ((s, y, rho.masked_fill(lost.unsqueeze(-1), 0.0)) for s, y, rho in pairs),
                maxlen=_MEMORY,
            )
        fresh = lost
        x, value, g = new, new_value, new_g
    return x


def _search(
    function: Function, x: Tensor, value: Tensor, g: Tensor, d: Tensor, live: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Backtrack along d from 1 until the Armijo condition holds; return also which trials moved."""
    best, best_value, best_g = x, value, g
    slope = _dot(g, d)[..., 0]
    length = torch.ones_like(value)
    waiting = live.clone()
    for _ in range(_HALVINGS):
        trial = x + length.unsqueeze(-1) * d
        new_value, new_g = function(trial)
        enough = new_value <= value + _ARMIJO * length * slope
        accept = waiting & enough & torch.isfinite(new_value)
        wide = accept.unsqueeze(-1)
        best, best_g = trial.where(wide, best), new_g.where(wide, best_g)
        best_value = new_value.where(accept, best_value)
        waiting = waiting & ~accept
        if not bool(waiting.any()):
            break
        length = torch.where(waiting, 0.5 * length, length)
    return best, best_value, best_g, live & ~waiting
