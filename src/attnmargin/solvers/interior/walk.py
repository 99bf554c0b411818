"""Shared by the interior-point methods: step lengths, and the walk along the central path."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Protocol, Self, TypeVar, final

import torch
from torch import Tensor

from attnmargin.base.compiled import compile_together, runs_compiled
from attnmargin.margin.norms import Frobenius, Lp, Norm, scaled_norm
from attnmargin.margin.problem import MarginProblem
from attnmargin.solvers.frobenius.method import (
    FROBENIUS_KERNEL,
    FUSED,
    LARGE_WORK,
    Answer,
    active_set_work,
    flatten,
    solve_frobenius,
)
from attnmargin.solvers.interior.schedule import (
    CAREFUL_ITERATIONS,
    ENOUGH,
    GOOD,
    ITERATIONS,
    PATIENCE,
    TINY,
)
from attnmargin.solvers.outcome import INFEASIBLE, SOLVED

# A multiplier below this share of the largest belongs to a row that is not tight.
_COUNTS = 1e-6
# So many entries of dense rows are in memory at a time.
MOST_ENTRIES = 1 << 22
# From this many rows on, walking in lockstep to the Frobenius solution is slow.
_MANY = 200
# The compiled, the torch and the GPU method, each with its counterpart for the Frobenius norm.
IN_FROBENIUS = {"interior": "active-set", "lockstep": "lockstep", FUSED: FUSED}
METHODS = ("interior", "lockstep")

# Multipliers, W and iterations of feasible problems from their Frobenius multipliers and values.
SolveMembers = Callable[[MarginProblem, Tensor, Tensor], tuple[Tensor, Tensor, Tensor]]


@dataclass
class Members:
    """Tensors with one batch dimension, whose members can be taken out and put back."""

    def take(self, keep: Tensor) -> Self:
        return type(self)(*(getattr(self, field.name)[keep] for field in fields(self)))

    def put(self, place: Tensor, other: Self) -> None:
        for field in fields(self):
            getattr(self, field.name)[place] = getattr(other, field.name)


Rows = TypeVar("Rows", bound=Members)
Point = TypeVar("Point", bound=Members)
PointOut = TypeVar("PointOut", bound=Members, covariant=True)


class Visit(Protocol[PointOut]):
    """One point of the path, with its gap and the step from it."""

    def gap(self) -> Tensor:
        """Compute the relative duality gap ``(B,)``; infinite where unknown."""

    def next(self, careful: bool) -> PointOut:
        """Take a long step to the next point, or a short and well-centred one."""


Look = Callable[[Rows, Point, int, bool], Visit[Point]]


def follow_path(
    visit: Look[Rows, Point],
    rows: Rows,
    start: Point,
    careful: bool = False,
    enough: float = ENOUGH,
) -> tuple[Point, Tensor]:
    """Follow the central path; return the best point of every member, and its iterations.

    ``visit`` evaluates a point in iteration k. A problem whose gap is small enough leaves the
    batch; one that stops improving keeps its best point. In nearly infeasible problems, long steps
    sometimes jam at the boundary. Those problems are solved again with short steps.
    """
    best, iterations, record = _followed(visit, rows, start, careful, enough)
    stuck = record > max(GOOD, enough)
    if not careful and bool(stuck.any()):
        again = _followed(visit, rows.take(stuck), start.take(stuck), True, enough)
        better = again[2] < record[stuck]
        places = stuck.nonzero().flatten()
        best.put(places[better], again[0].take(better))
        iterations[stuck] += again[1]
    return best, iterations


def _followed(
    visit: Look[Rows, Point], rows: Rows, start: Point, careful: bool, enough: float
) -> tuple[Point, Tensor, Tensor]:
    """Follow the path once; return also the gap of the best points."""
    point = start
    size = len(getattr(point, fields(point)[0].name))
    device = getattr(point, fields(point)[0].name).device
    place = torch.arange(size, device=device)
    best, iterations = point.take(place), torch.zeros_like(place)
    record = torch.full((size,), torch.inf, dtype=torch.float64, device=device)
    waited = torch.zeros_like(place)
    for k in range(CAREFUL_ITERATIONS if careful else ITERATIONS):
        now = visit(rows, point, k, careful)
        gap = now.gap()
        better = gap < record[place]
        waited[place] = (waited[place] + torch.isfinite(record[place])).where(~better, 0)
        record[place] = torch.minimum(gap, record[place])
        best.put(place[better], point.take(better))
        hopeful = (record[place] > max(GOOD, enough)) & (waited[place] < PATIENCE)
        live = (gap > enough) & (better | hopeful)
        if not bool(live.any()):
            break
        iterations[place[live]] += 1
        point = now.next(careful)
        if not bool(live.all()):
            rows, point, place = rows.take(live), point.take(live), place[live]
    return best, iterations, record


def in_parts(solve_members: SolveMembers, problem: MarginProblem) -> SolveMembers:
    """Solve as many members at a time as have :data:`MOST_ENTRIES` in their rows."""
    d, e = problem.shape
    count = max(MOST_ENTRIES // max(problem.M * d * e, 1), 1)

    def solve(
        members: MarginProblem, guess: Tensor, value: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        pieces = [slice(i, i + count) for i in range(0, len(value), count)]
        found = [solve_members(members[i], guess[i], value[i]) for i in pieces]
        dual, W, steps = (torch.cat(parts) for parts in zip(*found, strict=True))
        return dual, W, steps

    return solve


@final
@dataclass(frozen=True)
class Warm:
    """Multipliers of a similar problem, and the p of the norm they belong to.

    With ``value``, the rows are known to be feasible, and no Frobenius solution is needed.
    """

    dual: Tensor  # (*B, M)
    p: float | None
    value: Tensor | None = None  # (*B,), ‖W‖_F of a solution of that problem

    def rows(self) -> Tensor:
        """Find rows whose multiplier counts, bool ``(*B, M)``; interior points have no zeros."""
        size = self.dual.abs()
        return size > _COUNTS * size.amax(-1, keepdim=True) if size.shape[-1] else size > 0

    def answer(self, problem: MarginProblem) -> Answer | None:
        """Take the multipliers for those of the Frobenius solution if they prove a bound."""
        if self.value is None or not bool(((problem.bound * self.dual).sum(-1) > 0).all()):
            return None
        W = problem.adjoint(self.dual)
        scale = self.value / Frobenius().value(W)
        outcome = torch.full(problem.batch_shape, SOLVED, device=W.device)
        return self.dual, W * scale[..., None, None], outcome, torch.zeros_like(outcome)


def exponent(norm: Norm) -> float | None:
    """Return the p of an ℓp norm, for :class:`Warm`."""
    return norm.p if isinstance(norm, Lp) else None


def solve_from_frobenius(
    problem: MarginProblem,
    warm: Warm | None,
    method: str,
    solve_members: SolveMembers,
    kernel: str | None = None,
) -> Answer:
    """Solve in another norm, starting from the Frobenius solution.

    Feasibility does not depend on the norm: the Frobenius solver gives the proofs of infeasibility,
    and the scale of the other problems. They start from its multipliers, or from those of a warm
    start. ``kernel`` names the module of the compiled walk; without one, the walk is in torch, and
    the Frobenius solution comes from the fastest method.
    """
    in_frobenius = IN_FROBENIUS[method]
    if kernel is None and runs_compiled(problem.left.device):
        in_frobenius = IN_FROBENIUS["interior"]
    elif kernel is not None and method == "interior":
        compile_together(FROBENIUS_KERNEL, kernel)
    frobenius = None if warm is None else warm.answer(problem)
    if frobenius is None:
        frobenius = _frobenius(problem, in_frobenius)
    batch, flat = problem.batch_shape, flatten(problem)
    dual, W, outcome, iterations = (
        part.reshape(batch.numel(), *part.shape[len(batch) :]).clone() for part in frobenius
    )
    value = Frobenius().value(W)
    todo = (outcome != INFEASIBLE) & (value > 0)
    if bool(todo.any()):
        members = flat[todo]
        guess = dual[todo] if warm is None else _guess(members, warm, dual, todo)
        dual[todo], inside, steps = solve_members(members, guess, value[todo])
        W[todo] = touching(members, inside)
        iterations[todo] += steps
    dual, W = dual.reshape(*batch, problem.M), W.reshape(*batch, *problem.shape)
    return dual, W, outcome.reshape(batch), iterations.reshape(batch)


def _frobenius(problem: MarginProblem, method: str) -> Answer:
    """Solve in the Frobenius norm, many rows by a compiled method where it can run."""
    if problem.M < _MANY or not runs_compiled(problem.left.device):
        return solve_frobenius(problem, None, method)
    if active_set_work(problem.M, problem.shape) < LARGE_WORK:
        return solve_frobenius(problem, None, "active-set")
    from attnmargin.solvers.blocks.method import solve_blocks  # numba

    return solve_blocks(problem)


def _guess(members: MarginProblem, warm: Warm, dual: Tensor, todo: Tensor) -> Tensor:
    """Choose the multipliers to start from: the given ones if they are valid."""
    given = warm.dual.to(torch.float64).reshape(dual.shape)[todo]
    given = given.where(members.equality, given.clamp_min(0.0)).where(members.mask, 0.0)
    useful = torch.isfinite(given).all(-1) & ((members.bound * given).sum(-1) > 0)
    return given.where(useful.unsqueeze(-1), dual[todo])


@dataclass
class UnitRows:
    """Rows of unit length with bounds for a W of Frobenius norm about one."""

    left: Tensor  # (B, M, d); zero where a row does not exist
    query: Tensor  # (B, Q, e)
    b: Tensor  # (B, M); a row that does not exist is 0 ≥ −1
    free: Tensor  # bool (B, M): equalities
    guess: Tensor  # (B, M) Frobenius multipliers of these rows
    exists: Tensor  # bool (B, M)
    length: Tensor  # (B, M) original length of the rows; one where they do not exist

    def right(self, query: Tensor) -> Tensor:
        """Repeat the queries for every row, ``(B, M, e)``."""
        return query.repeat_interleave(self.b.shape[-1] // query.shape[-2], dim=-2)

    def spread(self) -> Tensor:
        """Add a little of every inequality to the guess, so that none is on its boundary."""
        little = 0.1 * self.guess.abs().mean(-1, keepdim=True)
        return self.guess + little.where(~self.free, 0.0)

    def reach(self, values: Tensor, least: float) -> tuple[Tensor, Tensor]:
        """Find the factor ``(B, 1)`` that makes a W with these values feasible, and its slacks."""
        needed = (self.b / values).where((values > 0) & (self.b > 0) & ~self.free, 0.0)
        scale = 1.5 * needed.amax(-1, keepdim=True).clamp(least, 50.0)
        size = self.b.abs()
        enough = 0.3 * size + 1e-3 * size.amax(-1, keepdim=True)
        slack = torch.maximum(scale * values - self.b, enough)
        return scale, slack.where(~self.free, 1.0)


def unit_rows(problem: MarginProblem, guess: Tensor, value: Tensor) -> UnitRows:
    """Scale the rows of problems whose Frobenius multipliers and positive value are known."""
    length = problem.lengths()
    exists = problem.mask & (length > 0)
    left = problem.left / scaled_norm(problem.left).clamp_min(TINY).unsqueeze(-1)
    query = problem.query / scaled_norm(problem.query).clamp_min(TINY).unsqueeze(-1)
    return UnitRows(
        left.where(exists.unsqueeze(-1), 0.0),
        query,
        (problem.bound / length / value.unsqueeze(-1)).where(exists, -1.0),
        problem.equality & exists,
        (guess * length).where(exists, 0.0),
        exists,
        length.where(exists, 1.0),
    )


def touching(problem: MarginProblem, W: Tensor) -> Tensor:
    """Scale W so that it just satisfies its rows, unless an equality rules out scaling."""
    rows = problem.apply(W)
    counts = problem.mask & ~problem.equality & (problem.bound > 0)
    factor = (problem.bound / rows).where(counts & (rows > 0), 0.0).amax(-1)
    fixed = (problem.mask & problem.equality & (problem.bound != 0)).any(-1)
    return W * factor.where(~fixed & (factor > 0), 1.0)[..., None, None]


def ratio_step(x: Tensor, dx: Tensor) -> Tensor:
    """Find the largest t with ``x + t dx ≥ 0`` in the last dimension; x > 0."""
    return (-x / dx).where(dx < 0, torch.inf).amin(-1)


def positive_step(X: Tensor, dX: Tensor, square: Tensor | None = None) -> Tensor:
    """Find the largest t with ``X + t dX − t² square ⪰ 0``; X ≻ 0, square ⪰ 0, all symmetric.

    With a square, the condition is equivalent to a pencil of twice the size that is linear in t:
    ``[[X + t dX, t Rᵀ], [t R, I]] ⪰ 0``, ``RᵀR = square``.
    """
    factor, failed = torch.linalg.cholesky_ex(X)
    half = torch.linalg.solve_triangular(factor, dX, upper=False)
    scaled = torch.linalg.solve_triangular(factor, half.mT, upper=False)
    if square is not None:
        size = square.diagonal(dim1=-2, dim2=-1).amax(-1)[..., None, None]
        identity = torch.eye(X.shape[-1], dtype=X.dtype, device=X.device)
        root = torch.linalg.cholesky_ex(square + (1e-14 * size + 1e-300) * identity)[0]
        side = torch.linalg.solve_triangular(factor, root, upper=False)
        top = torch.cat((scaled, side), -1)
        bottom = torch.cat((side.mT, torch.zeros_like(side)), -1)
        scaled = torch.cat((top, bottom), -2)
    scaled = (0.5 * (scaled + scaled.mT)).nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)
    least = torch.linalg.eigvalsh(scaled)[..., 0]
    return (-1.0 / least).where(least < 0, torch.inf).where(failed == 0, 0.0)
