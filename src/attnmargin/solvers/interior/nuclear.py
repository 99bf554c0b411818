"""Nuclear norm: a batched primal-dual interior-point method in the span of the queries.

The dual of ``min ‖W‖_*`` over rows ``u_iᵀ W z_i ≥ b_i`` is

    max bᵀλ   subject to   F(λ) = I − MᵀM ⪰ 0,   λ ≥ 0,   M = Σ λ_i u_i z_iᵀ,

and at the optimum ``W = 2 M Y`` with ``Y ⪰ 0`` and ``Y F = 0``. The method follows the central
path ``Y F = μ I``, ``s_i λ_i = μ`` with the symmetrised direction of Alizadeh, Haeberly and
Overton and Mehrotra's predictor-corrector. ``Y`` and ``F`` are as wide as the span of the
queries (paper A, Lemma 1). Tokens enter only through their Gram matrix, and the rank-one rows
make the Schur matrix a product of thin factors. The iteration forms no matrix of the size of W.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import final

import numpy as np
import torch
from torch import Tensor

from attnmargin.base.compiled import in_threads
from attnmargin.margin.problem import MarginProblem
from attnmargin.solvers.frobenius.method import FUSED, Answer
from attnmargin.solvers.interior.fused import check_fused_nuclear, walk_fused
from attnmargin.solvers.interior.schedule import (
    CAREFUL_PART,
    ENOUGH,
    LEAST_CENTRED,
    NUCLEAR_LEAST_RATIO,
    NUCLEAR_STAY_INSIDE,
    REGULAR,
    TINY,
)
from attnmargin.solvers.interior.shared import SharedQueries, shared_queries, span
from attnmargin.solvers.interior.walk import (
    Members,
    SolveMembers,
    UnitRows,
    Warm,
    follow_path,
    positive_step,
    ratio_step,
    solve_from_frobenius,
    unit_rows,
)

_KERNEL = "attnmargin.solvers.interior.compiled_nuclear"


@final
@dataclass
class _Rows(Members):
    """Unit rows of B problems; constant."""

    gram: Tensor  # (B, M, M) inner products of the left factors
    z: Tensor  # (B, M, q) right factors in the span of the queries
    b: Tensor  # (B, M)
    free: Tensor  # bool (B, M): equality rows, whose multiplier has no sign


@final
@dataclass
class _Point(Members):
    """An interior point."""

    dual: Tensor  # (B, M), λ
    slack: Tensor  # (B, M), s; one on free rows, which do not use it
    Y: Tensor  # (B, q, q)


@final
@dataclass
class _Move:
    """A direction with the data for its second-order terms, in the eigenbasis of F."""

    dual: Tensor
    slack: Tensor
    Y: Tensor
    F: Tensor  # first-order change of F
    image: Tensor  # gram (dλ ∘ z): the change of M seen from the left factors


def _symmetric(x: Tensor) -> Tensor:
    return 0.5 * (x + x.mT)


class _Iteration:
    """Quantities at one point that predictor and corrector share, in the eigenbasis of F."""

    def __init__(self, rows: _Rows, point: _Point, shared: SharedQueries | None = None) -> None:
        self.rows, self.point, self.shared = rows, point, shared
        image = rows.gram @ (point.dual.unsqueeze(-1) * rows.z)  # U M, (B, M, q)
        inner = _symmetric((point.dual.unsqueeze(-1) * rows.z).mT @ image)  # MᵀM
        squares, self.basis = torch.linalg.eigh(inner)
        self.f = 1.0 - squares
        self.z, self.c = rows.z @ self.basis, image @ self.basis
        self.Y = _symmetric(self.basis.mT @ point.Y @ self.basis)
        self.sums = self.f.unsqueeze(-1) + self.f.unsqueeze(-2)
        self.cy = self.c @ self.Y
        self.values = 2.0 * (self.cy * self.z).sum(-1)  # rows at W = 2 M Y
        self.trace = (self.Y.diagonal(dim1=-2, dim2=-1) * self.f).sum(-1)
        signed = (point.slack * point.dual).where(~rows.free, 0.0)
        self.count = (~rows.free).sum(-1) + self.f.shape[-1]
        self.mu = (signed.sum(-1) + self.trace) / self.count

    def gap(self) -> Tensor:
        """Compute the relative gap: ``‖W‖_* ≤ 2 tr Y − tr(Y F)`` against ``bᵀλ / ‖M‖``."""
        b, free = self.rows.b, self.rows.free
        total = 2.0 * self.Y.diagonal(dim1=-2, dim2=-1).sum(-1) - self.trace
        missing = (b / self.values).where(self.values > 0, torch.inf)
        lift = missing.where(~free & (b > 0), 1.0).amax(-1).clamp_min(1.0)
        error = ((self.values - b).abs() / (b.abs() + 1.0)).where(free, 0.0).amax(-1)
        lower = (b * self.point.dual).sum(-1) / (1.0 - self.f.amin(-1)).clamp_min(1e-30).sqrt()
        upper = total * lift
        return torch.maximum((upper - lower).abs() / upper, error).nan_to_num(nan=torch.inf)

    def factor(self) -> None:
        """Factor the Schur matrix in λ by LU."""
        rows, point = self.rows, self.point
        if self.shared is None:
            outer = self.c.unsqueeze(-1) * self.z.unsqueeze(-2)
            both = outer + outer.mT  # −∂F/∂λ_i, (B, M, q, q)
            turned = both @ self.Y.unsqueeze(-3)
            turned = (turned + turned.mT).div_(self.sums.unsqueeze(-3))
            schur = both.flatten(-2) @ turned.flatten(-2).mT
        else:
            own = (x[0] for x in (self.c, self.z, self.Y, self.sums, self.basis))
            schur = self.shared.symmetric_products(*own).unsqueeze(0)
        schur += 2.0 * rows.gram * (self.z @ self.Y @ self.z.mT)
        diagonal = schur.diagonal(dim1=-2, dim2=-1)
        # Equal rows would make the matrix singular at the end of the path.
        least = REGULAR * diagonal
        diagonal += (point.slack / point.dual).where(~rows.free, 0.0) + least
        self.lu, self.pivots, _ = torch.linalg.lu_factor_ex(schur)

    def direction(self, mu: Tensor, before: _Move | None) -> _Move:
        """Compute the step to ``Y F = μ I``, ``s λ = μ``, corrected by an earlier step."""
        rows, point = self.rows, self.point
        target = torch.diag_embed(mu.unsqueeze(-1).expand_as(self.f))
        aim = mu.unsqueeze(-1).expand_as(point.dual)
        curve = torch.zeros_like(aim)
        if before is not None:
            square = _symmetric((before.dual.unsqueeze(-1) * self.z).mT @ before.image)
            target = target - _symmetric(before.F @ before.Y - square @ self.Y)
            aim = aim - before.dual * before.slack
            curve = 2.0 * ((before.image @ before.Y) * self.z).sum(-1)
        scaled = 2.0 * target / self.sums
        rest = 2.0 * ((self.c @ scaled) * self.z).sum(-1)
        centre = (aim / point.dual).where(~rows.free, 0.0)
        right = (rows.b + centre - rest - curve).unsqueeze(-1)
        dual = torch.linalg.lu_solve(self.lu, self.pivots, right)[..., 0]
        image = rows.gram @ (dual.unsqueeze(-1) * self.z)
        change = self.c.mT @ (dual.unsqueeze(-1) * self.z)
        F = -(change + change.mT)
        Y = scaled - self.Y - 2.0 * _symmetric(F @ self.Y) / self.sums
        slack = centre - point.slack - point.slack / point.dual * dual
        return _Move(dual, slack.where(~rows.free, 0.0), Y, F, image)

    def length(self, move: _Move) -> Tensor:
        """Find the longest step ≤ 1 that keeps λ, s, Y and F positive."""
        point, free = self.point, self.rows.free
        square = _symmetric((move.dual.unsqueeze(-1) * self.z).mT @ move.image)
        step = torch.minimum(
            ratio_step(point.dual.where(~free, 1.0), move.dual.where(~free, 0.0)),
            ratio_step(point.slack, move.slack),
        )
        step = torch.minimum(step, positive_step(self.Y, move.Y))
        step = torch.minimum(step, positive_step(torch.diag_embed(self.f), move.F, square))
        return (NUCLEAR_STAY_INSIDE * step).clamp(max=1.0)

    def predicted(self, move: _Move, step: Tensor) -> Tensor:
        """Compute μ after a step."""
        point, free = self.point, self.rows.free
        x = step.unsqueeze(-1)
        products = (point.dual + x * move.dual) * (point.slack + x * move.slack)
        x = x.unsqueeze(-1)
        square = _symmetric((move.dual.unsqueeze(-1) * self.z).mT @ move.image)
        F = torch.diag_embed(self.f) + x * move.F - x * x * square
        total = products.where(~free, 0.0).sum(-1) + ((self.Y + x * move.Y) * F).sum((-2, -1))
        return total / self.count

    def next(self, careful: bool) -> _Point:
        """Take a predictor-corrector step, or a short, well-centred one."""
        self.factor()
        first = self.direction(torch.zeros_like(self.mu), None)
        ratio = (self.predicted(first, self.length(first)) / self.mu).clamp(
            NUCLEAR_LEAST_RATIO, 1.0
        )
        if careful:
            move = self.direction(ratio.clamp_min(LEAST_CENTRED) * self.mu, None)
        else:
            move = self.direction(ratio**3 * self.mu, first)
        step = self.length(move) * (CAREFUL_PART if careful else 1.0)
        good = torch.isfinite(move.dual).all(-1) & torch.isfinite(move.Y).all(-1).all(-1)
        x = step.where(good, 0.0).unsqueeze(-1)
        Y = self.Y + x.unsqueeze(-1) * move.Y.nan_to_num()
        return _Point(
            self.point.dual + x * move.dual.nan_to_num(),
            self.point.slack + x * move.slack.nan_to_num(),
            _symmetric(self.basis @ Y @ self.basis.mT),
        )


Walk = Callable[[UnitRows, Tensor, _Point], tuple[Tensor, Tensor, Tensor]]


def _start(unit: UnitRows, query: Tensor) -> _Point:
    """Build a well-centred point from the guessed multipliers.

    The Frobenius multipliers make M a multiple of the Frobenius solution. So ``2 M Y`` is feasible
    if Y is a suitable multiple of the identity, and λ is feasible once scaled into the interior.
    """
    dual, z = unit.spread(), unit.right(query)
    M = unit.left.mT @ (dual.unsqueeze(-1) * z)
    largest = torch.linalg.eigvalsh(_symmetric(M.mT @ M))[..., -1:]
    inside = 0.6 / largest.clamp_min(TINY).sqrt()
    M = inside.unsqueeze(-1) * M
    scale, slack = unit.reach(((unit.left @ M) * z).sum(-1), 0.5)
    identity = torch.eye(z.shape[-1], dtype=dual.dtype, device=dual.device)
    return _Point(inside * dual, slack, 0.5 * scale.unsqueeze(-1) * identity)


def solve_nuclear(
    problem: MarginProblem, warm: Warm | None, method: str, enough: float = ENOUGH
) -> Answer:
    """Solve in float64; return multipliers ``(*B, M)``, W, outcome and iterations.

    In lockstep, problems end at the relative gap ``enough``.
    """
    walk: Walk = _walk_compiled
    if method == "lockstep":
        walk = partial(_walk_together, enough=enough)
    solve_members: SolveMembers = partial(_solve_members, walk)
    if method == FUSED:
        check_fused_nuclear(problem)
        solve_members = walk_fused
    return solve_from_frobenius(problem, warm, method, solve_members, _KERNEL)


def _solve_members(
    walk: Walk, problem: MarginProblem, guess: Tensor, value: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Solve feasible problems whose Frobenius multipliers and positive value are known."""
    unit = unit_rows(problem, guess, value)
    basis, query = span(unit.query)
    dual, Y, steps = walk(unit, query, _start(unit, query))
    dual = dual.where(unit.exists, 0.0)
    M = unit.left.mT @ (dual.unsqueeze(-1) * unit.right(query))
    W = 2.0 * (M @ Y @ basis.mT) * value[:, None, None]
    size = torch.linalg.matrix_norm(M, 2).unsqueeze(-1)
    return dual / (unit.length * size), W, steps


