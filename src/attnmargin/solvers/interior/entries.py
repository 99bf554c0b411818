"""The largest entry, and the sum of entries: a batched interior-point method for linear programmes.

    min max_k |w_k|   and   min Σ_k |w_k|   subject to   ⟨a_i, w⟩ ≥ b_i

With ``p = t − w ≥ 0`` and ``q = t + w ≥ 0`` the multipliers are ``α, β ≥ 0``, ``α − β = V = Aᵀλ``,
and ``Σ (α + β) = 1`` for the largest entry, whose t is one number, or ``α + β = 1`` for the sum.
Mehrotra's predictor and corrector; Newton's step needs one Schur matrix in λ with a weight for each
entry. The point keeps p, q, α and β: near the end one of each pair is far below rounding of the
other, and formulas that subtract them would lose it.
"""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, final

import torch
from torch import Tensor

from attnmargin.margin.problem import MarginProblem
from attnmargin.solvers.frobenius.method import Answer
from attnmargin.solvers.interior.schedule import (
    CAREFUL_PART,
    ENOUGH,
    LEAST_CENTRED,
    LP_LEAST_RATIO,
    LP_STAY_INSIDE,
    NOISE,
    REGULAR,
    TINY,
)
from attnmargin.solvers.interior.walk import (
    Members,
    UnitRows,
    Warm,
    follow_path,
    in_parts,
    ratio_step,
    solve_from_frobenius,
    unit_rows,
)


@final
@dataclass
class _Rows(Members):
    """Unit rows of B problems; constant."""

    A: Tensor  # (B, M, N)
    b: Tensor  # (B, M)
    free: Tensor  # bool (B, M): equality rows, whose multiplier has no sign


@final
@dataclass
class _Point(Members):
    """An interior point, or a direction."""

    dual: Tensor  # (B, M), λ
    slack: Tensor  # (B, M); one on free rows, which do not use it
    p: Tensor  # (B, N), t − w
    q: Tensor  # (B, N), t + w
    alpha: Tensor  # (B, N)
    beta: Tensor  # (B, N)

    @property
    def w(self) -> Tensor:
        """The entries of W."""
        return 0.5 * (self.q - self.p)


class _Aims(NamedTuple):
    """The changes of slack, p and q by which the products with their multipliers become μ."""

    slack: Tensor
    p: Tensor
    q: Tensor


def _times(A: Tensor, x: Tensor) -> Tensor:
    return (A @ x.unsqueeze(-1)).squeeze(-1)


