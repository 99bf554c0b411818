"""Frobenius norm: prepares plain arrays and hands them to the compiled or the torch method."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from itertools import pairwise
from threading import Thread
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attnmargin.errors import InputError, MissingPackageError
from attnmargin.problem import MarginProblem, RowNames
from attnmargin.solvers.lockstep import solve_lockstep

METHODS = ("active-set", "lockstep")
# Fewer problems than this per thread are not worth a thread.
_WORTH_A_THREAD = 16

Answer = tuple[Tensor, Tensor, Tensor, Tensor]


@cache
def _compiled() -> bool:
    return find_spec("numba") is not None


def methods_for(problem: MarginProblem) -> list[str]:
    """The methods that can solve a problem where it is, the best first."""
    on_cpu = problem.left.device.type == "cpu"
    return ["active-set", "lockstep"] if on_cpu and _compiled() else ["lockstep"]


def solve_frobenius(problem: MarginProblem, start: Tensor | None, method: str) -> Answer:
    """Multipliers ``(*B, M)``, W, outcome and iterations, in float64."""
    batch = problem.batch_shape
    flat = flatten(problem)
    if start is not None:
        start = start.reshape(batch.numel(), problem.M)
    answer = solve_lockstep(flat) if method == "lockstep" else _solve_compiled(flat, start)
    dual, W, outcome, iterations = (part.unflatten(0, batch or (1,)) for part in answer)
    if not batch:
        return dual[0], W[0], outcome[0], iterations[0]
    return dual, W, outcome, iterations


def flatten(problem: MarginProblem) -> MarginProblem:
    """One batch dimension, float64, rows without names."""
    problem = problem.to(torch.float64)
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
    """Begin with all rows if most of them will be tight: wide tokens, few rows."""
    d, e = problem.shape
    return d * min(e, problem.query.shape[-2]) >= 2 * problem.M


def _solve_compiled(problem: MarginProblem, start: Tensor | None) -> Answer:
    if problem.left.device.type != "cpu":
        got = f"'active-set' with tensors on {problem.left.device}"
        raise InputError("method", got, "'lockstep', or tensors on the CPU")
    if not _compiled():
        raise MissingPackageError("method 'active-set'", "numba")
    from attnmargin.solvers.active_set import solve_rows

    B, M = problem.bound.shape
    if start is None:
        start = torch.full((B, M), _default_start(problem))
    # Copies by numpy: torch would leave its idle threads spinning on the cores needed next.
    rows = (problem.left, problem.query, problem.bound, problem.equality, problem.mask, start)
    copies = [x.numpy().copy() for x in rows]
    answer = [np.empty((B, M)), np.empty((B, *problem.shape)), np.empty(B, int), np.empty(B, int)]
    _in_threads(solve_rows, [*copies, *answer], B)
    dual, W, outcome, iterations = (torch.from_numpy(part) for part in answer)
    return dual, W, outcome, iterations


def _in_threads(kernel: Callable[..., None], arrays: list[NDArray[Any]], B: int) -> None:
    """Run a kernel that releases the interpreter lock on parts of the batch."""
    threads = min(torch.get_num_threads(), B // _WORTH_A_THREAD)
    if threads < 2:
        kernel(*arrays)
        return
    # Several parts per thread, so that one with hard problems does not hold up the rest.
    edges = np.linspace(0, B, min(8 * threads, B // _WORTH_A_THREAD) + 1).astype(int)
    parts = iter([[array[i:j] for array in arrays] for i, j in pairwise(edges)])
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for part in parts:
                kernel(*part)
        except BaseException as error:
            failures.append(error)

    helpers = [Thread(target=work) for _ in range(threads)]
    for helper in helpers:
        helper.start()
    work()
    for helper in helpers:
        helper.join()
    if failures:
        raise failures[0]
