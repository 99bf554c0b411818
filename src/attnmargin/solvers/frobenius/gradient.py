"""A rough Frobenius solution of a large problem on any device: accelerated gradient ascent.

    max bᵀλ − ½‖Aᵀλ‖²,  λ ≥ 0 on inequalities,   with rows A of length one

A step costs two passes over the factored rows. Momentum restarts when it points downhill.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from attnmargin.margin.norms import scaled_norm
from attnmargin.margin.problem import MarginProblem

_STEPS, _POWER_STEPS = 400, 30
# The estimate of the largest eigenvalue is from below.
_SAFE = 1.1


def rough_multipliers(problem: MarginProblem) -> Tensor:
    """Return multipliers ``(M,)`` of one problem in float64, up to a factor."""
    length = problem.lengths()
    there = problem.mask & (length > 0)
    unit = length.where(there, 1.0)
    b, free = (problem.bound / unit).where(there, 0.0), problem.equality

    def image(x: Tensor) -> Tensor:
        """Compute ``A Aᵀ x``."""
        return (problem.apply(problem.adjoint(x / unit)) / unit).where(there, 0.0)

    curve = _SAFE * _largest(image, there)
    dual, ahead, weight = torch.zeros_like(b), torch.zeros_like(b), 1.0
    for _ in range(_STEPS):
        slope = b - image(ahead)
        new = ahead + slope / curve
        new = new.where(free, new.clamp_min(0.0)).where(there, 0.0)
        move = new - dual
        if float(slope @ move) < 0.0:
            weight = 1.0
        following = 0.5 * (1.0 + (1.0 + 4.0 * weight**2) ** 0.5)
        ahead = new + (weight - 1.0) / following * move
        dual, weight = new, following
    return dual / unit


def _largest(image: Callable[[Tensor], Tensor], there: Tensor) -> Tensor:
    """Estimate the largest eigenvalue by power steps."""
    x = there.to(torch.float64)
    for _ in range(_POWER_STEPS):
        x = image(x / scaled_norm(x))
    return scaled_norm(x)
