"""Local solutions in the nuclear norm with ``W = K Qᵀ`` of width at most m.

    min ½(‖K‖² + ‖Q‖²)   subject to   ⟨a_i, K Qᵀ⟩ ≥ b_i,   K (d, m), Q (e, m)

Its value is the nuclear norm of ``K Qᵀ`` (paper A, (KQ-SVM) and (Att-SVM⋆)). The problem is not
convex. From several starts, each round linearises the rows at (K, Q), solves the resulting
Frobenius problem over both factors, and searches along the line to its solution. The best end point
wins.
"""

import torch
from torch import Tensor

from attnmargin.base.seeds import seed_of
from attnmargin.margin.norms import Nuclear
from attnmargin.margin.problem import MarginProblem, margin_problem
from attnmargin.solvers.frobenius.method import flatten, solve_frobenius
from attnmargin.solvers.interior.walk import touching
from attnmargin.solvers.outcome import SOLVED

_STARTS, _ROUNDS = 8, 300
# A start ends when a round gains less than this, relatively.
_ENOUGH = 1e-13
_STEPS = tuple(0.5**k for k in range(9))
# Weight, in the merit of a point, of violations that no scaling can repair.
_PENALTY = 10.0


def local_solutions(problem: MarginProblem, W: Tensor, m: int, method: str) -> Tensor:
    """Find feasible W ``(B, d, e)`` of rank ≤ m; NaN where none was found.

    Args:
        problem: rows with one batch dimension B.
        W: convex solutions, from which all starts are made.
        m: width of K and Q.
        method: method for the Frobenius problems.
    """
    flat = flatten(problem)
    starts = _starts(W.to(torch.float64), m)
    B = len(W)
    many = _repeated(flat, _STARTS)
    K, Q = (x.flatten(0, 1) for x in starts)
    merit = _merit(many, K @ Q.mT)
    live = torch.ones_like(merit, dtype=torch.bool)
    for _ in range(_ROUNDS):
        place = live.nonzero()[:, 0]
        if len(place) == 0:
            break
        better = _round(many[place], K[place], Q[place], merit[place], method)
        ended = ~(better[2] < (1.0 - _ENOUGH) * merit[place])
        K[place], Q[place], merit[place] = better
        live[place[ended]] = False
    best = merit.reshape(_STARTS, B).argmin(0)
    ends = touching(many, K @ Q.mT).unflatten(0, (_STARTS, B))[best, torch.arange(B)]
    found = torch.isfinite(merit.reshape(_STARTS, B).amin(0))
    return ends.where(found[:, None, None], torch.nan)


def _starts(W: Tensor, m: int) -> tuple[Tensor, Tensor]:
    """Build factors ``(starts, B, ·, m)``: the m largest directions of W, and random mixtures."""
    U, S, Vh = torch.linalg.svd(W, full_matrices=False)
    root = S.sqrt().unsqueeze(-2)
    generator = torch.Generator().manual_seed(seed_of("low rank starts"))
    mix = torch.randn(_STARTS - 1, S.shape[-1], m, generator=generator, dtype=W.dtype)
    mix = torch.linalg.qr(mix)[0].to(W.device).unsqueeze(1)
    K = torch.cat(((U * root)[None, ..., :m], (U * root) @ mix))
    Q = torch.cat(((Vh.mT * root)[None, ..., :m], (Vh.mT * root) @ mix))
    return K, Q


def _repeated(problem: MarginProblem, count: int) -> MarginProblem:
    """Repeat a batch ``count`` times."""
    every = torch.arange(len(problem.left), device=problem.left.device).repeat(count)
    return problem[every]


def _merit(problem: MarginProblem, W: Tensor) -> Tensor:
    """Add a penalty on the remaining violations to the nuclear norm of the scaled W, ``(B,)``."""
    needed = problem.mask & ~problem.equality & (problem.bound > 0)
    fixed = (problem.mask & problem.equality & (problem.bound != 0)).any(-1)
    possible = fixed | ~(needed & (problem.apply(W) <= 0)).any(-1)
    W = touching(problem, W)
    missing = problem.bound - problem.apply(W)
    violation = missing.abs().where(problem.equality, missing.clamp_min(0.0))
    size = problem.lengths().clamp_min(1e-300)
    total = (violation / size).where(problem.mask, 0.0).sum(-1)
    return (Nuclear().value(W) + _PENALTY * total).where(possible, torch.inf)


def _balanced(K: Tensor, Q: Tensor) -> tuple[Tensor, Tensor]:
    """Find the factors of least norm with the same product."""
    left, A = torch.linalg.qr(K)
    right, B = torch.linalg.qr(Q)
    U, S, Vh = torch.linalg.svd(A @ B.mT)
    root = S.sqrt().unsqueeze(-2)
    return left @ U * root, right @ Vh.mT * root


def _round(
    problem: MarginProblem, K: Tensor, Q: Tensor, merit: Tensor, method: str
) -> tuple[Tensor, Tensor, Tensor]:
    """Search the line to the solution for linearised rows; keep (K, Q) if nothing is better."""
    K, Q = _balanced(K, Q)
    linear = _linearised(problem, K, Q)
    _, x, outcome, _ = solve_frobenius(linear, None, method)
    ahead_K, ahead_Q = _split(x[..., 0], K, Q)
    usable = (outcome == SOLVED)[:, None, None]
    best = (K, Q, merit)
    for step in _STEPS:
        new_K = (K + step * (ahead_K - K)).where(usable, K)
        new_Q = (Q + step * (ahead_Q - Q)).where(usable, Q)
        value = _merit(problem, new_K @ new_Q.mT)
        better = value < best[2]
        wide = better[:, None, None]
        best = (
            new_K.where(wide, best[0]),
            new_Q.where(wide, best[1]),
            value.where(better, best[2]),
        )
    return best


def _linearised(problem: MarginProblem, K: Tensor, Q: Tensor) -> MarginProblem:
    """Linearise ``⟨a_i, K Qᵀ⟩ ≥ b_i`` to rows over the vector (K, Q)."""
    left, right = problem.left, problem.right
    of_K = (left.unsqueeze(-1) * (right @ Q).unsqueeze(-2)).flatten(-2)
    of_Q = (right.unsqueeze(-1) * (left @ K).unsqueeze(-2)).flatten(-2)
    bound = problem.bound + problem.apply(K @ Q.mT)
    rows = torch.cat((of_K, of_Q), -1)
    one = rows.new_ones(len(rows), 1, 1)
    return margin_problem(rows, one, bound, problem.equality, problem.mask)


def _split(x: Tensor, K: Tensor, Q: Tensor) -> tuple[Tensor, Tensor]:
    size = K.shape[-2] * K.shape[-1]
    return x[..., :size].reshape(K.shape), x[..., size:].reshape(Q.shape)
