"""The dual active-set method for a batch of small problems, in one GPU kernel.

A program of the kernel walks one problem from the empty set of active rows to its solution or to a
contradiction, in registers. The method is that of :mod:`attnmargin.solvers.frobenius.lockstep`,
without its care for badly scaled and nearly dependent rows. It claims nothing: the certificate
finds what it did not settle, and another method solves it again.
"""

from importlib.util import find_spec

import torch
from torch import Tensor

from attnmargin.base.errors import InputError, MissingPackageError
from attnmargin.margin.problem import MarginProblem

# Largest number of rows, whose tableau must fit into the registers, and of entries of W.
_ROWS, _ENTRIES = 128, 1 << 14
# How often W is refined, and how often rows that are violated afterwards may enter.
_PASSES, _ROUNDS = 3, 3
# Columns of W that are computed together.
_WIDTH = 16
_WARPS = {16: 1, 32: 1, 64: 2, 128: 8}


def fits(problem: MarginProblem) -> bool:
    """Check whether the kernel can solve a problem: small, and on a GPU with Triton."""
    return problem.left.is_cuda and find_spec("triton") is not None and is_small(problem)


def is_small(problem: MarginProblem) -> bool:
    """Check whether the problem has rows, and its tableau fits into registers."""
    d, e = problem.shape
    return 0 < problem.M <= _ROWS and d * e <= _ENTRIES and problem.batch_shape.numel() > 0


def check_fused(problem: MarginProblem) -> None:
    """Raise unless the kernel can solve the problem."""
    if find_spec("triton") is None:
        raise MissingPackageError("method 'fused'", "triton")
    if not problem.left.is_cuda:
        got = f"'fused' with tensors on {problem.left.device}"
        raise InputError("method", got, "'active-set', 'lockstep', or tensors on a GPU")
    if not is_small(problem):
        got = f"'fused' with {problem.M} rows and W of shape {problem.shape}"
        needs = f"'lockstep', or 1 to {_ROWS} rows and W of at most {_ENTRIES} entries"
        raise InputError("method", got, needs)


def solve_fused(problem: MarginProblem) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Solve a flat float64 batch; return multipliers ``(B, M)``, W, outcome and iterations."""
    from attnmargin.solvers.frobenius.fused_kernel import solve_member

    B, M = problem.bound.shape
    (D, E), Q = problem.shape, problem.query.shape[-2]
    rows = (problem.left, problem.query, problem.bound)
    marks = (x.contiguous().view(torch.int8) for x in (problem.equality, problem.mask))
    dual, W = torch.empty_like(problem.bound), problem.left.new_zeros(B, D, E)
    outcome, iterations = torch.empty(2, B, dtype=torch.int64, device=W.device)
    block = max(16, 1 << (M - 1).bit_length())
    arrays = (*(x.contiguous() for x in rows), *marks, dual, W, outcome, iterations)
    with torch.cuda.device_of(W):
        solve_member[(B,)](
            *arrays, M, Q, D, E, 100 + 20 * M,
            BLOCK=block, WIDTH=_WIDTH, PASSES=_PASSES, ROUNDS=_ROUNDS, num_warps=_WARPS[block],
        )  # fmt: skip
    return dual, W, outcome, iterations
