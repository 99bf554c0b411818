"""Spectral norm: a batched primal-dual interior-point method in the spans of the factors.

    min ½τ   subject to   F = τ I − WᵀW ⪰ 0,   ⟨a_i, W⟩ ≥ b_i

With ``V = Σ λ_i u_i z_iᵀ`` the optimum satisfies ``V = 2 W Y`` with ``Y ⪰ 0``, ``tr Y = 1`` and
``Y F = 0``; so ``‖V‖_* = 2 ‖W‖`` proves that W is shortest. It is the nuclear problem with primal
and dual exchanged. Like there, the rows of W lie in the span of the queries and its columns in that
of the left factors, since projections shorten no singular value. The method follows ``Y F = μ I``,
``s_i λ_i = μ`` in the direction of Helmberg, Rendl, Kojima and Monteiro,

    dF + ½ (F dY Y⁻¹ + Y⁻¹ dY F) = μ Y⁻¹ − F,

which makes the equation for dY, once W is eliminated, ``Y⁻¹ dY S + S dY Y⁻¹ = …`` with
``S = ½ (τ I + WᵀW)``: diagonal in the basis N with ``NᵀY⁻¹N = I`` and ``NᵀSN`` diagonal.
"""

from dataclasses import dataclass
from functools import partial
from typing import final

import torch
from torch import Tensor

from attnmargin.margin.problem import MarginProblem
from attnmargin.solvers.frobenius.method import Answer
from attnmargin.solvers.interior.schedule import (
    CAREFUL_PART,
    ENOUGH,
    LEAST_CENTRED,
    NOISE,
    NUCLEAR_LEAST_RATIO,
    NUCLEAR_STAY_INSIDE,
    REFINEMENTS,
    REGULAR,
    TINY,
)
from attnmargin.solvers.interior.shared import span
from attnmargin.solvers.interior.walk import (
    Members,
    UnitRows,
    Warm,
    follow_path,
    in_parts,
    positive_step,
    ratio_step,
    solve_from_frobenius,
    unit_rows,
)

# The path ends at this gap: where W is not unique, the last digits are rounding.
_REACH = 1e-10


@final
@dataclass
class _Rows(Members):
    """Unit rows of B problems; constant."""

    u: Tensor  # (B, M, d) left factors in their span
    z: Tensor  # (B, M, q) right factors in theirs, q ≤ d
    gram: Tensor  # (B, M, M) inner products of the left factors
    b: Tensor  # (B, M)
    free: Tensor  # bool (B, M): equality rows, whose multiplier has no sign


@final
@dataclass
class _Point(Members):
    """An interior point, or a direction."""

    dual: Tensor  # (B, M), λ
    slack: Tensor  # (B, M); one on free rows, which do not use it
    W: Tensor  # (B, d, q)
    Y: Tensor  # (B, q, q)
    tau: Tensor  # (B, 1, 1)


def _symmetric(x: Tensor) -> Tensor:
    return 0.5 * (x + x.mT)


def _inner(x: Tensor, y: Tensor) -> Tensor:
    """Compute inner products of matrices, ``(B, 1, 1)``."""
    return (x * y).sum((-2, -1), keepdim=True)


