"""The last digits of ℓp solutions: Newton's method on the held rows alone.

Interior points leave every row a little slack, and a small entry of W far from its place where its
force is smaller than the gap. With the held rows as equations,

    ∇f(W) = Aᵀλ,   A W = b,        f = ‖·‖_p^p / p,

Newton's method converges to rounding. For p < 2 the smooth form is ``W = ∇f*(Aᵀλ)``, and λ alone
moves; for p > 2 W moves too. There, small entries of W need more digits of λ than a number has:
polish_kernel.py has them, and so knows better how far W may be from the solution.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from attnmargin.base.arrays import tiny
from attnmargin.base.compiled import in_threads, runs_compiled
from attnmargin.margin.certificate import certify
from attnmargin.margin.norms import Lp, scaled_norm
from attnmargin.margin.problem import MarginProblem
from attnmargin.margin.solution import Solution
from attnmargin.margin.support import Decision, decide_support, needs_polish

_STEPS = 40
# Largest change in one step, relative to the largest number; least entry in a curvature.
_LONGEST, _SMALL = 0.5, 1e-30
# A step that changes W by less, relative to its largest entry, is the last.
_STILL = 1e-15
# Relative regularisation of the diagonal, for equal rows.
_REGULAR = 1e-15
# Members with more entries in their rows, M · d · e, are left as they are.
_LARGE = 1 << 22


class Polished(NamedTuple):
    """A polished solution, and what is known of its rows from digits that it does not have."""

    solution: Solution
    left: Tensor  # bool (*B,), members that are still unclear
    decided: Tensor  # bool (*B,), members whose rows are known
    decision: Decision | None  # theirs

    def entered(self, solution: Solution, same: Tensor) -> Solution:
        """Enter the rows that are known into a later solution, where its members are the same."""
        if self.decision is None:
            return solution
        where, own = self.decided & same, same[self.decided]
        tight, doubtful = solution.rows.tight.clone(), solution.rows.doubtful.clone()
        tight[where] = self.decision.tight[own]
        doubtful[where] = self.decision.doubtful[own]
        return replace(solution, decision=Decision(tight, doubtful))


def unclear(solution: Solution, off: Tensor | None = None) -> Tensor:
    """Find members whose rows are not clearly at their bound or slack, bool ``(*B,)``."""
    finite = torch.isfinite(solution.value)
    W = solution.W.where(finite[..., None, None], 0.0)
    return needs_polish(solution.problem, solution.norm, W, solution.dual, off) & finite


def polished(solution: Solution, power: float) -> Polished:
    """Replace unclear members by Newton's solution where that is clear."""
    d, e = solution.problem.shape
    asked = unclear(solution)
    none = torch.zeros_like(asked)
    if not bool(asked.any()) or solution.problem.M * d * e > _LARGE:
        return Polished(solution, asked, none, None)
    members = solution[asked]
    off = None
    if power > 2.0 and runs_compiled(solution.W.device):
        W, dual, off = _newton_doubled(members, power)
    else:
        W, dual = _newton(members, power)
    dtype = solution.W.dtype
    off = off if dtype == torch.float64 else None
    W, dual = W.to(dtype), dual.to(dtype)
    check = certify(members.problem, members.norm, W, dual)
    new = replace(members, W=W, dual=dual, certificate=check)
    better = new.optimal & ~unclear(new, off)
    left, decided = asked.clone(), none.clone()
    left[asked], decided[asked] = ~better, better
    solution = put(solution, asked, new, better)
    if off is None or not bool(better.any()):
        return Polished(solution, left, none, None)
    own = new[better]
    decision = decide_support(own.problem, own.norm, own.W, own.dual, off[better])
    return Polished(solution, left, decided, decision)


def put(solution: Solution, where: Tensor, new: Solution, better: Tensor) -> Solution:
    """Replace members by others, ``(k,)``, where those are better, and certify the whole again."""
    W, dual = solution.W.clone(), solution.dual.clone()
    W[where] = new.W.where(better[:, None, None], W[where])
    dual[where] = new.dual.where(better[:, None], dual[where])
    certificate = certify(solution.problem, solution.norm, W, dual)
    return replace(solution, W=W, dual=dual, certificate=certificate)


def _held(problem: MarginProblem, solution: Solution) -> Tensor:
    """Find rows whose multiplier counts more than their slack, bool ``(k, M)``."""
    W, dual = solution.W.to(torch.float64), solution.dual.to(torch.float64)
    slack = (problem.apply(W) - problem.bound).abs()
    bound = problem.bound.abs()
    share = slack / bound.where(bound > 0, 1.0)
    force = dual.abs() * problem.lengths()
    force = force / force.amax(-1, keepdim=True).clamp_min(tiny(force))
    return problem.mask & (problem.equality | (force > share))


