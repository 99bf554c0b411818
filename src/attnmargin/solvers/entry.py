"""The one entry point: norm and method in, certified solution out."""

from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from attnmargin.base.arrays import Array, as_tensor, tiny
from attnmargin.base.compiled import check_compiled, one_thread, runs_compiled
from attnmargin.base.errors import InputError
from attnmargin.base.progress import Look
from attnmargin.margin.certificate import certify
from attnmargin.margin.norms import ColumnMax, Lp, Max, Norm, Nuclear, Spectral, Sum, as_norm
from attnmargin.margin.problem import MarginProblem
from attnmargin.margin.solution import Solution
from attnmargin.solvers.frobenius.fused import fits
from attnmargin.solvers.frobenius.method import (
    FUSED,
    LARGE_WORK,
    Answer,
    active_set_work,
    solve_frobenius,
)
from attnmargin.solvers.frobenius.method import METHODS as FROBENIUS_METHODS
from attnmargin.solvers.interior.entries import solve_entries
from attnmargin.solvers.interior.fused import fits_nuclear
from attnmargin.solvers.interior.groups import solve_groups
from attnmargin.solvers.interior.lp import solve_lp
from attnmargin.solvers.interior.nuclear import solve_nuclear
from attnmargin.solvers.interior.schedule import ENOUGH
from attnmargin.solvers.interior.spectral import solve_spectral
from attnmargin.solvers.interior.walk import IN_FROBENIUS, Warm, exponent
from attnmargin.solvers.large import solve_large
from attnmargin.solvers.low_rank import local_solutions
from attnmargin.solvers.methods import (
    LARGE,
    REFERENCE,
    SIMPLEX,
    TOGETHER,
    check_method,
    has_kernel,
    is_frobenius,
    is_length,
    large_method,
    methods,
    second_methods,
)
from attnmargin.solvers.outcome import INFEASIBLE
from attnmargin.solvers.reference import solve_reference
from attnmargin.solvers.settle import inaccurate, settled
from attnmargin.solvers.simplex import solve_simplex
from attnmargin.solvers.tight_rows import on_tight_rows
from attnmargin.solvers.watch import Watch
from attnmargin.solvers.working_set import by_working_sets

# Rows from which on they are faster: in other norms than Frobenius on the CPU, and in the Frobenius
# and other norms elsewhere. There, lockstep solves batches together, of up to so many rows each.
LARGE_ROWS, _LARGE_ELSEWHERE, _TOGETHER = 400, (200, 1000), 3000
# A working set up to this size is solved by the compiled method.
_FEW_ROWS = 200


@one_thread
def solve(
    problem: MarginProblem,
    norm: str | float | Norm = "fro",
    *,
    warm_start: Solution | Array | None = None,
    method: str = "auto",
    rank: int | None = None,
    time_limit: float | None = None,
    progress: Look | None = None,
) -> Solution:
    """Solve a batch of margin problems exactly, each with a certificate.

        min ‖W‖   subject to   ⟨left_m right_mᵀ, W⟩ ≥ bound_m   (= bound_m on equality rows)

    An active-set method, or block ascent if the problem is large, finds the unique Frobenius
    solution, exact up to rounding (paper A, (Att-SVM) and Lemma 1: it lives in span(token
    differences) × span(queries)). Interior-point methods find the nuclear solution (paper A,
    (Att-SVM⋆)), which need not be unique, the ℓp solution (paper B, ℓp-AttSVM), and the spectral,
    max, sum, row and column solutions, to a certified gap of 1e-9.

    The solvers compute in float64. The answer has the dtype and device of the problem, and the
    certificate checks the numbers as returned.

    Args:
        problem: rows with batch ``*B``.
        norm: "fro" or the number 2, "nuc", "spectral" (largest singular value), "max" (largest
            entry), "sum" (of entries), "rows" or "columns" (the longest one), another number p > 1,
            or a norm object. For p from 1.1 to 10 the solver reaches full accuracy; outside, the
            status says what it reached.
        warm_start: solution of a similar problem in any norm, or its multipliers ``(*B, M)`` in
            this one. It changes the time, not the answer.
        method: "auto" uses the compiled method of the norm on the CPU ("active-set" for Frobenius,
            else "interior"; for large problems "blocks" and "working-set"). On a GPU it uses
            "fused" (Frobenius up to 128 rows, nuclear up to 64, with Triton: one kernel for the
            batch), and working sets in torch for large problems. "lockstep" (batched torch) runs on
            every device and solves what the others leave inaccurate. "reference" is cvxpy with
            Clarabel: slow, but independent.
        rank: for the nuclear norm, the width m of K and Q in ``W = K Qᵀ``. A convex solution of
            rank ≤ m is the answer (paper A, Lemma 3). Otherwise the solver looks for a local
            solution, with status "local" and the gap to the convex bound.
        time_limit: seconds after which "blocks" and "working-set" end with the best W so far; its
            status is then "inaccurate", and its certificate has the gap. Others run to their end.
        progress: called by these two with the number of rows, of those that hold and the gap so
            far; returns true to end like a time limit.

    Returns:
        A :class:`Solution`. An infeasible problem does not raise: check ``status``, or call
        ``raise_for_status()``.

    Example:
        >>> import attnmargin as am
        >>> data = am.random_data(6, 8, 10, trials=3, name="example")
        >>> problem = am.token_problem(data.X, data.z, am.optimal_tokens(data))
        >>> solution = am.solve(problem).raise_for_status()
        >>> solution.W.shape, bool((solution.certificate.gap < 1e-12).all())
        (torch.Size([3, 10, 10]), True)
    """
    norm = as_norm(norm)
    check_method(norm, method, rank)
    warm, watch = _warm(problem, norm, warm_start), Watch(time_limit, progress)
    if method == LARGE:
        check_compiled(method, problem.left.device)
    if method == large_method(norm) or (method == "auto" and _is_large(problem, norm)):
        solution = _solve_large(problem, norm, warm, watch)
    elif method == "auto":
        solution = _solve_auto(problem, norm, warm)
    else:
        solution = _solve_by(problem, norm, warm, method)
    return solution if rank is None else _limited(solution, rank)


