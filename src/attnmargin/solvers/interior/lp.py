"""Entrywise ℓp norm: a batched primal-dual interior-point method that moves p on the way.

    min ½‖W‖_p²  subject to  ⟨a_i, W⟩ ≥ b_i        (paper B, ℓp-AttSVM)

With ``V = Σ λ_i a_i`` the optimum satisfies ``V = ∇½‖W‖_p²``, equivalently ``W = ∇½‖V‖_q²`` with
``1/p + 1/q = 1``. For p < 2 the second form is smooth and W is a function of λ; for p > 2 the first
form is smooth and W is a variable. Either way Newton's step needs one Schur matrix in λ, built from
the rows and one weight per entry of W. The method starts with p near 2 and moves it to its goal,
because far from 2 it converges only from a good start.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, final

import numpy as np
import torch
from torch import Tensor

from attnmargin.base.compiled import in_threads
from attnmargin.margin.norms import scaled_norm
from attnmargin.margin.problem import MarginProblem
from attnmargin.solvers.frobenius.method import Answer
from attnmargin.solvers.interior.schedule import (
    CAREFUL_PART,
    ENOUGH,
    LARGEST_WEIGHT,
    LEAST_CENTRED,
    LP_LEAST_RATIO,
    LP_STAY_INSIDE,
    REGULAR,
    TINY,
    power_at,
)
from attnmargin.solvers.interior.shared import SharedQueries, shared_queries
from attnmargin.solvers.interior.walk import (
    Members,
    UnitRows,
    Warm,
    follow_path,
    ratio_step,
    solve_from_frobenius,
    unit_rows,
)

_KERNEL = "attnmargin.solvers.interior.compiled_lp"


@final
@dataclass
class _Rows(Members):
    """Unit rows of B problems; constant."""

    A: Tensor  # (B, M, d·e)
    b: Tensor  # (B, M)
    free: Tensor  # bool (B, M): equality rows, whose multiplier has no sign


@final
@dataclass
class _Point(Members):
    """An interior point."""

    dual: Tensor  # (B, M)
    slack: Tensor  # (B, M); one on free rows, which do not use it
    W: Tensor  # (B, d·e); a function of the dual for p < 2


def _gradient(x: Tensor, p: float) -> tuple[Tensor, Tensor]:
    """Compute ``∇½‖x‖_p²`` ``(B, n)`` and ``‖x‖_p`` ``(B, 1)``."""
    norm = scaled_norm(x, p).unsqueeze(-1).clamp_min(TINY)
    return x.sign() * norm * (x.abs() / norm).pow(p - 1.0), norm


def _times(A: Tensor, x: Tensor) -> Tensor:
    return (A @ x.unsqueeze(-1)).squeeze(-1)


class _Shared(NamedTuple):
    """Left factors ``(M, d)`` of one large problem, and the queries that its rows share."""

    left: Tensor
    queries: SharedQueries


class _Iteration:
    """A point, and Newton's system there for a given p."""

    def __init__(
        self, p: float, goal: float, rows: _Rows, point: _Point, shared: "_Shared | None" = None
    ) -> None:
        self.p, self.q, self.final = p, p / (p - 1.0), p == goal
        self.rows, self.point, self.shared = rows, point, shared
        self.V = _times(rows.A.mT, point.dual)
        self.W = _gradient(self.V, self.q)[0] if p < 2.0 else point.W
        self.values = _times(rows.A, self.W)
        products = (point.slack * point.dual).where(~rows.free, 0.0)
        self.count = (~rows.free).sum(-1).clamp_min(1)
        self.mu = products.sum(-1) / self.count

    def gap(self) -> Tensor:
        """Compute the relative gap; infinite until p reaches its goal."""
        b, free = self.rows.b, self.rows.free
        if not self.final:
            return torch.full_like(self.mu, torch.inf)
        missing = (b / self.values).where(self.values > 0, torch.inf)
        lift = missing.where(~free & (b > 0), 1.0).amax(-1).clamp_min(1.0)
        error = ((self.values - b).abs() / (b.abs() + 1e-3)).where(free, 0.0).amax(-1)
        upper = scaled_norm(self.W, self.p) * lift
        lower = (b * self.point.dual).sum(-1) / scaled_norm(self.V, self.q)
        gap = (upper - lower).abs() / upper
        return torch.maximum(gap, error).nan_to_num(nan=torch.inf, posinf=torch.inf)

    def factor(self) -> None:
        """Compute the weights of the entries, the residual of V, and factor the Schur matrix."""
        p, q, A = self.p, self.q, self.rows.A
        if p < 2.0:
            norm = scaled_norm(self.V, q).unsqueeze(-1).clamp_min(TINY)
            self.weight = (q - 1.0) * (self.V.abs() / norm).pow(q - 2.0)
            bend, self.residual = (2.0 - q) / norm**2, torch.zeros_like(self.V)
        else:
            gradient, norm = _gradient(self.W, p)
            curvature = (p - 1.0) * (self.W.abs() / norm).pow(p - 2.0)
            self.weight = 1.0 / curvature.clamp_min(1.0 / LARGEST_WEIGHT)
            bend, self.residual = (p - 2.0) / (p - 1.0) / norm**2, self.V - gradient
        self.bend = bend
        if self.shared is None:
            schur = (A * self.weight.unsqueeze(-2)) @ A.mT
        else:
            left, queries = self.shared
            weight = self.weight.reshape(left.shape[-1], -1)
            schur = queries.weighted_products(left, weight).unsqueeze(0)
        schur += (bend * self.values).unsqueeze(-1) * self.values.unsqueeze(-2)
        diagonal = schur.diagonal(dim1=-2, dim2=-1)
        least = REGULAR * diagonal
        diagonal += (self.point.slack / self.point.dual).where(~self.rows.free, 0.0) + least
        self.lu, self.pivots, _ = torch.linalg.lu_factor_ex(schur)

    def _respond(self, x: Tensor) -> Tensor:
        """Compute the change of W for a change x of V: weights and a rank-one term."""
        return self.weight * x + self.bend * self.W * (self.W * x).sum(-1, keepdim=True)

    def direction(self, mu: Tensor, before: _Point | None) -> _Point:
        """Compute Newton's step to ``s λ = μ``, with the second-order term of an earlier step."""
        rows, point = self.rows, self.point
        aim = mu.unsqueeze(-1) - (0.0 if before is None else before.dual * before.slack)
        centre = (aim / point.dual).where(~rows.free, 0.0)
        right = rows.b - self.values - _times(rows.A, self._respond(self.residual)) + centre
        dual = torch.linalg.lu_solve(self.lu, self.pivots, right.unsqueeze(-1)).squeeze(-1)
        slack = (centre - point.slack - point.slack / point.dual * dual).where(~rows.free, 0.0)
        return _Point(dual, slack, self._respond(self.residual + _times(rows.A.mT, dual)))

    def length(self, move: _Point) -> Tensor:
        """Find the longest step ≤ 1 that keeps λ and s positive."""
        free, point = self.rows.free, self.point
        dual = ratio_step(point.dual.where(~free, 1.0), move.dual.where(~free, 0.0))
        return (LP_STAY_INSIDE * torch.minimum(dual, ratio_step(point.slack, move.slack))).clamp(
            max=1
        )

    def next(self, careful: bool) -> _Point:
        """Take a predictor-corrector step, or a short, well-centred one."""
        self.factor()
        first = self.direction(torch.zeros_like(self.mu), None)
        x = self.length(first).unsqueeze(-1)
        point, free = self.point, self.rows.free
        ahead = (point.dual + x * first.dual) * (point.slack + x * first.slack)
        ratio = (ahead.where(~free, 0.0).sum(-1) / self.count / self.mu).clamp(LP_LEAST_RATIO, 1.0)
        # While p moves, the path moves too: stay away from the boundary.
        least = LEAST_CENTRED if careful or not self.final else 0.0
        move = self.direction((ratio**3).clamp_min(least) * self.mu, None if careful else first)
        step = self.length(move) * (CAREFUL_PART if careful else 1.0)
        good = torch.isfinite(move.dual).all(-1) & torch.isfinite(move.W).all(-1)
        x = step.where(good, 0.0).unsqueeze(-1)
        change = (move.dual.nan_to_num(), move.slack.nan_to_num(), move.W.nan_to_num())
        start = (point.dual, point.slack, self.W)
        return _Point(*(a + x * b for a, b in zip(start, change, strict=True)))


