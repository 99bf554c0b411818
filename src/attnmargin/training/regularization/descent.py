"""L-BFGS for a batch of trials, with a line search per trial."""

from collections import deque
from collections.abc import Callable, Iterable
from typing import final

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


@final
class _State:
    """Where the trials are that still move, and what L-BFGS remembers of them."""

    def __init__(self, function: Function, x: Tensor) -> None:
        self.function, self.x, self.result = function, x, x.clone()
        self.value, self.g = function(x)
        self.rows = torch.arange(len(x), device=x.device)
        self.live = torch.isfinite(self.value)
        self.fresh = torch.ones_like(self.live)  # no memory: the next step is plain descent
        self.pairs: deque[tuple[Tensor, Tensor, Tensor]] = deque(maxlen=_MEMORY)

    def shrink(self, part: Callable[[Tensor], Function]) -> None:
        """Put away the trials that have ended."""
        self.result[self.rows] = self.x
        kept = self.live.nonzero()[:, 0]
        self.rows, self.x, self.value, self.g, self.live, self.fresh = (
            x[kept] for x in (self.rows, self.x, self.value, self.g, self.live, self.fresh)
        )
        self._remember((s[kept], y[kept], rho[kept]) for s, y, rho in self.pairs)
        self.function = part(self.rows)

    def _remember(self, pairs: Iterable[tuple[Tensor, Tensor, Tensor]]) -> None:
        self.pairs = deque(pairs, maxlen=_MEMORY)

    def step(self) -> None:
        """Search along the direction of L-BFGS, or down the gradient."""
        x, value, g = self.x, self.value, self.g
        d = _direction(g, self.pairs)
        plain = self.fresh.unsqueeze(-1) | (_dot(g, d) >= 0)
        short = 0.1 * x.norm(dim=-1, keepdim=True) / g.norm(dim=-1, keepdim=True).clamp_min(tiny(g))
        d = torch.where(plain, -short * g, d)
        self.x, self.value, self.g, moved = _search(self.function, x, value, g, d, self.live)
        s, y = self.x - x, self.g - g
        curvature = _dot(s, y)
        good = moved.unsqueeze(-1) & (curvature > 1e-14 * _dot(y, y).sqrt() * _dot(s, s).sqrt())
        self.pairs.append((s, y, torch.where(good, 1.0 / curvature, 0.0)))
        moved = moved & (value - self.value > _PROGRESS * value.abs())
        # A trial that could not move drops its memory; it ends if plain descent fails too.
        lost = self.live & ~moved
        self.live = self.live & ~(lost & plain[..., 0])
        if bool(lost.any()):
            gone = lost.unsqueeze(-1)
            self._remember((s, y, rho.masked_fill(gone, 0.0)) for s, y, rho in self.pairs)
        self.fresh = lost


def minimise(
    function: Function,
    x: Tensor,
    iterations: int,
    tolerance: float | Tensor,
    part: Callable[[Tensor], Function] | None = None,
) -> Tensor:
    """Minimise from x ``(B, k)`` until the norm of the gradient times ‖x‖ is below the tolerance.

    The tolerance is one number, or one per trial ``(B,)``. A trial that has converged, or that no
    step improves, stays where it is. ``part`` builds the function of some trials, by their places
    ``(m,)``; with it, trials that have ended cost no more.
    """
    state = _State(function, x)
    least = torch.as_tensor(tolerance, device=x.device).expand(len(x))
    for _ in range(iterations):
        going = state.g.norm(dim=-1) * state.x.norm(dim=-1) > least[state.rows]
        state.live = state.live & going
        count = int(state.live.sum())
        if count == 0:
            break
        if part is not None and 2 * count < len(state.live):
            state.shrink(part)
        state.step()
    state.result[state.rows] = state.x
    return state.result


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