def _is_large(problem: MarginProblem, norm: Norm) -> bool:
    """Decide whether the method for large problems is faster: see docs/solvers.md."""
    if is_length(norm, problem.shape):
        return False
    (d, e), Q = problem.shape, problem.query.shape[-2]
    if not runs_compiled(problem.left.device):
        alone = problem.batch_shape.numel() == 1
        least = _LARGE_ELSEWHERE[0 if is_frobenius(norm) else 1] if alone else _TOGETHER
        return least < problem.M
    if is_frobenius(norm):
        return active_set_work(problem.M, (d, min(e, Q))) > LARGE_WORK
    return problem.M > LARGE_ROWS


def _solve_large(problem: MarginProblem, norm: Norm, warm: Warm | None, watch: Watch) -> Solution:
    """Solve in the Frobenius norm; in other norms by working sets, from that solution."""
    start = None if warm is None else warm.dual
    frobenius = solve_large(problem, start, watch)
    if is_frobenius(norm) or watch.over:
        return on_tight_rows(_deliver(problem, norm, *frobenius))
    answer = by_working_sets(problem, frobenius, partial(solve_few, norm), watch)
    return on_tight_rows(_deliver(problem, norm, *answer))


@one_thread
def solve_few(norm: Norm, problem: MarginProblem, warm: Warm | None, enough: float) -> Solution:
    """Solve a working set; matrix products by torch are faster where there are many rows."""
    few = problem.M <= _FEW_ROWS and runs_compiled(problem.left.device)
    method = methods(norm)[0 if few else 1]
    return _solve_by(problem, norm, warm, method, enough)


def _solve_auto(problem: MarginProblem, norm: Norm, warm: Warm | None) -> Solution:
    """Solve by the fastest method that can run, and inaccurate members again from scratch."""
    fastest = _fastest(problem, norm)
    solution = _solve_by(problem, norm, warm, fastest)
    if warm is not None and not is_frobenius(norm):
        solution = _second_opinion(solution, fastest)
    for method in second_methods(norm):
        if method != fastest:
            solution = _second_opinion(solution, method)
    return settled(on_tight_rows(solution))


def _fastest(problem: MarginProblem, norm: Norm) -> str:
    """Name the fastest method for a norm where the problem is."""
    compiled, together = methods(norm)
    if has_kernel(norm) and (fits if is_frobenius(norm) else fits_nuclear)(problem):
        return FUSED
    return compiled if runs_compiled(problem.left.device) else together


def _limited(convex: Solution, rank: int) -> Solution:
    """Limit the rank: keep convex solutions within the limit, replace the others by local ones."""
    W = convex.W.clone()
    high = convex.rank > rank
    if bool(high.any()):
        members = convex.problem[high]
        compiled, together = FROBENIUS_METHODS
        method = compiled if runs_compiled(W.device) else together
        local = local_solutions(members, W[high], rank, method)
        check = certify(members, convex.norm, local, convex.dual[high])
        found = check.primal <= check.tolerance
        W[high] = local.to(W.dtype).where(found[:, None, None], W[high])
    certificate = certify(convex.problem, convex.norm, W, convex.dual)
    return replace(convex, W=W, certificate=certificate, rank_limit=rank)