def _newton(solution: Solution, p: float) -> tuple[Tensor, Tensor]:
    """Solve the held rows as equations; return W and multipliers."""
    problem = solution.problem.as_dtype(torch.float64)
    held = _held(problem, solution)
    value = Lp(p).value(solution.W.to(torch.float64)).unsqueeze(-1)
    b = problem.bound / value
    A = (problem.left.unsqueeze(-1) * problem.right.unsqueeze(-2)).flatten(-2)
    length = problem.lengths().clamp_min(tiny(b)).unsqueeze(-1)
    A = (A / length).where(held.unsqueeze(-1), 0.0)
    b = (b / length[..., 0]).where(held, 0.0)
    dual = (solution.dual.to(torch.float64) * length[..., 0]).where(held, 0.0)
    W = _follow(A, dual, p)[0]
    live = torch.arange(len(W), device=W.device)
    for _ in range(_STEPS):
        before = W[live]
        W[live], dual[live] = _step(A[live], b[live], before, dual[live], p)
        moved = (W[live] - before).abs().amax(-1) > _STILL * W[live].abs().amax(-1)
        live = live[moved]
        if len(live) == 0:
            break
    W = W.unflatten(-1, problem.shape)
    return W * value.unsqueeze(-1), dual / length[..., 0]


def _newton_doubled(solution: Solution, p: float) -> tuple[Tensor, Tensor, Tensor]:
    """Solve the held rows as equations by the kernel, for p > 2.

    Return W and multipliers, and a bound of how far W is from what follows from all their digits.
    """
    from attnmargin.solvers.polish_kernel import polish_rows

    problem = solution.problem.as_dtype(torch.float64)
    W, dual = solution.W.to(torch.float64), solution.dual.to(torch.float64)
    B, Q = len(W), problem.query.shape[-2]
    # All scales are powers of two, so that no number is rounded.
    left, query = _power_of_two(problem.left), _power_of_two(problem.query)
    row = (left.unflatten(-1, (Q, -1)) * query.unsqueeze(-1)).flatten(-2)
    value = Lp(p).value(W)
    unit = _power_of_two(value.unsqueeze(-1))
    slope = (value / unit).pow(p - 1.0).unsqueeze(-1)
    held = _held(problem, solution) & (problem.lengths() > 0)
    b = problem.bound / row / unit.unsqueeze(-1)
    rows = (problem.left / left.unsqueeze(-1), problem.query / query.unsqueeze(-1), b, held)
    point = W / unit[..., None, None], (dual * row * slope).where(held, 0.0)
    given = [np.array(x.numpy(), order="C") for x in (*rows, W.new_full((B,), p), *point)]
    answer = [np.empty_like(given[5]), np.empty(B, int)]
    in_threads(polish_rows, [*given, *answer], B)
    W, dual, off = (torch.from_numpy(x) for x in (given[5], given[6], answer[0]))
    scale = unit[..., None, None]
    return W * scale, dual / row / slope, off * scale


def _power_of_two(x: Tensor) -> Tensor:
    """Find the powers of two next to the lengths of vectors; one for length zero."""
    length = scaled_norm(x)
    exponent = torch.frexp(length.where(length > 0, 1.0)).exponent
    return torch.exp2(exponent.to(torch.float64).clamp(-500, 500))


def _step(A: Tensor, b: Tensor, W: Tensor, dual: Tensor, p: float) -> tuple[Tensor, Tensor]:
    """Take one step; entries and multipliers change by at most half the largest one."""
    V = (A.mT @ dual.unsqueeze(-1))[..., 0]
    if p < 2.0:
        W, weight = _follow(A, dual, p)
        rest = torch.zeros_like(V)
    else:
        slope = W.sign() * W.abs().pow(p - 1.0)
        weight = 1.0 / ((p - 1.0) * W.abs().clamp_min(_SMALL).pow(p - 2.0))
        rest = V - slope
    schur = (A * weight.unsqueeze(-2)) @ A.mT
    diagonal = schur.diagonal(dim1=-2, dim2=-1)
    diagonal += (_REGULAR * diagonal).where(diagonal > 0, 1.0)
    missing = b - (A @ (W + weight * rest).unsqueeze(-1))[..., 0]
    change = torch.linalg.solve_ex(schur, missing.unsqueeze(-1))[0][..., 0]
    dual = _changed(dual, change)
    if p < 2.0:
        return _follow(A, dual, p)[0], dual
    return _changed(W, weight * (rest + (A.mT @ change.unsqueeze(-1))[..., 0])), dual


def _changed(x: Tensor, change: Tensor) -> Tensor:
    limit = _LONGEST * x.abs().amax(-1, keepdim=True)
    return x + change.nan_to_num(0.0, 0.0, 0.0).clamp(-limit, limit)


def _follow(A: Tensor, dual: Tensor, p: float) -> tuple[Tensor, Tensor]:
    """Compute ``∇f*(Aᵀλ)`` and its derivative, entry by entry."""
    q = p / (p - 1.0)
    V = (A.mT @ dual.unsqueeze(-1))[..., 0]
    size = V.abs().clamp_min(tiny(V) ** 0.5)
    return V.sign() * V.abs().pow(q - 1.0), (q - 1.0) * size.pow(q - 2.0)
