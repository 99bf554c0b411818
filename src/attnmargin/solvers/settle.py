"""What is left to decide when a method has done what it can."""

import torch
from torch import Tensor

from attnmargin.margin.certificate import CODES, Status
from attnmargin.margin.norms import Frobenius, Lp
from attnmargin.margin.solution import Solution
from attnmargin.solvers.polish import polished


def settled(solution: Solution) -> Solution:
    """Polish ℓp solutions, and solve small members exactly where something is left open."""
    norm = solution.norm
    if isinstance(norm, Frobenius) or norm == Lp(2.0):
        return _with_exact_opinion(solution, inaccurate(solution))
    if not isinstance(norm, Lp):
        return _with_exact_opinion(solution, inaccurate(solution) | _broken(solution))
    found = polished(solution, norm.p)
    asked = inaccurate(found.solution) | _broken(found.solution) | found.left
    return found.entered(_with_exact_opinion(found.solution, asked), ~asked)


def _with_exact_opinion(solution: Solution, asked: Tensor) -> Solution:
    if not bool(asked.any()):
        return solution
    from attnmargin.solvers.exact.opinion import with_exact_opinion  # mpmath, rarely needed

    return with_exact_opinion(solution, asked)


def inaccurate(solution: Solution) -> Tensor:
    """Find members with neither a solution nor a contradiction, bool ``(*B,)``."""
    return solution.code == CODES[Status.INACCURATE]


def _broken(solution: Solution) -> Tensor:
    """Find members that miss an inequality by more than rounding, bool ``(*B,)``.

    Rows with the bound zero may be missed by a share of ‖W‖, and contradict others nevertheless.
    """
    equal = (solution.problem.equality & solution.problem.mask).any(-1)
    missed = solution.certificate.primal
    return (missed > 0) & torch.isfinite(missed) & ~equal
