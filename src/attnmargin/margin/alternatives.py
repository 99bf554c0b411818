"""Uniqueness of solutions: proved, refuted by a second solution, or left open."""

from enum import StrEnum
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attnmargin.margin.certificate import Status, certify
from attnmargin.margin.norms import Nuclear
from attnmargin.margin.solution import Solution

# With a relative gap of 1e-10, an optimal W has at most 1e-5 of its norm on singular values of V
# below 1 − 1e-5, and a slack of at most 1e-5 on rows with a relative multiplier above 1e-5.
_SURE = 1e-5
# Relative singular values of the rows on the face that count as independent.
_INDEPENDENT = 1e-5
# Relative distance to a second solution, and the gap it may have.
_FAR, _SAME = 1e-3, 1e-8
_TINY = 1e-300


class Uniqueness(StrEnum):
    """What is known about other solutions with the same norm."""

    UNIQUE = "unique"
    NOT_UNIQUE = "not unique"
    OPEN = "open"


def uniqueness(solution: Solution) -> Any:
    """Decide whether each solution is unique: a :class:`Uniqueness`, or a numpy array of them.

    The Frobenius and ℓp norms are strictly convex, so an optimal solution is unique. For the
    nuclear norm let ``V = Σ λ_i a_i``, ``‖V‖ = 1``, with singular vectors ``U₁, V₁`` for the
    singular value one. Every optimal W is ``U₁ S V₁ᵀ`` with ``S ⪰ 0``, and tight on rows with
    ``λ_i > 0``. So W is unique if these rows determine a symmetric S. If they do not, the function
    looks for a second solution along a direction that they leave free, and certifies it. Comparing
    trained weights with a solution that is not unique says little. Where the problem leaves rows
    out, which a second solution may violate, it stays open.

    Example:
        >>> import attnmargin as am
        >>> rows = [[1.0, 0.0], [0.0, 1.0]]  # W₁₁ ≥ 1 and W₂₂ ≥ 1: [[1, c], [c, 1]], any c ≤ 1
        >>> am.uniqueness(am.solve(am.margin_problem(rows, rows), "nuc"))
        <Uniqueness.NOT_UNIQUE: 'not unique'>
    """
    optimal = np.asarray(solution.status == Status.OPTIMAL)
    answer = np.empty(optimal.shape, dtype=object)
    answer.fill(Uniqueness.OPEN)
    if not isinstance(solution.norm, Nuclear):
        answer[optimal] = Uniqueness.UNIQUE
        return answer[()]
    for index in solution.problem.members():
        if optimal[index]:
            answer[index] = _one(solution, index)
    return answer[()]


def _one(solution: Solution, index: tuple[int, ...]) -> Uniqueness:
    """Decide for one problem in the nuclear norm."""
    problem = solution.problem[index].as_dtype(torch.float64)
    W, dual = (x[index].to(torch.float64) for x in (solution.W, solution.dual))
    if float(Nuclear().value(W)) == 0.0:
        return Uniqueness.UNIQUE
    V = problem.adjoint(dual)
    U, sigma, Vh = torch.linalg.svd(V / torch.linalg.matrix_norm(V, 2))
    r = int((sigma > 1.0 - _SURE).sum())
    weight = dual.abs() * problem.lengths()
    tight = problem.mask & (problem.equality | (weight > _SURE * weight.max()))
    left, right = problem.left[tight] @ U[:, :r], problem.right[tight] @ Vh[:r].mT
    rows = _symmetric_rows(left, right)
    rows = rows / torch.linalg.vector_norm(rows, dim=-1, keepdim=True).clamp_min(_TINY)
    _, size, directions = torch.linalg.svd(rows, full_matrices=True)
    if int((size > _INDEPENDENT * size[0]).sum()) == rows.shape[-1]:
        return Uniqueness.UNIQUE
    if solution.outside:
        return Uniqueness.OPEN
    free = U[:, :r] @ _matrix(directions[-1], r) @ Vh[:r]
    return Uniqueness.NOT_UNIQUE if _second(solution, index, free) else Uniqueness.OPEN


def _symmetric_rows(left: Tensor, right: Tensor) -> Tensor:
    """Write ``left_iᵀ S right_i`` as rows ``(M, r(r+1)/2)``, with S in an orthonormal basis."""
    r = left.shape[-1]
    outer = left.unsqueeze(-1) * right.unsqueeze(-2)
    i, j = torch.triu_indices(r, r, device=left.device)
    both = (outer + outer.mT)[:, i, j]
    return both * torch.where(i == j, 0.5, 0.5**0.5)


def _matrix(coefficients: Tensor, r: int) -> Tensor:
    """Build the symmetric matrix with these coefficients."""
    i, j = torch.triu_indices(r, r, device=coefficients.device)
    half = coefficients.new_zeros(r, r)
    half[i, j] = coefficients * torch.where(i == j, 0.5, 0.5**0.5)
    return half + half.mT


def _second(solution: Solution, index: tuple[int, ...], D: Tensor) -> bool:
    """Check whether a step along ±D leads to another certified solution."""
    problem = solution.problem[index].as_dtype(torch.float64)
    W, dual = (x[index].to(torch.float64) for x in (solution.W, solution.dual))
    step = _FAR * torch.linalg.matrix_norm(W) / torch.linalg.matrix_norm(D)
    for sign in (1.0, -1.0):
        check = certify(problem, solution.norm, W + sign * step * D, dual)
        if max(float(check.gap), float(check.primal)) <= _SAME:
            return True
    return False
