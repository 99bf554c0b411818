"""Theorem C: inside a cone around a locally optimal ℓp direction, mirror descent never leaves it.

With ``y = ∇ψ(W)``, ``N = ‖W‖_p``, the direction ``v = W_mm / ‖W_mm‖_p`` and ``H = ⟨y, v⟩``, the
divergence of the directions is ``ε = 1 − H / N^{p−1}``. If it is at most ε₀ at W, and

    Θ (1 − P)  >  (1 − ε₀) (Θ + (K + τ A) / N₀),    N₀ = H^{1/(p−1)},

then it stays at most ε₀ for ever, ``N`` grows without bound, and ε tends to zero. P is the force of
the higher tokens, K the mismatch of forces and multipliers, τ bounds the primal length of a step,
and A the rows; all of them hold at every point of the cone (``docs/guarantees.md``).
"""

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from attnmargin.attention.softmax import Objective
from attnmargin.margin.norms import mirror, scaled_norm
from attnmargin.margin.solution import Solution
from attnmargin.theory.guarantees.frame import ScoreRows, score_rows
from attnmargin.theory.guarantees.spread import Spread, build_spread

# Units in the last place by which sums may be off, and a share of the inequality that is kept back.
_UNITS, _SAFE = 64.0, 1.0 - 1e-9
# Multipliers below this share of the largest are left out of the lower bound of the force.
_HELD = 1e-6
# How many divergences ε₀ are tried, spaced geometrically from that of W, or this least one, to 1.
_TRIED, _LEAST = 40, 1e-12
# A row is far, and its force is added as it is, where it is below this share of the others.
_FAR = 0.01
_HALVINGS = 80


@final
@dataclass(frozen=True, eq=False)
class Direction:
    """What depends on data, selection and p alone; B trials of M rows."""

    p: float
    solution: Solution  # batch (B,)
    rows: ScoreRows
    v: Tensor  # (B, d, e)
    theta: Tensor  # (B,), 1/‖V‖_p of a feasible V
    above: Tensor  # (B,), ‖Σ w_j A_j‖_q, not below the largest margin
    weight: Tensor  # (B, M), w: multipliers that sum to one
    sigma: Tensor  # (B, M), ⟨A_j, V⟩ from below
    spread: Spread
    usable: Tensor  # bool (B,)


@final
@dataclass(frozen=True, eq=False)
class Cone:
    """The cones of B trials, ``(B,)`` each; where there is none, ``proved`` is false."""

    proved: Tensor  # bool: mirror flow from here never leaves the cone
    longest: Tensor  # longest step, in the dual norm, that is covered
    share: Tensor  # least attention of a selected token for ever
    log_gradient: Tensor  # log of a bound of ‖∇L‖_q for ever
    divergence: Tensor  # ε₀


def build_direction(
    goal: Objective, solution: Solution, counts: Tensor, doubt: Tensor, p: float
) -> Direction:
    """Build the direction of a solved selection; see :func:`build_frame` for the arguments."""
    problem, q = solution.problem, p / (p - 1.0)
    rows = score_rows(goal, problem, counts, doubt)
    upper = solution.certificate.upper.to(solution.W)
    usable = solution.feasible & torch.isfinite(upper)
    usable &= (torch.isfinite(rows.bend) | ~problem.mask).all(-1)
    V = solution.W.where(usable[:, None, None], 0.0)
    size = scaled_norm(V.flatten(1), p)
    V = V * (upper / size.where(size > 0, 1.0)).where(usable, 0.0)[:, None, None]
    eps = _UNITS * torch.finfo(V.dtype).eps
    sigma = problem.apply(V) - eps * problem.sizes(V)
    weight = solution.dual.clamp_min(0.0).where(problem.mask, 0.0)
    weight = weight.where(weight > _HELD * weight.amax(-1, keepdim=True), 0.0)
    total = weight.sum(-1, keepdim=True)
    weight = weight / total.where(total > 0, 1.0)
    v = V / upper.where(usable, 1.0)[:, None, None]
    spread = build_spread(problem, v, p)
    above = scaled_norm(problem.adjoint(weight).flatten(1), q) * (1.0 + eps)
    above = above + eps * (weight * spread.length).sum(-1)
    usable = usable & (total[:, 0] > 0)
    return Direction(p, solution, rows, v, 1.0 / upper, above, weight, sigma, spread, usable)


