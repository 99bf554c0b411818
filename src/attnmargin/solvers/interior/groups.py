"""The longest row or column: a batched primal-dual interior-point method over second-order cones.

    min t   subject to   ‖w_k‖ ≤ t for all groups k,   ⟨a_i, w⟩ ≥ b_i

The groups ``w_k`` are the rows of W, or its columns. The dual is ``max bᵀλ`` with ``V = Aᵀλ``,
``‖v_k‖ ≤ τ_k`` and ``Σ τ_k = 1``. The method takes Mehrotra's predictor and corrector in the
direction of Nesterov and Todd. In a group this scaling is the identity plus a matrix of rank one,
so that Newton's step needs one Schur matrix in λ.
"""

from dataclasses import dataclass
from functools import partial
from typing import final

import torch
from torch import Tensor

from attnmargin.margin.norms import scaled_norm
from attnmargin.margin.problem import MarginProblem
from attnmargin.solvers.frobenius.method import Answer
from attnmargin.solvers.interior.schedule import (
    CAREFUL_PART,
    ENOUGH,
    LEAST_CENTRED,
    LP_LEAST_RATIO,
    LP_STAY_INSIDE,
    NOISE,
    REFINEMENTS,
    REGULAR,
    TINY,
)
from attnmargin.solvers.interior.second_order import Cones, Scaling, cone_step, scaling
from attnmargin.solvers.interior.shared import span
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

# The path ends at this gap: rounding grows towards the boundary of the cones.
_REACH = 2e-10


def _by_groups(unit: UnitRows, columns: bool) -> tuple[Tensor, Tensor]:
    """Build the rows by groups, ``(B, M, G, m)``, and a basis ``(B, e, m)`` of every group.

    The rows of the shortest W lie in the span of the queries, its columns in that of the left
    factors.
    """
    if columns:
        basis, left = span(unit.left)
        return unit.right(unit.query).unsqueeze(-1) * left.unsqueeze(-2), basis
    basis, query = span(unit.query)
    return unit.left.unsqueeze(-1) * unit.right(query).unsqueeze(-2), basis


@final
@dataclass
class _Rows(Members):
    """Unit rows of B problems; constant."""

    A: Tensor  # (B, M, G, m)
    b: Tensor  # (B, M)
    free: Tensor  # bool (B, M): equality rows, whose multiplier has no sign


@final
@dataclass
class _Point(Members):
    """An interior point, or a direction."""

    dual: Tensor  # (B, M), λ
    slack: Tensor  # (B, M); one on free rows, which do not use it
    t: Tensor  # (B, G), all equal
    w: Tensor  # (B, G, m)
    tau: Tensor  # (B, G)
    zeta: Tensor  # (B, G, m), −V at the end

    @property
    def x(self) -> Cones:
        """The cones of W."""
        return Cones(self.t, self.w)

    @property
    def z(self) -> Cones:
        """The cones of the multipliers."""
        return Cones(self.tau, self.zeta)