Walk = Callable[[UnitRows, _Point, tuple[float, float]], tuple[Tensor, Tensor, Tensor]]


def _start(p: float, unit: UnitRows) -> _Point:
    """Build a feasible, well-centred point from the guessed multipliers, for the first p."""
    dual, z = unit.spread(), unit.right(unit.query)
    V = unit.left.mT @ (dual.unsqueeze(-1) * z)
    W = _gradient(V.flatten(-2), p / (p - 1.0))[0].unflatten(-1, V.shape[-2:])
    scale, slack = unit.reach(((unit.left @ W) * z).sum(-1), 0.1)
    return _Point(scale * dual, slack, (scale.unsqueeze(-1) * W).flatten(-2))


def solve_lp(
    problem: MarginProblem, p: float, warm: Warm | None, method: str, enough: float = ENOUGH
) -> Answer:
    """Solve in float64; return multipliers ``(*B, M)``, W, outcome and iterations.

    In lockstep, problems end at the relative gap ``enough``.
    """
    walk: Walk = _walk_compiled
    if method == "lockstep":
        walk = partial(_walk_together, enough=enough)
    first = 2.0 if warm is None or warm.p is None or (warm.p < 2.0) != (p < 2.0) else warm.p
    return solve_from_frobenius(
        problem, warm, method, partial(_solve_members, walk, first, p), _KERNEL
    )


