"""Large Frobenius problems: block ascent and conjugate gradients on a working set of rows."""

import math
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from torch import Tensor

from attnmargin.base.compiled import one_thread, wanted_threads
from attnmargin.base.kernels import Floats, Ints
from attnmargin.margin.problem import MarginProblem, margin_problem
from attnmargin.solvers.blocks.contradiction import contradiction
from attnmargin.solvers.blocks.rows import Scaled, scaled
from attnmargin.solvers.blocks.search import Search
from attnmargin.solvers.frobenius.method import Answer, flatten, solve_frobenius
from attnmargin.solvers.outcome import INFEASIBLE, SOLVED, STALLED

# Rounds in all, and rounds without progress after which the exact method is asked.
_ROUNDS, _PATIENCE = 1000, 8
# The exact method takes at most so many rows, and is asked at most so many times.
_EXACT, _OPINIONS = 4000, 20
# bᵀλ above this many times ‖W‖² suggests a contradiction; when none is found, the factor grows.
_SUSPICIOUS, _GROWTH = 30.0, 8.0


def solve_blocks(
    problem: MarginProblem, start: Tensor | None = None, seconds: float | None = None
) -> Answer:
    """Solve in float64, one problem at a time; return multipliers, W, outcome and iterations.

    Args:
        problem: rows with batch ``*B``, on the CPU.
        start: multipliers ``(*B, M)`` up to a factor.
        seconds: time after which the best W so far is returned.
    """
    flat, batch = flatten(problem), problem.batch_shape
    B = batch.numel()
    starts = [None] * B if start is None else list(start.reshape(B, problem.M).numpy())
    end = math.inf if seconds is None else time.perf_counter() + seconds

    def one(b: int) -> tuple[Floats, Floats, int, int]:
        return _solve(scaled(flat[b]), starts[b], end)

    with ThreadPoolExecutor(min(wanted_threads(), max(B, 1))) as pool:
        found = list(pool.map(one, range(B)))
    dual = torch.from_numpy(np.stack([own[0] for own in found]))
    W = torch.from_numpy(np.stack([own[1] for own in found]))
    outcome, rounds = (torch.tensor([own[k] for own in found]) for k in (2, 3))
    return (
        dual.reshape(*batch, problem.M),
        W.reshape(*batch, *problem.shape),
        outcome.reshape(batch),
        rounds.reshape(batch),
    )


@one_thread
def _solve(own: Scaled, start: Floats | None, end: float) -> tuple[Floats, Floats, int, int]:
    """Solve one problem; return its multipliers, W, outcome and rounds."""
    dual = np.zeros(len(own.scale))
    if own.impossible >= 0:
        bound = own.P.bound[own.impossible] * own.scale[own.impossible]
        dual[own.impossible] = 1.0 / bound
        return dual, np.zeros((own.P.left.shape[1], own.width)), INFEASIBLE, 0
    search = Search(own, start)
    outcome = _search(search, end)
    if outcome == INFEASIBLE:
        dual = search.dual / own.scale
    elif search.norm > 0.0:
        dual = search.dual / (search.norm * own.scale)
    return dual, own.original(search.W), outcome, search.rounds


def _search(search: Search, end: float) -> int:
    """Improve until the problem is solved, contradicts itself, or nothing helps."""
    suspicious, opinions = _SUSPICIOUS, 0
    while search.error > search.goal:
        if search.rounds >= _ROUNDS or opinions > _OPINIONS or time.perf_counter() > end:
            break
        if search.excess > suspicious:
            suspicious *= _GROWTH
            if _contradicts(search):
                return INFEASIBLE
        if search.waited < _PATIENCE:
            search.round()
            continue
        whole = len(search.own.there) <= _EXACT
        outcome, opinions = _exact(search), opinions + 1
        if outcome == INFEASIBLE or (outcome == SOLVED and whole):
            return outcome
        if outcome == STALLED:
            break
    if search.error <= search.goal:
        return SOLVED
    search.return_to_best()
    return STALLED


def _contradicts(search: Search) -> bool:
    """Look for a proof that no W exists; if there is one, it becomes the multipliers."""
    proof = contradiction(search.own, search.held, search.dual[search.held])
    if proof is None:
        few = len(search.held) <= _EXACT
        return few and _exact(search) == INFEASIBLE
    search.set_dual(*proof)
    return True


def _exact(search: Search) -> int:
    """Solve the rows that hold, or nearly do, by the active-set method, and go on from there."""
    rows = search.critical(_EXACT)
    if not len(rows):
        return STALLED
    dual, W, outcome = _active_set(search, rows)
    if outcome == INFEASIBLE:
        search.set_dual(rows, dual)
    elif outcome == SOLVED:
        search.start_from(rows, dual * float(np.linalg.norm(W)), W)
        search.waited = 0
    return outcome


def _active_set(search: Search, rows: Ints) -> tuple[Floats, Floats, int]:
    """Solve some rows alone; return their multipliers of min ‖W‖, W and the outcome."""
    P, per = search.own.P, search.own.per
    arrays = (P.left[rows], P.query[rows // per], P.bound[rows], P.free[rows])
    small = margin_problem(*(torch.from_numpy(x) for x in arrays))
    held = torch.from_numpy(search.dual[rows] != 0.0)
    dual, W, outcome, _ = solve_frobenius(small, held, "active-set")
    return dual.numpy(), W.numpy(), int(outcome)
