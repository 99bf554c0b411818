"""Proofs of infeasibility that rounding could have made."""

import torch
from torch import Tensor

from attnmargin.margin.problem import MarginProblem
from attnmargin.margin.solution import Solution


def shaky_proofs(solution: Solution) -> Tensor:
    """Find infeasible members whose rows may only nearly contradict each other, bool ``(*B,)``.

    Multipliers are rounded, so in general ``Aᵀλ`` is not zero but small. The rows of a proof are
    surely dependent if there are more of them than dimensions that they can span: d for every
    query, and no more than W has entries.
    """
    infeasible = solution.infeasible
    if not bool(infeasible.any()):
        return infeasible
    problem = solution.problem.as_dtype(torch.float64)
    dual = solution.dual.to(torch.float64).where(problem.mask, 0.0)
    cancels = (problem.adjoint(dual) == 0).all(-1).all(-1)
    used = dual != 0
    return infeasible & ~cancels & (used.sum(-1) <= _span(problem, used))


def _span(problem: MarginProblem, used: Tensor) -> Tensor:
    """Bound the dimension that the used rows span, int ``(*B,)``."""
    d, e = problem.shape
    per_query = used.unflatten(-1, (problem.query.shape[-2], -1)).sum(-1)
    return per_query.clamp_max(d).sum(-1).clamp_max(d * e)
