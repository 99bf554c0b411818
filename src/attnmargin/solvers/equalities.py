"""The last digits of equalities, which interior-point methods satisfy only relative to ‖W‖."""

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from attnmargin.base.arrays import tiny
from attnmargin.margin.certificate import Status, certify
from attnmargin.margin.norms import scaled_norm
from attnmargin.margin.problem import MarginProblem
from attnmargin.margin.solution import Solution

# Eigenvalues of the Gram matrix below this share of the largest come from repeated rows.
_REPEATED = 1e-10


def on_equalities(solution: Solution) -> Solution:
    """Project inaccurate members onto their equalities; keep those with a better certificate.

    The certificate measures an equality relative to its bound. For a small bound, such as that of
    two almost equal probabilities, an error of 1e-12 ‖W‖ is too large.
    """
    problem, norm = solution.problem, solution.norm
    wanting = torch.from_numpy(np.asarray(solution.status == Status.INACCURATE))
    wanting = wanting.to(problem.mask.device) & _equalities(problem).any(-1)
    if not bool(wanting.any()):
        return solution
    members = problem[wanting]
    moved = _moved(members, solution.W[wanting])
    found = certify(members, norm, moved, solution.dual[wanting])
    better = found.primal < solution.certificate.primal[wanting]
    better &= found.gap <= torch.clamp_min(solution.certificate.gap[wanting], found.tolerance)
    W = solution.W.clone()
    W[wanting] = moved.where(better[:, None, None], W[wanting])
    return replace(solution, W=W, certificate=certify(problem, norm, W, solution.dual))


def _equalities(problem: MarginProblem) -> Tensor:
    return problem.equality & problem.mask


def _moved(problem: MarginProblem, W: Tensor) -> Tensor:
    """Compute ``W + Aᵀy`` with ``A Aᵀ y = b − A W`` for the equalities A, ``(B, d, e)``."""
    own = _equalities(problem)
    pairs = own.unsqueeze(-1) & own.unsqueeze(-2)
    # Scale rows to length one: squares of long rows overflow.
    left, right = (x / scaled_norm(x).clamp_min(tiny(x)).unsqueeze(-1)
                   for x in (problem.left, problem.right))  # fmt: skip
    gram = ((left @ left.mT) * (right @ right.mT)).where(pairs, 0.0)
    missing = (problem.bound - problem.apply(W)) / problem.lengths().clamp_min(tiny(W))
    y = torch.linalg.pinv(gram, rtol=_REPEATED, hermitian=True)
    y = y @ missing.where(own, 0.0).unsqueeze(-1)
    return W + left.mT @ (y * right)