def cone_at(own: Direction, W: Tensor) -> Cone:
    """Search for the cones around directions in which W ``(B, d, e)`` is."""
    p = own.p
    N = scaled_norm(W.flatten(1), p)
    unit = W / N.where(N > 0, 1.0)[:, None, None]
    rho = (mirror(unit, p) * own.v).flatten(1).sum(-1)
    rounding = _UNITS * torch.finfo(W.dtype).eps * (1.0 + p)
    now = (1.0 - rho + rounding).clamp_min(_LEAST)
    size = N * (rho - rounding).clamp_min(0.0) ** (1.0 / (p - 1.0))
    none = torch.zeros_like(N)
    found = torch.stack((none, none, none, none + 1.0))
    for k in range(_TRIED):
        other = _cone_of(own, size, now ** (1.0 - k / _TRIED))
        found = other.where(other[0] > found[0], found)
    room, share, log_gradient, wide = found
    return Cone(room > 0, _longest(room, size, p), share, log_gradient, wide)


def _cone_of(own: Direction, size: Tensor, wide: Tensor) -> Tensor:
    """Check the inequality with ε₀ = wide ``(B,)``, from N₀ = size on.

    Returns:
        How long steps may be in the primal norm, or 0; the least attention; the log of the largest
        gradient; and ε₀: ``(4, B)``.
    """
    rows, problem = own.rows, own.solution.problem
    mask, N = problem.mask, size.unsqueeze(-1)
    away = own.spread.bound(wide.unsqueeze(-1))
    # Margins are at least N τ_j; D̂ and Q̂ bound what is not on the selected tokens.
    tau = (own.theta.unsqueeze(-1) * own.sigma - away).where(mask, torch.inf)
    odds = torch.exp(rows.weight - N * tau).where(mask, 0.0)
    lost, drop = (rows.per_sequence(x) for x in (odds, odds * rows.gap.abs()))
    low = (rows.gap > drop) & mask
    high = mask & ~low
    most = rows.log_kappa + rows.bend * drop + (rows.gap.abs() + drop).log() + rows.weight
    least = rows.log_kappa - rows.bend * drop - torch.log1p(lost) + rows.weight
    least = least + (rows.gap - drop).clamp_min(0.0).log()
    held = own.weight > 0
    centre = (own.weight * (least - own.weight.log())).where(held, 0.0).sum(-1)
    lead = N * (tau - own.above.unsqueeze(-1))
    force = torch.exp(most - centre.unsqueeze(-1) - lead).where(mask, 0.0)
    far = high | (low & ~held & (lead > 1.0) & (N * tau * torch.exp(-lead) < _FAR))
    near = torch.logsumexp(most.masked_fill(far | ~mask, -torch.inf), -1) - centre
    K = near + (force * N * tau).where(far, 0.0).sum(-1)
    P = (force * own.sigma).where(high, 0.0).sum(-1)
    length = own.spread.length
    A = length.where(low, 0.0).amax(-1) + (force * length).where(high, 0.0).sum(-1)
    least_row = own.sigma.where(mask, 1.0).amin(-1).clamp_max(1.0)
    gain = _SAFE * own.theta * (least_row - P) / (1.0 - wide).clamp_min(0.0)
    room = (size * (gain - own.above) - K) / A
    good = own.usable & (wide < 1.0) & (tau > 0).all(-1) & (own.above * size >= 1.0)
    good &= ~(held & ~low).any(-1) & ~(high & (lead < 1.0)).any(-1) & (room > 0)
    log_gradient = torch.logsumexp((most - N * tau + length.log()).where(mask, -torch.inf), -1)
    log_gradient = log_gradient - torch.log(torch.full_like(size, float(rows.sequences)))
    return torch.stack((room.where(good, 0.0), 1.0 / (1.0 + lost.amax(-1)), log_gradient, wide))


def _longest(room: Tensor, size: Tensor, p: float) -> Tensor:
    """Find the longest dual step whose primal length is at most ``room``, from N₀ = size on.

    The primal length is at most ``2^{2−q} ℓ^{q−1}`` for p ≥ 2, and ``ℓ (Y + ℓ)^{(2−p)/(p−1)} /
    (p − 1)`` with ``Y = N^{p−1}`` for p ≤ 2.
    """
    q = p / (p - 1.0)
    if p >= 2.0:
        return _SAFE * (room / 2.0 ** (2.0 - q)) ** (p - 1.0)
    Y, power = size ** (p - 1.0), (2.0 - p) / (p - 1.0)
    low, high = torch.zeros_like(room), (p - 1.0) * room * Y**-power
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        good = middle * (Y + middle) ** power <= (p - 1.0) * room
        low, high = low.where(~good, middle), high.where(good, middle)
    return _SAFE * low.nan_to_num(nan=0.0, posinf=0.0)
