"""Frobenius norm: prepares plain arrays for the compiled, the torch or the GPU method."""

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from attnmargin.base.compiled import in_threads
from attnmargin.margin.problem import MarginProblem, RowNames
from attnmargin.solvers.frobenius.fused import check_fused, solve_fused
from attnmargin.solvers.frobenius.lockstep import solve_lockstep

METHODS = ("active-set", "lockstep")
FUSED = "fused"
FROBENIUS_KERNEL = "attnmargin.solvers.frobenius.active_set"
# Work of the active-set method from which on block ascent is faster.
LARGE_WORK = 5e7

Answer = tuple[Tensor, Tensor, Tensor, Tensor]


def solve_frobenius(problem: MarginProblem, start: Tensor | None, method: str) -> Answer:
    """Solve in float64; return multipliers ``(*B, M)``, W, outcome and iterations."""
    batch = problem.batch_shape
    flat = flatten(problem)
    if start is not None:
        start = start.reshape(batch.numel(), problem.M)
    if method == FUSED:
        check_fused(flat)
        answer = solve_fused(flat)
    else:
        answer = solve_lockstep(flat) if method == "lockstep" else _solve_compiled(flat, start)
    dual, W, outcome, iterations = (part.unflatten(0, batch or (1,)) for part in answer)
    if not batch:
        return dual[0], W[0], outcome[0], iterations[0]
    return dual, W, outcome, iterations


def active_set_work(rows: int, shape: tuple[int, ...]) -> float:
    """Estimate the work of the active-set method: the rows times the square of those that hold."""
    return float(rows) * min(rows, shape[0] * shape[1]) ** 2


def flatten(problem: MarginProblem) -> MarginProblem:
    """Convert to one batch dimension, float64, and rows without names."""
    problem = problem.as_dtype(torch.float64)
    B = problem.batch_shape.numel()
    none = torch.full((problem.M,), -1, device=problem.left.device)
    return replace(
        problem,
        left=problem.left.reshape(B, *problem.left.shape[-2:]),
        query=problem.query.reshape(B, *problem.query.shape[-2:]),
        bound=problem.bound.reshape(B, problem.M),
        equality=problem.equality.reshape(B, problem.M),
        mask=problem.mask.reshape(B, problem.M),
        names=RowNames(none, none, none, none),
    )


def _default_start(problem: MarginProblem) -> bool:
    """Decide whether to start with all rows, of which the method keeps those likely to hold."""
    return problem.shape[0] * problem.shape[1] >= problem.M


def _solve_compiled(problem: MarginProblem, start: Tensor | None) -> Answer:
    from attnmargin.solvers.frobenius.active_set import solve_rows

    B, M = problem.bound.shape
    if start is None:
        start = torch.full((B, M), _default_start(problem))
    # Copy with numpy: torch would leave its idle threads spinning on the cores needed next.
    rows = (problem.left, problem.query, problem.bound, problem.equality, problem.mask, start)
    copies = [x.numpy().copy() for x in rows]
    answer = [np.empty((B, M)), np.empty((B, *problem.shape)), np.empty(B, int), np.empty(B, int)]
    in_threads(solve_rows, [*copies, *answer], B)
    dual, W, outcome, iterations = (torch.from_numpy(part) for part in answer)
    return dual, W, outcome, iterations
