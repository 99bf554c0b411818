"""One large Frobenius problem on any device: block ascent, or working sets by torch alone."""

import torch
from torch import Tensor

from attnmargin.base.compiled import can_compile, runs_compiled
from attnmargin.margin.certificate import certify
from attnmargin.margin.norms import Frobenius
from attnmargin.margin.problem import MarginProblem
from attnmargin.margin.solution import Solution
from attnmargin.solvers.frobenius.gradient import rough_multipliers
from attnmargin.solvers.frobenius.method import Answer, flatten
from attnmargin.solvers.interior.quadratic import solve_quadratic
from attnmargin.solvers.interior.walk import Warm
from attnmargin.solvers.outcome import SOLVED, STALLED
from attnmargin.solvers.tight_rows import on_tight_rows
from attnmargin.solvers.watch import Watch
from attnmargin.solvers.working_set import by_working_sets


def solve_large(problem: MarginProblem, start: Tensor | None, watch: Watch) -> Answer:
    """Solve in float64; return multipliers ``(*B, M)``, W, outcome and iterations.

    Block ascent is compiled for the CPU. On other devices torch solves working sets; what it does
    not solve, for example because it is infeasible, goes to the CPU.
    """
    if runs_compiled(problem.left.device):
        from attnmargin.solvers.blocks.method import solve_blocks  # numba

        return solve_blocks(problem, start, watch)
    answer = solve_together(problem, watch)
    if watch.over or not can_compile() or bool((answer[2] == SOLVED).all()):
        return answer
    device = problem.left.device
    dual, W, outcome, rounds = solve_large(problem.to("cpu"), None, watch)
    return dual.to(device), W.to(device), outcome.to(device), rounds.to(device)


def solve_together(problem: MarginProblem, watch: Watch) -> Answer:
    """Solve by working sets in torch; return the same. It finds no proofs of infeasibility."""
    flat, batch = flatten(problem), problem.batch_shape
    dual = torch.zeros_like(flat.bound)
    for b in range(batch.numel()):
        dual[b] = rough_multipliers(flat[b])
    W = flat.adjoint(dual)
    stalled = torch.full(batch, STALLED, device=W.device)
    shapes = (*batch, problem.M), (*batch, *problem.shape)
    rough = dual.reshape(shapes[0]), W.reshape(shapes[1]), stalled, torch.zeros_like(stalled)
    return by_working_sets(problem, rough, _solve_few, watch)


def _solve_few(problem: MarginProblem, known: Warm | None, enough: float) -> Solution:
    start = None if known is None else known.dual
    dual, W, _, iterations = solve_quadratic(problem, start, enough)
    check = certify(problem, Frobenius(), W, dual)
    return on_tight_rows(Solution(problem, Frobenius(), W, dual, check, iterations))