def _solve_by(
    problem: MarginProblem, norm: Norm, warm: Warm | None, method: str, enough: float = ENOUGH
) -> Solution:
    """Solve by one method; in lockstep, other norms than Frobenius to the gap ``enough``."""
    if method == REFERENCE:
        return _deliver(problem, norm, *solve_reference(problem, norm))
    if method == methods(norm)[0] != TOGETHER:
        check_compiled(method, problem.left.device)
    if is_frobenius(norm):
        rows = None if warm is None else warm.rows()
        return _deliver(problem, norm, *solve_frobenius(problem, rows, method))
    if is_length(norm, problem.shape):
        return _deliver(problem, norm, *solve_frobenius(problem, None, IN_FROBENIUS[method]))
    answer = _other_norms(problem, norm, warm, method, enough)
    solution = _deliver(problem, norm, *answer)
    return solution if enough > ENOUGH else on_tight_rows(solution)


def _other_norms(
    problem: MarginProblem, norm: Norm, warm: Warm | None, method: str, enough: float
) -> Answer:
    """Solve in another norm than Frobenius."""
    if isinstance(norm, Lp):
        return solve_lp(problem, norm.p, warm, method, enough)
    if isinstance(norm, Nuclear):
        return solve_nuclear(problem, warm, method, enough)
    if isinstance(norm, Spectral):
        return solve_spectral(problem, warm, enough)
    if isinstance(norm, Max | Sum):
        if method == SIMPLEX:
            return solve_simplex(problem, isinstance(norm, Max), warm)
        return solve_entries(problem, isinstance(norm, Max), warm, enough)
    return solve_groups(problem, isinstance(norm, ColumnMax), warm, enough)


def _deliver(
    problem: MarginProblem, norm: Norm, dual: Tensor, W: Tensor, outcome: Tensor, iterations: Tensor
) -> Solution:
    """Convert the answer of a method to the dtype of the problem, and certify it."""
    infeasible = outcome == INFEASIBLE
    if bool(infeasible.any()):
        none = torch.full_like(W, torch.nan)
        # Before multipliers are rounded: afterwards a near contradiction looks like one.
        proof = certify(problem.as_dtype(W.dtype), norm, none, dual)
        proved = infeasible & torch.isinf(proof.lower)
        W = none.where(proved[..., None, None], W)
    dtype = problem.left.dtype
    W, dual = W.to(dtype), dual.to(dtype)
    return Solution(problem, norm, W, dual, certify(problem, norm, W, dual), iterations)


def _second_opinion(solution: Solution, method: str) -> Solution:
    """Solve the inaccurate members by another method, and keep answers with a better proof."""
    problem, norm = solution.problem, solution.norm
    doubtful = inaccurate(solution)
    if not bool(doubtful.any()):
        return solution
    members = problem[doubtful]
    again = _solve_by(members, norm, None, method)
    better = ~inaccurate(again) | (again.certificate.gap < solution.certificate.gap[doubtful])
    W, dual, iterations = (x.clone() for x in (solution.W, solution.dual, solution.iterations))
    W[doubtful] = again.W.where(better[:, None, None], W[doubtful])
    dual[doubtful] = again.dual.where(better[:, None], dual[doubtful])
    iterations[doubtful] += again.iterations
    return Solution(problem, norm, W, dual, certify(problem, norm, W, dual), iterations)


def _warm(problem: MarginProblem, norm: Norm, warm_start: Solution | Array | None) -> Warm | None:
    """Check the multipliers ``(*B, M)`` to start from; plain arrays belong to the same norm."""
    if warm_start is None:
        return None
    if isinstance(warm_start, Solution):
        given, norm = warm_start.dual, warm_start.norm
    else:
        given = warm_start
    dual = as_tensor("warm_start", given).to(problem.left.device, torch.float64)
    if dual.shape[-1:].numel():  # only proportions count
        dual = dual / dual.abs().amax(-1, keepdim=True).nan_to_num().clamp_min(tiny(dual))
    try:
        dual = dual.expand(*problem.batch_shape, problem.M)
    except RuntimeError as error:
        needs = f"{(*problem.batch_shape, problem.M)}, one multiplier per row"
        raise InputError("warm_start", f"multipliers {tuple(dual.shape)}", needs) from error
    return Warm(dual, exponent(norm))