def _walk_together(
    unit: UnitRows, query: Tensor, start: _Point, enough: float = ENOUGH
) -> tuple[Tensor, Tensor, Tensor]:
    """Walk all problems in lockstep; return multipliers, Y and iterations."""
    rows = _Rows(unit.left @ unit.left.mT, unit.right(query), unit.b, unit.free)
    shared = shared_queries(rows.z)

    def visit(rows: _Rows, point: _Point, *_: object) -> _Iteration:
        return _Iteration(rows, point, shared)

    point, steps = follow_path(visit, rows, start, enough=enough)
    return point.dual, point.Y, steps


def _walk_compiled(unit: UnitRows, query: Tensor, start: _Point) -> tuple[Tensor, Tensor, Tensor]:
    """Walk one problem after another by the compiled kernel; return the same."""
    from attnmargin.solvers.interior.compiled_nuclear import solve_rows

    left = span(unit.left)[1].contiguous()
    rows = (left, query.contiguous(), unit.b, unit.free, start.dual, start.slack)
    given = [np.ascontiguousarray(x.numpy()) for x in (*rows, start.Y[:, 0, 0])]
    answer = [np.empty(x.shape) for x in (start.dual, start.Y)] + [np.empty(len(left), int)]
    in_threads(solve_rows, [*given, *answer], len(left))
    dual, Y, steps = (torch.from_numpy(part) for part in answer)
    return dual, Y, steps
