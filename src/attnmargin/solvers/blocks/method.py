"""Large Frobenius problems: block ascent and conjugate gradients on a working set of rows."""

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
from attnmargin.solvers.frobenius.method import (
    Answer,
    active_set_work,
    flatten,
    solve_frobenius,
)
from attnmargin.solvers.outcome import INFEASIBLE, SOLVED, STALLED
from attnmargin.solvers.watch import Watch

# Rounds in all, and rounds without progress after which the exact method is asked, or the search
# ends if there are too many rows for that.
_ROUNDS, _PATIENCE, _LONG_PATIENCE = 1000, 8, 100
# The exact method takes at most so many rows.
_EXACT = 4000
# It is faster than a round of ascent if its work is below this. Above the first error a search has
# no end in sight; below the second, the rows that hold are a good start.
_QUICK, _FAR, _NEAR = 1e8, 1e-3, 1e-2
# After so many rounds, crowded rows are moved together.
_LEAP = 8
# bᵀλ above this many times ‖W‖² suggests a contradiction; when none is found, the factor grows.
_SUSPICIOUS, _GROWTH = 30.0, 8.0


def solve_blocks(
    problem: MarginProblem, start: Tensor | None = None, watch: Watch | None = None
) -> Answer:
    """Solve in float64, a problem per thread; return multipliers, W, outcome and iterations.

    Args:
        problem: rows with batch ``*B``, on the CPU.
        start: multipliers ``(*B, M)`` up to a factor.
        watch: says when to end with the best W so far.
    """
    flat, batch = flatten(problem), problem.batch_shape
    B = batch.numel()
    starts = [None] * B if start is None else list(start.reshape(B, problem.M).numpy())
    watch = Watch() if watch is None else watch

    def one(b: int) -> tuple[Floats, Floats, int, int]:
        return _solve(scaled(flat[b]), starts[b], watch)

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
def _solve(own: Scaled, start: Floats | None, watch: Watch) -> tuple[Floats, Floats, int, int]:
    """Solve one problem; return its multipliers, W, outcome and rounds."""
    dual = np.zeros(len(own.scale))
    if own.impossible >= 0:
        bound = own.P.bound[own.impossible] * own.scale[own.impossible]
        dual[own.impossible] = 1.0 / (bound * own.unit)
        return dual, np.zeros((own.P.left.shape[1], own.width)), INFEASIBLE, 0
    search = Search(own, start)
    outcome = _search(search, watch)
    if outcome == INFEASIBLE:
        dual = search.dual / (own.scale * own.unit)
    elif search.norm > 0.0:
        dual = search.dual / (search.norm * own.scale)
    return dual, own.original(search.W), outcome, search.rounds


def _search(search: Search, watch: Watch) -> int:
    """Improve until the problem is solved, contradicts itself, or nothing helps."""
    suspicious, asked = _SUSPICIOUS, False
    while search.error > search.goal:
        watch.tell(len(search.own.there), len(search.held), search.error)
        if search.rounds >= _ROUNDS or watch.over:
            break
        if search.excess > suspicious:
            suspicious *= _GROWTH
            if _contradicts(search):
                return INFEASIBLE
        few = len(search.critical(_EXACT)) > 0
        tired = search.waited >= (_PATIENCE if few else _LONG_PATIENCE)
        if not tired and (asked or not _quick(search)):
            if search.rounds == _LEAP and search.error > _NEAR and search.crowded:
                search.leap()
            search.round()
            asked = False
            continue
        rows, outcome = _exact(search)
        if outcome == INFEASIBLE or (outcome == SOLVED and rows == len(search.own.there)):
            return outcome
        if outcome == STALLED or (tired and search.waited):
            break
        asked = search.waited > 0
    if search.error <= search.goal:
        return SOLVED
    search.return_to_best()
    return STALLED


def _quick(search: Search) -> bool:
    """Decide whether the active-set method on the live rows is faster than going on.

    It is if it takes less than a round, or less than all rounds while the end is not in sight.
    """
    rows = len(search.live)
    estimate = active_set_work(rows, search.W.shape)
    long = search.error > _FAR and rows <= _EXACT and search.work > estimate
    return search.rounds > 0 and (long or estimate < _QUICK)


def _contradicts(search: Search) -> bool:
    """Look for a proof that no W exists; if there is one, it becomes the multipliers."""
    proof = contradiction(search.own, search.held, search.dual[search.held])
    if proof is None:
        return _exact(search)[1] == INFEASIBLE
    search.set_dual(*proof)
    return True


def _exact(search: Search) -> tuple[int, int]:
    """Solve the rows that hold, or nearly do, by the active-set method, and go on from there.

    Return how many these are, and the outcome.
    """
    rows = search.live if _quick(search) else search.critical(_EXACT)
    if not len(rows):
        return 0, STALLED
    dual, W, outcome = _active_set(search, rows)
    if outcome == INFEASIBLE:
        search.set_dual(rows, dual)
    elif outcome == SOLVED:
        search.start_from(rows, dual * float(np.linalg.norm(W)), W)
    return len(rows), outcome


def _active_set(search: Search, rows: Ints) -> tuple[Floats, Floats, int]:
    """Solve some rows alone; return their multipliers of min ‖W‖, W and the outcome."""
    P, per = search.own.P, search.own.per
    arrays = (P.left[rows], P.query[rows // per], P.bound[rows], P.free[rows])
    small = margin_problem(*(torch.from_numpy(x) for x in arrays))
    # Far from the solution, the rows that hold are mostly wrong, and worse than no start.
    held = torch.from_numpy((search.dual[rows] != 0.0) & (search.error < _NEAR))
    dual, W, outcome, _ = solve_frobenius(small, held, "active-set")
    return dual.numpy(), W.numpy(), int(outcome)
