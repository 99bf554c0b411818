"""The largest entry, and the sum of entries, by the simplex method of HiGHS through scipy.

It ends at a vertex with errors near 1e-9, on rows of unit length. The rows and entries that hold
there, solved as equations, give the last digits.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import linprog

from attnmargin.margin.problem import MarginProblem
from attnmargin.solvers.frobenius.method import Answer
from attnmargin.solvers.interior.walk import Warm, solve_from_frobenius, unit_rows

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_OPTIONS = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
# A multiplier or a distance below this, relative to the largest, is zero at the vertex.
_ZERO = 1e-8


def solve_simplex(problem: MarginProblem, shared: bool, warm: Warm | None) -> Answer:
    """Solve in float64; return multipliers ``(*B, M)``, W, outcome and iterations.

    Args:
        shared: the largest entry counts; else the sum.
    """

    def solve_members(
        members: MarginProblem, guess: torch.Tensor, value: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        unit = unit_rows(members, guess, value)
        A = (unit.left.unsqueeze(-1) * unit.right(unit.query).unsqueeze(-2)).flatten(-2)
        given = [x.cpu().numpy() for x in (A, unit.b, unit.free, unit.exists)]
        found = [
            _solve_one(A, b, free, exists, shared=shared)
            for A, b, free, exists in zip(*given, strict=True)
        ]
        device = members.left.device
        dual = torch.from_numpy(np.stack([x[0] for x in found])).to(device) / unit.length
        W = torch.from_numpy(np.stack([x[1] for x in found])).to(device)
        steps = torch.tensor([x[2] for x in found], device=device)
        return dual, W.unflatten(-1, members.shape) * value[:, None, None], steps

    return solve_from_frobenius(problem, warm, "lockstep", solve_members)


def _solve_one(
    A: Floats, b: Floats, free: Bools, exists: Bools, *, shared: bool
) -> tuple[Floats, Floats, int]:
    """Solve one feasible problem with rows ``(M, N)``; return multipliers, W and iterations."""
    N, dual = A.shape[1], np.zeros(len(b))
    greater, equal = exists & ~free, exists & free
    answer = linprog(
        _costs(N, shared),
        A_ub=_bounded(-A[greater]) if shared else _wide(-A[greater], shared),
        b_ub=np.r_[-b[greater], np.zeros(2 * N)] if shared else -b[greater],
        A_eq=_wide(A[equal], shared) if equal.any() else None,
        b_eq=b[equal] if equal.any() else None,
        bounds=(None, None) if shared else (0, None),
        method="highs-ds",
        options=_OPTIONS,
    )
    if answer.x is None:
        return dual, np.full(N, np.nan), 0
    w = answer.x[:N] if shared else answer.x[:N] - answer.x[N:]
    dual[greater] = np.maximum(-answer.ineqlin.marginals[: greater.sum()], 0.0)
    if equal.any():
        dual[equal] = answer.eqlin.marginals
    w, dual = _at_vertex(A, b, free, w, dual, shared)
    return dual, w, int(answer.nit)


def _costs(N: int, shared: bool) -> Floats:
    """Return the costs of w and t, or of the positive and negative parts of w."""
    return np.r_[np.zeros(N), 1.0] if shared else np.ones(2 * N)


def _wide(A: Floats, shared: bool) -> Floats:
    """Write rows of w as rows of the variables."""
    return np.hstack((A, np.zeros((len(A), 1)))) if shared else np.hstack((A, -A))


def _bounded(A: Floats) -> Floats:
    """Append ``w ≤ t`` and ``−w ≤ t``."""
    identity, ones = np.eye(A.shape[1]), np.ones((A.shape[1], 1))
    above, below = np.hstack((identity, -ones)), np.hstack((-identity, -ones))
    return np.vstack((_wide(A, True), above, below))


def _at_vertex(
    A: Floats, b: Floats, free: Bools, w: Floats, dual: Floats, shared: bool
) -> tuple[Floats, Floats]:
    """Solve the rows and entries that hold as equations, starting from w and its multipliers."""
    V, t = A.T @ dual, np.abs(w).max()
    held = free | (dual > _ZERO * np.abs(dual).max())
    if shared:  # w = ± t, where the force is not zero
        fixed = np.abs(V) > _ZERO * np.abs(V).max()
        slope = np.where(fixed, np.sign(V), 0.0)
        system = np.hstack((A[held][:, ~fixed], (A[held] @ slope)[:, None]))
        x = _nearest(system, b[held], np.r_[w[~fixed], t])
        w = slope * x[-1]
        w[~fixed] = x[:-1]
        target = np.r_[np.zeros((~fixed).sum()), 1.0]
    else:
        fixed = np.abs(w) <= _ZERO * t  # w = 0
        system = A[held][:, ~fixed]
        x = _nearest(system, b[held], w[~fixed])
        target = np.sign(w[~fixed])
        w = np.zeros_like(w)
        w[~fixed] = x
    sharp = np.zeros_like(dual)
    sharp[held] = _nearest(system.T, target, dual[held])
    return w, np.where(free, sharp, np.maximum(sharp, 0.0))


def _nearest(A: Floats, b: Floats, x: Floats) -> Floats:
    """Find the solution of ``A x = b`` nearest to x."""
    found: Floats = x + np.linalg.lstsq(A, b - A @ x, rcond=1e-11)[0]
    return found
