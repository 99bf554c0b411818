"""Uniqueness of solutions: proved, refuted by a second solution, or left open."""

from enum import StrEnum
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attnmargin.base.seeds import seed_of
from attnmargin.margin.certificate import Status, certify
from attnmargin.margin.faces import Face, face
from attnmargin.margin.norms import Frobenius, Lp
from attnmargin.margin.solution import Solution

# With a relative gap of 1e-10, rows with a relative multiplier above this have a relative slack
# below it.
_SURE = 1e-5
# Relative singular values of the rows on the face that count as independent.
_INDEPENDENT = 1e-5
# Relative distance to a second solution, and the gap it may have.
_FAR, _SAME = 1e-3, 1e-8
# Directions in which to look for one.
_DIRECTIONS = 8
_TINY = 1e-300


class Uniqueness(StrEnum):
    """What is known about other solutions with the same norm."""

    UNIQUE = "unique"
    NOT_UNIQUE = "not unique"
    OPEN = "open"


def uniqueness(solution: Solution) -> Any:
    """Decide whether each solution is unique: a :class:`Uniqueness`, or a numpy array of them.

    The Frobenius and ℓp norms are strictly convex, so an optimal solution is unique. In the other
    norms let ``V = Σ λ_i a_i``. Every optimal W lies on the face of the ball that V touches, and is
    tight on rows with ``λ_i > 0``:

    - nuclear: ``W = U₁ S V₁ᵀ``, ``S ⪰ 0``, with V's singular vectors for the largest value;
    - spectral: ``W = ‖W‖ U₁ V₁ᵀ + U₂ S V₂ᵀ``, with those for positive values, and the others;
    - max, rows, columns: W is known where V is not zero;
    - sum: W is zero where ``|V_ij|`` is not the largest.

    So W is unique if these rows determine what is left open. If they do not, the function looks for
    a second solution along directions that they leave free, and certifies it. Comparing trained
    weights with a solution that is not unique says little. Where the problem leaves rows out, which
    a second solution may violate, it stays open.

    Example:
        >>> import attnmargin as am
        >>> rows = [[1.0, 0.0], [0.0, 1.0]]  # W₁₁ ≥ 1 and W₂₂ ≥ 1: [[1, c], [c, 1]], any c ≤ 1
        >>> am.uniqueness(am.solve(am.margin_problem(rows, rows), "nuc"))
        <Uniqueness.NOT_UNIQUE: 'not unique'>
        >>> am.uniqueness(am.solve(am.margin_problem(rows, rows), "sum"))
        <Uniqueness.UNIQUE: 'unique'>
    """
    optimal = np.asarray(solution.status == Status.OPTIMAL)
    answer = np.empty(optimal.shape, dtype=object)
    answer.fill(Uniqueness.OPEN)
    if isinstance(solution.norm, Frobenius | Lp):
        answer[optimal] = Uniqueness.UNIQUE
        return answer[()]
    for index in solution.problem.members():
        if optimal[index]:
            answer[index] = _one(solution, index)
    return answer[()]


def _one(solution: Solution, index: tuple[int, ...]) -> Uniqueness:
    """Decide for one problem in a norm that is not strictly convex."""
    problem = solution.problem[index].as_dtype(torch.float64)
    W, dual = (x[index].to(torch.float64) for x in (solution.W, solution.dual))
    if not bool(W.any()):
        return Uniqueness.UNIQUE
    found = face(solution.norm, problem.adjoint(dual))
    weight = dual.abs() * problem.lengths()
    tight = problem.mask & (problem.equality | (weight > _SURE * weight.max()))
    rows = found.rows(problem.left[tight], problem.right[tight])
    rows = rows / torch.linalg.vector_norm(rows, dim=-1, keepdim=True).clamp_min(_TINY)
    if rows.shape[-1] == 0 or _determined(rows):
        return Uniqueness.UNIQUE
    if solution.outside:
        return Uniqueness.OPEN
    return Uniqueness.NOT_UNIQUE if _second(solution, index, found, rows) else Uniqueness.OPEN


def _determined(rows: Tensor) -> bool:
    """Check whether rows ``(M, k)`` of length one determine k unknowns."""
    if rows.shape[0] < rows.shape[1]:
        return False
    size = torch.linalg.svdvals(rows)
    return bool((size > _INDEPENDENT * size[0]).all())


def _second(solution: Solution, index: tuple[int, ...], found: Face, rows: Tensor) -> bool:
    """Check whether a step along a direction that the rows leave free leads to a solution."""
    problem = solution.problem[index].as_dtype(torch.float64)
    W, dual = (x[index].to(torch.float64) for x in (solution.W, solution.dual))
    generator = torch.Generator().manual_seed(seed_of("uniqueness"))
    shape = rows.shape[-1], _DIRECTIONS
    drawn = torch.randn(shape, generator=generator, dtype=torch.float64).to(rows.device)
    reached = torch.linalg.lstsq(
        rows.cpu(), (rows @ drawn).cpu(), driver="gelsd", rcond=_INDEPENDENT
    )
    free = drawn - reached.solution.to(rows.device)
    for direction in free.mT:
        D = found.matrix(direction)
        step = _FAR * torch.linalg.matrix_norm(W) / torch.linalg.matrix_norm(D).clamp_min(_TINY)
        for sign in (1.0, -1.0):
            check = certify(problem, solution.norm, W + sign * step * D, dual)
            if max(float(check.gap), float(check.primal)) <= _SAME:
                return True
    return False