def _solve_members(
    walk: Walk, first: float, p: float, problem: MarginProblem, guess: Tensor, value: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Solve feasible problems whose Frobenius multipliers and positive value are known."""
    unit = unit_rows(problem, guess, value)
    dual, W, steps = walk(unit, _start(power_at(first, p, 0, False), unit), (first, p))
    dual = dual.where(unit.exists, 0.0) / unit.length
    size = scaled_norm(problem.adjoint(dual).flatten(-2), p / (p - 1.0)).unsqueeze(-1)
    return dual / size, W.unflatten(-1, problem.shape) * value[:, None, None], steps


def _walk_together(
    unit: UnitRows, start: _Point, powers: tuple[float, float], enough: float = ENOUGH
) -> tuple[Tensor, Tensor, Tensor]:
    """Walk all problems in lockstep; return multipliers, W and iterations."""
    p, right = powers[1], unit.right(unit.query)
    A = (unit.left.unsqueeze(-1) * right.unsqueeze(-2)).flatten(-2)
    rows, queries = _Rows(A, unit.b, unit.free), shared_queries(right)
    shared = None if queries is None else _Shared(unit.left[0], queries)

    def visit(rows: _Rows, point: _Point, k: int, careful: bool) -> _Iteration:
        return _Iteration(power_at(*powers, k, careful), p, rows, point, shared)

    point, steps = follow_path(visit, rows, start, enough=enough)
    return point.dual, _Iteration(p, p, rows, point).W, steps


def _walk_compiled(
    unit: UnitRows, start: _Point, powers: tuple[float, float]
) -> tuple[Tensor, Tensor, Tensor]:
    """Walk one problem after another by the compiled kernel; return the same."""
    from attnmargin.solvers.interior.compiled_lp import solve_rows

    B, M, d = unit.left.shape
    W = start.W.unflatten(-1, (d, -1))
    rows = (unit.left, unit.query, unit.b, unit.free, start.dual, start.slack, W)
    given = [np.ascontiguousarray(x.numpy()) for x in rows]
    answer = [np.empty((B, M)), np.empty(W.shape), np.empty(B, int)]
    in_threads(solve_rows, [*given, np.tile(powers, (B, 1)), *answer], B)
    dual, W, steps = (torch.from_numpy(part) for part in answer)
    return dual, W.flatten(-2), steps
