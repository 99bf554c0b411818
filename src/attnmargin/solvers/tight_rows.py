"""The last digits of rows that hold, which interior-point methods satisfy only nearly."""

from dataclasses import replace

import torch
from torch import Tensor

from attnmargin.base.arrays import tiny
from attnmargin.margin.certificate import CODES, Status, certify
from attnmargin.margin.norms import scaled_norm
from attnmargin.margin.problem import MarginProblem
from attnmargin.margin.solution import Solution
from attnmargin.solvers.interior.walk import touching

# Eigenvalues of the Gram matrix below this share of the largest come from repeated rows.
_REPEATED = 1e-10
# A multiplier below this share of the largest belongs to a row that is not tight.
_COUNTS = 1e-7
# More rows than this are not worth the time.
_MANY = 2000


def on_tight_rows(solution: Solution) -> Solution:
    """Project inaccurate members onto the rows that hold; keep those with a better certificate.

    The certificate measures an equality relative to its bound. For a small bound, such as that of
    two almost equal probabilities, an error of 1e-12 ‖W‖ is too large. And a W that misses a few
    tight rows must be scaled up as a whole, which costs far more norm than a small move.
    """
    problem, norm = solution.problem, solution.norm
    wanting = solution.code == CODES[Status.INACCURATE]
    if not bool(wanting.any()):
        return solution
    wanting &= torch.isfinite(solution.W).all(-1).all(-1)
    places = [tuple(place) for place in wanting.nonzero().tolist()]
    if not places:
        return solution
    W = solution.W.clone()
    for b in places:
        member = solution[b]
        moved = _moved(member.problem, member.W, _tight(member))
        moved = touching(member.problem, moved)
        found = certify(member.problem, norm, moved, member.dual)
        if torch.maximum(found.gap, found.primal) < torch.maximum(
            member.certificate.gap, member.certificate.primal
        ):
            W[b] = moved
    return replace(solution, W=W, certificate=certify(problem, norm, W, solution.dual))


def _tight(member: Solution) -> Tensor:
    """Find the equalities, and the rows whose multiplier counts, as indices."""
    problem = member.problem
    force = member.dual.abs() * problem.lengths()
    counts = force > _COUNTS * force.amax() if problem.M else force > 0
    return (problem.mask & (problem.equality | counts)).nonzero().flatten()


def _moved(problem: MarginProblem, W: Tensor, rows: Tensor) -> Tensor:
    """Compute ``W + Aᵀy`` with ``A Aᵀ y = b − A W`` for some rows A, ``(d, e)``."""
    if not 0 < len(rows) <= _MANY:
        return W
    left = problem.left[rows]
    right = problem.query[rows // (problem.M // problem.query.shape[-2])]
    lengths = [scaled_norm(x).clamp_min(tiny(x)) for x in (left, right)]
    # Rows of length one: squares of long rows overflow.
    left, right = left / lengths[0].unsqueeze(-1), right / lengths[1].unsqueeze(-1)
    missing = (problem.bound - problem.apply(W))[rows] / (lengths[0] * lengths[1])
    gram = (left @ left.mT) * (right @ right.mT)
    y = torch.linalg.pinv(gram, rtol=_REPEATED, hermitian=True) @ missing.unsqueeze(-1)
    return W + left.mT @ (y * right)
