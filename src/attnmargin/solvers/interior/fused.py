"""The nuclear walk for a batch of small problems, in one GPU kernel.

A program of the kernel follows the central path of one problem. It claims nothing: the certificate
finds what it did not settle, and another method solves it again.
"""

from importlib.util import find_spec

import torch
from torch import Tensor

from attnmargin.base.errors import InputError
from attnmargin.margin.problem import MarginProblem
from attnmargin.solvers.frobenius.fused import check_fused, is_small
from attnmargin.solvers.interior.walk import unit_rows

# Largest number of rows, of dimensions of the queries' span, and of rows and columns of W.
_ROWS, _SPAN, _SIDE = 64, 16, 64
# Queries' span, whose matrices the matrix units multiply.
_WIDTH = 16
_WARPS = {16: 2, 32: 4, 64: 4}
# Programs for each multiprocessor: more than run at once.
_PROGRAMS = 8


def fits_nuclear(problem: MarginProblem) -> bool:
    """Check whether the kernel can solve a problem: small, and on a GPU with Triton."""
    return problem.left.is_cuda and find_spec("triton") is not None and is_narrow(problem)


def is_narrow(problem: MarginProblem) -> bool:
    """Check whether the problem has few rows, and queries that span few dimensions."""
    (d, e), Q = problem.shape, problem.query.shape[-2]
    few = problem.M <= _ROWS and min(e, Q) <= _SPAN and max(d, e) <= _SIDE
    return few and is_small(problem)


def check_fused_nuclear(problem: MarginProblem) -> None:
    """Raise unless the kernel can solve the problem."""
    check_fused(problem)
    if not is_narrow(problem):
        got = f"'fused' with {problem.M} rows and W of shape {problem.shape}"
        most = f"{_ROWS} rows, {_SPAN} queries and {_SIDE} rows and columns of W"
        raise InputError("method", got, f"'lockstep', or at most {most}")


def walk_fused(
    problem: MarginProblem, guess: Tensor, value: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Solve feasible problems whose Frobenius multipliers and positive value are known.

    Return multipliers ``(B, M)``, W and iterations.
    """
    from attnmargin.solvers.interior.fused_nuclear_kernel import walk_members

    unit = unit_rows(problem, guess, value)
    B, M = unit.b.shape
    (D, E), Q = problem.shape, problem.query.shape[-2]
    dual, W = torch.empty_like(unit.b), unit.b.new_empty(B, D, E)
    steps = torch.empty(B, dtype=torch.int64, device=W.device)
    block, span = (max(16, 1 << (size - 1).bit_length()) for size in (M, E))
    programs = min(B, _PROGRAMS * _multiprocessors(W.device))
    size = 2 * block * (block + _WIDTH) + 7 * _WIDTH**2 + _WIDTH * span
    rows = (unit.left, unit.query, unit.b, unit.free.to(unit.b.dtype), unit.guess, unit.length)
    given = (*(x.contiguous() for x in rows), value)
    sizes = {"BLOCK": block, "QB": _WIDTH, "QV": 8 if min(Q, E) <= 8 else _WIDTH}
    sizes |= {"DB": max(16, 1 << (D - 1).bit_length()), "EB": span}
    with torch.cuda.device_of(W):
        walk_members[(programs,)](
            *given, dual, W, steps, W.new_empty(programs, size), B, M, Q, D, E, min(Q, E), size,
            **sizes, num_warps=_WARPS[block],
        )  # fmt: skip
    return dual, W, steps


def _multiprocessors(device: torch.device) -> int:
    if device.type != "cuda":
        return 1
    return int(torch.cuda.get_device_properties(device).multi_processor_count)