class _Iteration:
    """A point, and Newton's system there."""

    def __init__(self, rows: _Rows, point: _Point) -> None:
        self.rows, self.point = rows, point
        self.V = self._total(point.dual)
        self.square = _symmetric(point.W.mT @ point.W)
        self.identity = torch.eye(self.square.shape[-1], dtype=self.V.dtype, device=self.V.device)
        self.F = point.tau * self.identity - self.square
        self.values = self.rows_of(point.W)
        signed = (point.slack * point.dual).where(~rows.free, 0.0).sum(-1)
        self.count = (~rows.free).sum(-1) + self.F.shape[-1]
        self.mu = (signed + (point.Y * self.F).sum((-2, -1))) / self.count

    def rows_of(self, W: Tensor) -> Tensor:
        """Compute the values of the rows at W."""
        return ((self.rows.u @ W) * self.rows.z).sum(-1)

    def gap(self) -> Tensor:
        """Compute the relative gap between W, scaled up, and the bound of λ."""
        b, free = self.rows.b, self.rows.free
        missing = (b / self.values).where(self.values > 0, torch.inf)
        lift = missing.where(~free & (b > 0), 1.0).amax(-1).clamp_min(1.0)
        error = ((self.values - b).abs() / (b.abs() + 1e-3)).where(free, 0.0).amax(-1)
        upper = torch.linalg.eigvalsh(self.square)[..., -1].clamp_min(TINY).sqrt() * lift
        bound = torch.linalg.svdvals(self.V.nan_to_num()).sum(-1).clamp_min(TINY)
        lower = (b * self.point.dual).sum(-1) / bound
        gap = (upper - lower).abs() / upper
        return torch.maximum(gap, error).nan_to_num(nan=torch.inf, posinf=torch.inf)

    def factor(self) -> None:
        """Find the basis N, and factor the Schur matrix in λ by LU."""
        rows, point = self.rows, self.point
        root, failed = torch.linalg.cholesky_ex(point.Y)
        self.failed = failed != 0
        root = root.where(~self.failed[:, None, None], self.identity)
        sums = 0.5 * (point.tau * self.identity + self.square)
        c, Q = torch.linalg.eigh(_symmetric(root.mT @ sums @ root))
        self.N = root @ Q
        self.turn = Q.mT @ torch.linalg.solve_triangular(root, self.identity, upper=False)  # N⁻¹
        self.share = 1.0 / (c.unsqueeze(-1) + c.unsqueeze(-2)).clamp_min(TINY)
        self.h, self.WN = rows.z @ self.turn.mT, point.W @ self.N
        self.c = rows.u @ self.WN
        residual = self.V - 2.0 * point.W @ point.Y
        noise = NOISE * self.V.abs().amax((-2, -1), keepdim=True)
        self.residual = residual.where(residual.abs() > noise, 0.0)
        outer = self.c.unsqueeze(-1) * self.h.unsqueeze(-2)
        both = 0.5 * (outer + outer.mT)
        schur = 0.5 * rows.gram * (self.h @ self.h.mT)
        schur -= both.flatten(-2) @ (both * self.share.unsqueeze(-3)).flatten(-2).mT
        self.metric = self.share * (self.N.mT @ self.N)
        self.k = ((self.c @ self.metric) * self.h).sum(-1)
        self.rho = _inner(self.metric, self.N.mT @ self.N)
        schur += (self.k / self.rho[..., 0]).unsqueeze(-1) * self.k.unsqueeze(-2)
        diagonal = schur.diagonal(dim1=-2, dim2=-1)
        least = REGULAR * diagonal.abs()
        diagonal += (point.slack / point.dual).where(~rows.free, 0.0) + least
        self.lu, self.pivots, _ = torch.linalg.lu_factor_ex(schur)

    def _respond(
        self, force: Tensor, drive: Tensor | float = 0.0, short: Tensor | float = 0.0
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Compute the changes of W, Y and τ.

        For a change ``force`` of V, a drive of F in the basis N, and what tr Y falls short of.
        """
        pull = drive + _symmetric(self.turn @ force.mT @ self.WN)
        tau = (_inner(self.metric, pull) - short) / self.rho
        K = self.share * pull - tau * self.metric
        W = (0.5 * force @ self.turn.mT - self.WN @ K) @ self.turn
        return W, _symmetric(self.N @ K @ self.N.mT), tau

    def direction(self, mu: Tensor, before: _Point | None) -> _Point:
        """Compute Newton's step to the centre at μ, with second-order terms of an earlier step."""
        rows, here = self.rows, self.point
        drive = mu[:, None, None] * self.identity - _symmetric(self.N.mT @ self.F @ self.N)
        force, aim = self.residual, mu.unsqueeze(-1).expand_as(here.dual)
        if before is not None:
            F = before.tau * self.identity - 2.0 * _symmetric(before.W.mT @ here.W)
            second = F @ before.Y @ self.turn.mT @ self.turn - before.W.mT @ before.W
            drive = drive - _symmetric(self.N.mT @ second @ self.N)
            force = force - 2.0 * before.W @ before.Y
            aim = aim - before.dual * before.slack
        centre = (aim / here.dual).where(~rows.free, 0.0)
        short = 1.0 - here.Y.diagonal(dim1=-2, dim2=-1).sum(-1)[:, None, None]
        needed = rows.b - self.values + centre
        dual = self._multipliers(needed - self.rows_of(self._respond(force, drive, short)[0]))
        moves = [*self._respond(force + self._total(dual), drive, short)]
        # Rounding grows with Y⁻¹: what the rows miss by it is corrected.
        weight = (here.slack / here.dual).where(~rows.free, 0.0)
        for _ in range(REFINEMENTS):
            more = self._multipliers(needed - weight * dual - self.rows_of(moves[0]))
            second = self._respond(self._total(more))
            dual, moves = dual + more, [x + y for x, y in zip(moves, second, strict=True)]
        slack = (centre - here.slack - weight * dual).where(~rows.free, 0.0)
        return _Point(dual, slack, *moves)

    def _multipliers(self, right: Tensor) -> Tensor:
        """Solve Newton's system for λ."""
        return torch.linalg.lu_solve(self.lu, self.pivots, right.unsqueeze(-1)).squeeze(-1)

    def _total(self, dual: Tensor) -> Tensor:
        """Compute ``Σ λ_i u_i z_iᵀ``."""
        return self.rows.u.mT @ (dual.unsqueeze(-1) * self.rows.z)

    def length(self, move: _Point) -> Tensor:
        """Find the longest step ≤ 1 that keeps λ, s, Y and F positive."""
        here, free = self.point, self.rows.free
        step = torch.minimum(
            ratio_step(here.dual.where(~free, 1.0), move.dual.where(~free, 0.0)),
            ratio_step(here.slack, move.slack),
        )
        F = move.tau * self.identity - 2.0 * _symmetric(move.W.mT @ here.W)
        step = torch.minimum(step, positive_step(here.Y, move.Y))
        step = torch.minimum(step, positive_step(self.F, F, _symmetric(move.W.mT @ move.W)))
        return (NUCLEAR_STAY_INSIDE * step).clamp(max=1.0).where(~self.failed, 0.0)

    def moved(self, move: _Point, step: Tensor) -> _Point:
        """Take a step."""
        x = step.unsqueeze(-1)
        pairs = zip(vars(self.point).values(), vars(move).values(), strict=True)
        return _Point(*(a + (x if a.ndim == 2 else x.unsqueeze(-1)) * b for a, b in pairs))

    def next(self, careful: bool) -> _Point:
        """Take a predictor-corrector step, or a short, well-centred one."""
        self.factor()
        first = self.direction(torch.zeros_like(self.mu), None)
        ahead = _Iteration(self.rows, self.moved(first, self.length(first)))
        ratio = (ahead.mu / self.mu).clamp(NUCLEAR_LEAST_RATIO, 1.0)
        if careful:
            move = self.direction(ratio.clamp_min(LEAST_CENTRED) * self.mu, None)
        else:
            move = self.direction(ratio**3 * self.mu, first)
        good = torch.stack([torch.isfinite(x).flatten(1).all(-1) for x in vars(move).values()])
        move = _Point(*(x.nan_to_num() for x in vars(move).values()))
        step = self.length(move) * (CAREFUL_PART if careful else 1.0)
        return self.moved(move, step.where(good.all(0), 0.0))


def solve_spectral(problem: MarginProblem, warm: Warm | None, enough: float = ENOUGH) -> Answer:
    """Solve in float64; return multipliers ``(*B, M)``, W, outcome and iterations.

    Problems end at the relative gap ``enough``.
    """
    members = in_parts(partial(_solve_members, enough), problem)
    return solve_from_frobenius(problem, warm, "lockstep", members)


def _solve_members(
    enough: float, problem: MarginProblem, guess: Tensor, value: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Solve feasible problems whose Frobenius multipliers and positive value are known."""
    unit = unit_rows(problem, guess, value)
    left, u = span(unit.left)
    right, query = span(unit.query)
    z, wide = unit.right(query), u.shape[-1] < query.shape[-1]
    if wide:
        u, z = z, u
    rows = _Rows(u, z, u @ u.mT, unit.b, unit.free)

    def visit(rows: _Rows, point: _Point, *_: object) -> _Iteration:
        return _Iteration(rows, point)

    point, steps = follow_path(visit, rows, _start(rows, unit), enough=max(enough, _REACH))
    size = torch.linalg.svdvals(rows.u.mT @ (point.dual.unsqueeze(-1) * rows.z)).sum(-1)
    dual = point.dual.where(unit.exists, 0.0) / unit.length / size.clamp_min(TINY).unsqueeze(-1)
    W = left @ (point.W.mT if wide else point.W) @ right.mT
    return dual, W * value[:, None, None], steps


def _start(rows: _Rows, unit: UnitRows) -> _Point:
    """Build a centred point from the guessed multipliers: ``V = 2 W Y`` with Y = I/q."""
    dual, q = unit.spread(), rows.z.shape[-1]
    V = rows.u.mT @ (dual.unsqueeze(-1) * rows.z)
    scale, slack = unit.reach(((rows.u @ V) * rows.z).sum(-1), 0.1)
    W = scale.unsqueeze(-1) * V
    largest = torch.linalg.matrix_norm(W, 2)[:, None, None].clamp_min(TINY)
    identity = torch.eye(q, dtype=W.dtype, device=W.device).expand(len(W), q, q)
    return _Point(2.0 / q * scale * dual, slack, W, identity / q, 2.0 * largest**2)