class _Iteration:
    """A point, and Newton's system there."""

    def __init__(self, rows: _Rows, point: _Point) -> None:
        self.rows, self.point = rows, point
        self.flat = rows.A.flatten(-2)
        self.values, self.V = self._values(point.w), self._total(point.dual)
        signed = (point.slack * point.dual).where(~rows.free, 0.0).sum(-1)
        # Entries without force answer rounding of the residual by as much as it is to be corrected.
        residual = self.V + point.zeta
        noise = NOISE * point.dual.abs().amax(-1)[:, None, None]
        self.residual = residual.where(residual.abs() > noise, 0.0)
        self.count = (~rows.free).sum(-1) + point.t.shape[-1]
        self.mu = (signed + point.x.times(point.z).sum(-1)) / self.count

    def gap(self) -> Tensor:
        """Compute the relative gap between W, scaled up, and the bound of λ."""
        b, free = self.rows.b, self.rows.free
        missing = (b / self.values).where(self.values > 0, torch.inf)
        lift = missing.where(~free & (b > 0), 1.0).amax(-1).clamp_min(1.0)
        error = ((self.values - b).abs() / (b.abs() + 1e-3)).where(free, 0.0).amax(-1)
        upper = scaled_norm(self.point.w).amax(-1) * lift
        bound = scaled_norm(self.V).sum(-1).clamp_min(TINY)
        lower = (b * self.point.dual).sum(-1) / bound
        gap = (upper - lower).abs() / upper
        return torch.maximum(gap, error).nan_to_num(nan=torch.inf, posinf=torch.inf)

    def factor(self) -> None:
        """Factor the Schur matrix in λ by LU."""
        point, A = self.point, self.rows.A
        self.scaling: Scaling = scaling(point.x, point.z)
        turn = self.scaling
        weight = turn.weight.unsqueeze(-1).expand_as(point.w)
        along, steep = (torch.einsum("bmgk,bgk->bmg", A, x) for x in (turn.w, turn.slope))
        schur = (self.flat * weight.flatten(-2).unsqueeze(-2)) @ self.flat.mT
        schur -= (along * (2.0 * turn.weight / turn.bend).unsqueeze(-2)) @ along.mT
        self.stiff = (1.0 / (turn.weight * turn.bend)).sum(-1, keepdim=True)
        steep = steep.sum(-1)
        schur += (steep / self.stiff).unsqueeze(-1) * steep.unsqueeze(-2)
        diagonal = schur.diagonal(dim1=-2, dim2=-1)
        least = REGULAR * diagonal
        diagonal += (point.slack / point.dual).where(~self.rows.free, 0.0) + least
        self.lu, self.pivots, _ = torch.linalg.lu_factor_ex(schur)

    def _respond(self, force: Tensor, pull: Tensor) -> tuple[Tensor, Tensor]:
        """Compute the changes of t and w for a force on w and a pull on t."""
        turn = self.scaling
        pull = (pull + (turn.slope * force).sum(-1)).sum(-1, keepdim=True)
        dt = (pull / self.stiff).expand_as(self.point.t)
        return dt, turn.inside(force) + turn.slope * dt.unsqueeze(-1)

    def direction(self, mu: Tensor, before: _Point | None) -> _Point:
        """Compute Newton's step to the centre at μ, with second-order terms of an earlier step."""
        rows, point, turn = self.rows, self.point, self.scaling
        aim = mu.unsqueeze(-1) - (0.0 if before is None else before.dual * before.slack)
        centre = (aim / point.dual).where(~rows.free, 0.0)
        rho = turn.target(mu.unsqueeze(-1), None if before is None else (before.x, before.z))
        force = rho.w + self.residual
        short = (1.0 - point.tau.sum(-1, keepdim=True)) / point.t.shape[-1]
        pull = rho.t - short
        needed = rows.b - self.values + centre
        dual = self._multipliers(needed - self._values(self._respond(force, pull)[1]))
        t, w = self._respond(force + self._total(dual), pull)
        # Rounding grows towards the boundary: what the rows miss by it is corrected.
        weight = (point.slack / point.dual).where(~rows.free, 0.0)
        for _ in range(REFINEMENTS):
            more = self._multipliers(needed - weight * dual - self._values(w))
            second = self._respond(self._total(more), torch.zeros_like(t))
            dual, t, w = dual + more, t + second[0], w + second[1]
        slack = (centre - point.slack - weight * dual).where(~rows.free, 0.0)
        zeta = -self.residual - self._total(dual)
        return _Point(dual, slack, t, w, turn.pulled(rho, t, zeta), zeta)

    def _multipliers(self, right: Tensor) -> Tensor:
        """Solve Newton's system for λ."""
        return torch.linalg.lu_solve(self.lu, self.pivots, right.unsqueeze(-1)).squeeze(-1)

    def _values(self, w: Tensor) -> Tensor:
        """Compute the values of the rows."""
        return (self.flat @ w.flatten(-2).unsqueeze(-1)).squeeze(-1)

    def _total(self, dual: Tensor) -> Tensor:
        """Compute ``Σ λ_i a_i`` by groups."""
        return (
            (self.flat.mT @ dual.unsqueeze(-1)).squeeze(-1).unflatten(-1, self.point.w.shape[-2:])
        )

    def lengths(self, move: _Point) -> tuple[Tensor, Tensor]:
        """Find the longest steps ≤ 1 of W and of the multipliers."""
        point, free = self.point, self.rows.free
        primal = torch.minimum(ratio_step(point.slack, move.slack), cone_step(point.x, move.x))
        dual = ratio_step(point.dual.where(~free, 1.0), move.dual.where(~free, 0.0))
        dual = torch.minimum(dual, cone_step(point.z, move.z))
        return (LP_STAY_INSIDE * primal).clamp(max=1.0), (LP_STAY_INSIDE * dual).clamp(max=1.0)

    def moved(self, move: _Point, primal: Tensor, dual: Tensor) -> _Point:
        """Take steps of given lengths."""
        here, p, q = self.point, primal.unsqueeze(-1), dual.unsqueeze(-1)
        return _Point(
            here.dual + q * move.dual,
            here.slack + p * move.slack,
            here.t + p * move.t,
            here.w + p.unsqueeze(-1) * move.w,
            here.tau + q * move.tau,
            here.zeta + q.unsqueeze(-1) * move.zeta,
        )

    def next(self, careful: bool) -> _Point:
        """Take a predictor-corrector step, or a short, well-centred one."""
        self.factor()
        first = self.direction(torch.zeros_like(self.mu), None)
        ahead = _Iteration(self.rows, self.moved(first, *self.lengths(first)))
        ratio = (ahead.mu / self.mu).clamp(LP_LEAST_RATIO, 1.0)
        least = LEAST_CENTRED if careful else 0.0
        move = self.direction((ratio**3).clamp_min(least) * self.mu, None if careful else first)
        good = torch.isfinite(move.dual).all(-1) & torch.isfinite(move.w).all(-1).all(-1)
        part = CAREFUL_PART if careful else 1.0
        lengths = [(part * x).where(good, 0.0) for x in self.lengths(move)]
        clean = _Point(*(x.nan_to_num() for x in vars(move).values()))
        return self.moved(clean, *lengths)