class _Iteration:
    """A point, and Newton's system there."""

    def __init__(self, shared: bool, rows: _Rows, point: _Point) -> None:
        self.shared, self.rows, self.point = shared, rows, point
        self.values = _times(rows.A, point.w)
        self.V = _times(rows.A.mT, point.dual)
        signed = (point.slack * point.dual).where(~rows.free, 0.0).sum(-1)
        both = (point.p * point.alpha + point.q * point.beta).sum(-1)
        self.count = (~rows.free).sum(-1) + 2 * point.p.shape[-1]
        self.mu = (signed + both) / self.count
        self.theta = point.p / point.alpha, point.q / point.beta

    def gap(self) -> Tensor:
        """Compute the relative gap between W, scaled up, and the bound of λ."""
        b, free, size = self.rows.b, self.rows.free, self.point.w.abs()
        missing = (b / self.values).where(self.values > 0, torch.inf)
        lift = missing.where(~free & (b > 0), 1.0).amax(-1).clamp_min(1.0)
        error = ((self.values - b).abs() / (b.abs() + 1e-3)).where(free, 0.0).amax(-1)
        upper = (size.amax(-1) if self.shared else size.sum(-1)) * lift
        force = self.V.abs()
        bound = force.sum(-1) if self.shared else force.amax(-1)
        lower = (b * self.point.dual).sum(-1) / bound.clamp_min(TINY)
        gap = (upper - lower).abs() / upper
        return torch.maximum(gap, error).nan_to_num(nan=torch.inf, posinf=torch.inf)

    def factor(self) -> None:
        """Compute the weights of the entries, and factor the Schur matrix in λ by LU."""
        point, (p, q) = self.point, self.theta
        residual = self.V - (point.alpha - point.beta)
        # Entries without force answer rounding of the residual like a residual.
        noise = NOISE * point.dual.abs().amax(-1, keepdim=True)
        self.residual = residual.where(residual.abs() > noise, 0.0)
        self.both = p + q
        if self.shared:
            weight, self.slope = p * (q / self.both), (q - p) / self.both
            self.stiff = 4.0 * (1.0 / self.both).sum(-1, keepdim=True)
        else:
            weight = 0.25 * self.both
        A = self.rows.A
        schur = (A * weight.unsqueeze(-2)) @ A.mT
        if self.shared:
            steep = _times(A, self.slope)
            schur += (steep / self.stiff).unsqueeze(-1) * steep.unsqueeze(-2)
        diagonal = schur.diagonal(dim1=-2, dim2=-1)
        least = REGULAR * diagonal
        diagonal += (point.slack / point.dual).where(~self.rows.free, 0.0) + least
        self.lu, self.pivots, _ = torch.linalg.lu_factor_ex(schur)

    def _aims(self, mu: Tensor, before: _Point | None) -> _Aims:
        here, mu = self.point, mu.unsqueeze(-1)

        def aim(x: Tensor, z: Tensor, second: Tensor | float) -> Tensor:
            return (mu - second) / z - x

        old = before
        return _Aims(
            aim(here.slack, here.dual, 0.0 if old is None else old.dual * old.slack),
            aim(here.p, here.alpha, 0.0 if old is None else old.alpha * old.p),
            aim(here.q, here.beta, 0.0 if old is None else old.beta * old.q),
        )

    def _respond(self, aims: _Aims, h: Tensor) -> tuple[Tensor, Tensor]:
        """Compute the changes of α and β for a change h of their difference."""
        here, (p, q) = self.point, self.theta
        if not self.shared:
            short = 1.0 - here.alpha - here.beta
            return 0.5 * (short + h), 0.5 * (short - h)
        twice = here.p + here.q
        apart = twice.mean(-1, keepdim=True) - twice
        pull = aims.p + aims.q - apart
        short = 1.0 - (here.alpha + here.beta).sum(-1, keepdim=True)
        t = ((2.0 * pull / self.both + self.slope * h).sum(-1, keepdim=True) - short) / self.stiff
        rest = pull - 2.0 * t
        return (rest + q * h) / self.both, (rest - p * h) / self.both

    def direction(self, mu: Tensor, before: _Point | None) -> _Point:
        """Compute Newton's step to the centre at μ, with second-order terms of an earlier step."""
        rows, here, (p, q), aims = self.rows, self.point, self.theta, self._aims(mu, before)

        def moves(h: Tensor) -> tuple[Tensor, ...]:
            alpha, beta = self._respond(aims, h)
            return aims.p - p * alpha, aims.q - q * beta, alpha, beta

        still = moves(self.residual)
        centre = (aims.slack + here.slack).where(~rows.free, 0.0)
        right = rows.b - self.values + centre - _times(rows.A, 0.5 * (still[1] - still[0]))
        dual = torch.linalg.lu_solve(self.lu, self.pivots, right.unsqueeze(-1)).squeeze(-1)
        slack = (aims.slack - here.slack / here.dual * dual).where(~rows.free, 0.0)
        return _Point(dual, slack, *moves(self.residual + _times(rows.A.mT, dual)))

    def lengths(self, move: _Point) -> tuple[Tensor, Tensor]:
        """Find the longest steps ≤ 1 of W and of the multipliers."""
        here, free = self.point, self.rows.free
        primal = [
            (x, dx) for x, dx in ((here.slack, move.slack), (here.p, move.p), (here.q, move.q))
        ]
        dual = (here.dual.where(~free, 1.0), move.dual.where(~free, 0.0))
        both = (
            (torch.cat([x for x, _ in primal], -1), torch.cat([dx for _, dx in primal], -1)),
            (
                torch.cat((dual[0], here.alpha, here.beta), -1),
                torch.cat((dual[1], move.alpha, move.beta), -1),
            ),
        )
        first, second = ((LP_STAY_INSIDE * ratio_step(*x)).clamp(max=1.0) for x in both)
        return first, second

    def moved(self, move: _Point, primal: Tensor, dual: Tensor) -> _Point:
        """Take steps of given lengths."""
        here, x, z = self.point, primal.unsqueeze(-1), dual.unsqueeze(-1)
        return _Point(
            here.dual + z * move.dual,
            here.slack + x * move.slack,
            here.p + x * move.p,
            here.q + x * move.q,
            here.alpha + z * move.alpha,
            here.beta + z * move.beta,
        )

    def next(self, careful: bool) -> _Point:
        """Take a predictor-corrector step, or a short, well-centred one."""
        self.factor()
        first = self.direction(torch.zeros_like(self.mu), None)
        ahead = _Iteration(self.shared, self.rows, self.moved(first, *self.lengths(first)))
        ratio = (ahead.mu / self.mu).clamp(LP_LEAST_RATIO, 1.0)
        least = LEAST_CENTRED if careful else 0.0
        move = self.direction((ratio**3).clamp_min(least) * self.mu, None if careful else first)
        good = torch.stack([torch.isfinite(x).all(-1) for x in vars(move).values()]).all(0)
        part = CAREFUL_PART if careful else 1.0
        lengths = [(part * x).where(good, 0.0) for x in self.lengths(move)]
        return self.moved(_Point(*(x.nan_to_num() for x in vars(move).values())), *lengths)


