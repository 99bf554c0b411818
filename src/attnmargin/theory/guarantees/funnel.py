"""Theorem B: inside a funnel around a locally optimal direction, descent never leaves it.

From a point W₀ the centre is ``W₀ = g₀ W_mm + V + r₀``: V has the offsets that descent tends to on
the support rows, and those of W₀ elsewhere. If a radius R > ‖r₀‖ satisfies the inequality of
``docs/guarantees.md``, then for ever ``W = g W_mm + V + r`` with g growing without bound and
``‖r‖² ≤ R² + 2b (g − g₀)``.
"""

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from attnmargin.base.compiled import in_threads
from attnmargin.theory.guarantees.frame import Frame, Obstacle
from attnmargin.theory.guarantees.tube import Tube

# Units in the last place by which a margin may be off, relative to |A|ᵀ|W|.
_UNITS = 32.0


@final
@dataclass(frozen=True, eq=False)
class Funnel:
    """The funnels of B trials, ``(B,)`` each; where there is none, ``proved`` is false."""

    proved: Tensor  # bool
    tube: Tube  # g₀, Θ, ‖V‖, R and b
    share: Tensor  # least attention of a selected token for ever
    log_gradient: Tensor  # log of a bound of ‖∇L‖ for ever
    longest: Tensor  # longest step for which the inequality was found to hold, if it was measured


def funnel_at(frame: Frame, W: Tensor, step: Tensor, *, measured: bool = True) -> Funnel:
    """Search for funnels around the directions of a frame, at W ``(B, d, e)``.

    Args:
        frame: of a selection.
        W: the points.
        step: the longest step, ``(B,)``; 0 is gradient flow.
        measured: whether to look for the longest step too.
    """
    usable = frame.obstacle == Obstacle.NONE
    m = frame.problem.apply(W)
    unsure = _UNITS * torch.finfo(m.dtype).eps * frame.problem.sizes(W)
    weight = frame.dual * frame.theta2.unsqueeze(-1)
    ideal = frame.at_support(frame.log_kappa + frame.gap.clamp_min(0.0).log() + frame.weight)
    ideal = (ideal - (frame.count * frame.dual).log()).where(frame.there, 0.0)
    zeta = (weight * ideal).sum(-1)
    own = frame.at_support(m)
    g = (weight * own).sum(-1)
    x = (own - (g - zeta).unsqueeze(-1) - ideal).where(frame.there, 0.0)
    unit = frame.at_support(frame.length).where(frame.there, 1.0)
    half = torch.linalg.solve_triangular(frame.factor, (x / unit).unsqueeze(-1), upper=False)
    rho = half.norm(dim=(-2, -1))
    inverse = torch.linalg.solve_triangular(frame.factor.mT, half, upper=True)[..., 0] / unit
    moved = (frame.gram @ inverse.unsqueeze(-1))[..., 0]
    noise = _UNITS * torch.finfo(m.dtype).eps / frame.least.clamp_min(1e-30)
    rho = rho * (1.0 + noise) + (frame.at_support(unsure) / unit).norm(dim=-1) / frame.least.sqrt()
    size = (frame.gram.abs() @ inverse.abs().unsqueeze(-1))[..., 0]
    # c copies of a token are one whose margin is lower by log c
    base = m - moved - unsure - noise.unsqueeze(-1) * size - frame.weight
    out = _searched(frame, base, (g, zeta, rho), (step, measured), usable)
    proved = usable & (out[:, 0] > 0) & (g > 0)
    R, b, _, share, log_gradient, longest = out.unbind(-1)
    off = (W.flatten(1).norm(dim=-1) ** 2 - g**2 / frame.theta2).clamp_min(0.0).sqrt() + rho
    tube = Tube(g, frame.theta2.sqrt(), off, R, b)
    return Funnel(proved, tube, share, log_gradient, longest)


def _searched(
    frame: Frame,
    base: Tensor,
    centre: tuple[Tensor, ...],
    step: tuple[Tensor, bool],
    usable: Tensor,
) -> Tensor:
    """Run the compiled search, ``(B, 6)``."""
    from attnmargin.theory.guarantees.funnel_kernel import search_funnels

    dual = torch.zeros_like(base).scatter_add(-1, frame.place, frame.dual.where(frame.there, 0.0))
    log_a = frame.log_kappa - torch.log(torch.tensor(float(frame.count), dtype=base.dtype))
    columns = (base, frame.across, frame.delta, frame.sigma, frame.gap, log_a, frame.bend,
               frame.length, dual, frame.sequence.to(base))  # fmt: skip
    order = frame.problem.mask.to(torch.int8).argsort(dim=-1, descending=True, stable=True)
    rows = torch.stack([column.gather(-1, order) for column in columns], 1).nan_to_num(0.0)
    held = frame.held.gather(-1, order)
    counts = frame.problem.mask.sum(-1).where(usable, 0).to(base)
    numbers = torch.stack(
        [*centre, frame.theta2.sqrt(), frame.spread, torch.full_like(centre[0], frame.count)], -1
    )
    out = torch.zeros(len(base), 6, dtype=base.dtype)
    measured = torch.full_like(counts, float(step[1]))
    given = (rows, held, counts, numbers, step[0].to(base), measured)
    arrays = [x.cpu().contiguous().numpy() for x in given]
    if len(base):
        in_threads(search_funnels, [*arrays, out.numpy()], len(base), patient=False)
    return out.to(base.device)