def solve_groups(
    problem: MarginProblem, columns: bool, warm: Warm | None, enough: float = ENOUGH
) -> Answer:
    """Solve in float64; return multipliers ``(*B, M)``, W, outcome and iterations.

    Args:
        columns: the longest column counts; else the longest row.
        enough: relative gap at which problems end.
    """
    members = in_parts(partial(_solve_members, columns, enough), problem)
    return solve_from_frobenius(problem, warm, "lockstep", members)


def _solve_members(
    columns: bool, enough: float, problem: MarginProblem, guess: Tensor, value: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Solve feasible problems whose Frobenius multipliers and positive value are known."""
    unit = unit_rows(problem, guess, value)
    A, basis = _by_groups(unit, columns)
    rows = _Rows(A, unit.b, unit.free)

    def visit(rows: _Rows, point: _Point, *_: object) -> _Iteration:
        return _Iteration(rows, point)

    point, steps = follow_path(visit, rows, _start(rows, unit), enough=max(enough, _REACH))
    W = point.w @ basis.mT
    size = scaled_norm(torch.einsum("bmgk,bm->bgk", A, point.dual)).sum(-1, keepdim=True)
    dual = point.dual.where(unit.exists, 0.0) / unit.length / size.clamp_min(TINY)
    return dual, (W.mT if columns else W) * value[:, None, None], steps


def _start(rows: _Rows, unit: UnitRows) -> _Point:
    """Build a point inside all cones from the guessed multipliers."""
    dual = unit.spread()
    V = torch.einsum("bmgk,bm->bgk", rows.A, dual)
    scale, slack = unit.reach(torch.einsum("bmgk,bgk->bm", rows.A, V), 0.1)
    w, size = scale.unsqueeze(-1) * V, scaled_norm(V)
    t = (1.5 * scale * size.amax(-1, keepdim=True)).expand_as(size).clone()
    inside = 0.6 / size.sum(-1, keepdim=True).clamp_min(TINY)
    tau = inside * size + 0.4 / size.shape[-1]
    return _Point(inside * dual, slack, t, w, tau, -inside.unsqueeze(-1) * V)