def solve_entries(
    problem: MarginProblem, shared: bool, warm: Warm | None, enough: float = ENOUGH
) -> Answer:
    """Solve in float64; return multipliers ``(*B, M)``, W, outcome and iterations.

    Args:
        shared: the largest entry counts; else the sum.
        enough: relative gap at which problems end.
    """
    members = in_parts(partial(_solve_members, shared, enough), problem)
    return solve_from_frobenius(problem, warm, "lockstep", members)


def _solve_members(
    shared: bool, enough: float, problem: MarginProblem, guess: Tensor, value: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Solve feasible problems whose Frobenius multipliers and positive value are known."""
    unit = unit_rows(problem, guess, value)
    A = (unit.left.unsqueeze(-1) * unit.right(unit.query).unsqueeze(-2)).flatten(-2)
    rows = _Rows(A, unit.b, unit.free)

    def visit(rows: _Rows, point: _Point, *_: object) -> _Iteration:
        return _Iteration(shared, rows, point)

    point, steps = follow_path(visit, rows, _start(shared, rows, unit), enough=enough)
    force = _times(rows.A.mT, point.dual).abs()
    size = (force.sum(-1) if shared else force.amax(-1)).clamp_min(TINY).unsqueeze(-1)
    W = point.w.unflatten(-1, problem.shape) * value[:, None, None]
    return point.dual.where(unit.exists, 0.0) / unit.length / size, W, steps


def _start(shared: bool, rows: _Rows, unit: UnitRows) -> _Point:
    """Build a point inside all bounds from the guessed multipliers."""
    dual = unit.spread()
    V = _times(rows.A.mT, dual)
    scale, slack = unit.reach(_times(rows.A, V), 0.1)
    w, force = scale * V, V.abs()
    size = w.abs()
    if shared:
        t = 1.5 * size.amax(-1, keepdim=True)
        inside = 0.6 / force.sum(-1, keepdim=True).clamp_min(TINY)
        total = inside * force + 0.4 / w.shape[-1]
    else:
        t = size + 0.5 * size.mean(-1, keepdim=True)
        inside = 0.6 / force.amax(-1, keepdim=True).clamp_min(TINY)
        total = torch.ones_like(w)
    V = inside * V
    return _Point(inside * dual, slack, t - w, t + w, 0.5 * (total + V), 0.5 * (total - V))
