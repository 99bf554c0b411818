"""Large problems in any norm: solve few rows, add those that are violated, and solve again.

The solution of some of the rows is the solution of all once it satisfies the others: its
multipliers, with zeros for the other rows, prove that nothing is shorter. The first rows are those
that nearly hold in the Frobenius solution.
"""

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from attnmargin.margin.norms import Frobenius
from attnmargin.margin.problem import MarginProblem, margin_problem
from attnmargin.margin.solution import Solution
from attnmargin.solvers.frobenius.method import Answer, flatten
from attnmargin.solvers.interior.schedule import ENOUGH
from attnmargin.solvers.interior.walk import Warm, exponent, touching
from attnmargin.solvers.outcome import INFEASIBLE, SOLVED, STALLED
from attnmargin.solvers.watch import Watch

# Rows with a slack below these shares of their bound join the first rows, and later ones.
FIRST, LATER = 0.02, 0.02
# A violation below this share of the bound is none.
NOTHING = 1e-12
# While rows are still to be found, a solution with this gap will do; then rows with a slack below
# this share stay.
COARSE, _KEPT = 1e-2, 0.05
# So many rows join at a time, or as many as there are: where solutions are not unique, one of few
# rows violates most of the others.
_ADDED = 200
_ROUNDS = 60

# Solves some rows, from what is known of them, to a relative gap.
SolveRows = Callable[[MarginProblem, Warm | None, float], Solution]


def by_working_sets(
    problem: MarginProblem, frobenius: Answer, solve_rows: SolveRows, watch: Watch
) -> Answer:
    """Solve every problem of a batch; return multipliers, W, outcome and iterations.

    Args:
        problem: rows with batch ``*B``.
        frobenius: answers in the Frobenius norm; a proof of infeasibility holds in every norm.
        solve_rows: solves a problem with few rows.
        watch: says when to end with the best W so far.
    """
    flat, batch = flatten(problem), problem.batch_shape
    dual, W, outcome, iterations = (
        part.reshape(batch.numel(), *part.shape[len(batch) :]).clone() for part in frobenius
    )
    for b in range(batch.numel()):
        if int(outcome[b]) != INFEASIBLE and bool(W[b].any()):
            known = Warm(dual[b], None, Frobenius().value(W[b]))
            start = known if int(outcome[b]) == SOLVED else None
            found = _solve(flat[b], W[b], start, solve_rows, watch)
            dual[b], W[b], outcome[b] = found[0], found[1], found[2]
            iterations[b] += found[3]
            if found[2] == STALLED:
                W[b] = touching(flat[b : b + 1], W[b : b + 1])[0]
    shapes = (problem.M,), problem.shape, (), ()
    parts = zip((dual, W, outcome, iterations), shapes, strict=True)
    dual, W, outcome, iterations = (part.reshape((*batch, *shape)) for part, shape in parts)
    return dual, W, outcome, iterations


def _solve(
    problem: MarginProblem,
    frobenius: Tensor,
    known: Warm | None,
    solve_rows: SolveRows,
    watch: Watch,
) -> tuple[Tensor, Tensor, int, int]:
    """Solve one feasible problem, in float64, from its Frobenius solution ``(d, e)``."""
    chosen = _near(problem, frobenius, FIRST)
    iterations, enough = 0, COARSE
    for _ in range(_ROUNDS):
        start = None if known is None else replace(known, dual=known.dual[chosen])
        found = solve_rows(_some(problem, chosen), start, enough)
        dual = torch.zeros_like(problem.bound)
        dual[chosen] = found.dual
        iterations += int(found.iterations)
        missing = missing_of(problem, found.W)
        gap = max(float(found.certificate.gap), float(missing.max()))
        watch.tell(problem.M, int((found.dual != 0).sum()), gap)
        right = not bool((missing > NOTHING).any())
        if watch.over or (right and enough < COARSE):
            break
        if enough == COARSE and not bool(((missing > 0) & ~chosen).any()):
            enough, chosen = ENOUGH, _near(problem, found.W, _KEPT)
        chosen = chosen | _worst(missing, ~chosen, max(_ADDED, int(chosen.sum())))
        known = Warm(dual, exponent(found.norm), Frobenius().value(found.W))
    outcome = SOLVED if right and enough < COARSE else STALLED
    return dual, found.W, outcome, iterations


def missing_of(problem: MarginProblem, W: Tensor) -> Tensor:
    """Compute what rows miss, relative to their bound or ``‖a‖ ‖W‖``, ``(M,)``; negative: slack."""
    missing = problem.bound - problem.apply(W)
    missing = missing.abs().where(problem.equality, missing)
    size = problem.lengths() * Frobenius().value(W)
    scale = problem.bound.abs().where(problem.bound != 0, size)
    return (missing / scale.clamp_min(1e-300)).where(problem.mask & (size > 0), -torch.inf)


def _near(problem: MarginProblem, W: Tensor, share: float) -> Tensor:
    """Mark equalities, and inequalities with little slack, bool ``(M,)``."""
    return (problem.equality & problem.mask) | (missing_of(problem, W) > -share)


def _worst(missing: Tensor, others: Tensor, most: int) -> Tensor:
    """Mark those of the other rows that miss the most, bool ``(M,)``, if they miss at all."""
    missing = missing.where(others, -torch.inf)
    worst = missing.topk(min(most, len(missing)))
    found = torch.zeros_like(others)
    found[worst.indices] = worst.values > -LATER
    return found


def _some(problem: MarginProblem, chosen: Tensor) -> MarginProblem:
    """Take the chosen rows, each with its own query."""
    rows = chosen.nonzero().flatten()
    query = problem.query[rows // (problem.M // problem.query.shape[-2])]
    return margin_problem(problem.left[rows], query, problem.bound[rows], problem.equality[rows])
