"""The one entry: norm and method in, certified solution out."""

import numpy as np
import torch
from torch import Tensor

from attnmargin.arrays import Array, as_tensor
from attnmargin.certify import Status, certify
from attnmargin.errors import InputError
from attnmargin.norms import Frobenius, Lp, Norm, Nuclear, as_norm
from attnmargin.problem import MarginProblem
from attnmargin.solution import Solution
from attnmargin.solvers.frobenius import METHODS, methods_for, solve_frobenius
from attnmargin.solvers.lp import solve_lp
from attnmargin.solvers.nuclear import solve_nuclear
from attnmargin.solvers.outcome import INFEASIBLE


def solve(
    problem: MarginProblem,
    norm: str | float | Norm = "fro",
    *,
    warm_start: Solution | Array | None = None,
    method: str = "auto",
) -> Solution:
    """Solve a batch of margin problems exactly, each with a certificate.

        min ‖W‖   subject to   ⟨left_m right_mᵀ, W⟩ ≥ bound_m   (= bound_m on equality rows)

    The Frobenius solution is unique and found by an active-set method, so it is exact up to
    rounding (paper A, (Att-SVM) and Lemma 1: it lives in span(token differences) × span(queries)).
    The nuclear solution (paper A, (Att-SVM⋆)), which need not be unique, and the ℓp solution
    (paper B, ℓp-AttSVM) are found by interior-point methods to a certified gap of 1e-9.

    The work is done in float64; the answer has the dtype and device of the problem, and the
    certificate is that of the delivered numbers.

    Args:
        problem: rows with batch ``*B``.
        norm: "fro" or the number 2, "nuc", another number p > 1, or a norm object. Full accuracy is
            reached for p from 1.1 to 10; beyond, the status says what was reached.
        warm_start: a solution, or multipliers ``(*B, M)``, of a similar problem; it changes the
            time, not the answer.
        method: "active-set" (compiled, CPU), "lockstep" (batched torch, any device), or "auto":
            the first where it can run, and the second for members that it leaves inaccurate. The
            nuclear and ℓp norms have one method, "interior".

    Returns:
        A :class:`Solution`. It does not raise when a problem is infeasible: ask ``status``, or
        call ``raise_for_status()``.

    Example:
        >>> import attnmargin as am
        >>> data = am.random_data(6, 8, 10, trials=3, name="example")
        >>> problem = am.token_problem(data.X, data.z, am.optimal_tokens(data))
        >>> solution = am.solve(problem).raise_for_status()
        >>> solution.W.shape, bool((solution.certificate.gap < 1e-12).all())
        (torch.Size([3, 10, 10]), True)
    """
    norm = as_norm(norm)
    _check(norm, method)
    start = _start(problem, warm_start)
    if isinstance(norm, Nuclear):
        return _deliver(problem, norm, *solve_nuclear(problem, start))
    if isinstance(norm, Lp) and norm.p != 2.0:
        return _deliver(problem, norm, *solve_lp(problem, norm.p, start))
    if method != "auto":
        return _deliver(problem, norm, *solve_frobenius(problem, start, method))
    first, *others = methods_for(problem)
    solution = _deliver(problem, norm, *solve_frobenius(problem, start, first))
    for other in others:
        solution = _second_opinion(solution, other)
    return solution


def _check(norm: Norm, method: str) -> None:
    """Refuse a norm or a method that does not fit before work starts."""
    exact = isinstance(norm, Frobenius) or norm == Lp(2.0)
    if not exact and not isinstance(norm, Nuclear | Lp):
        raise InputError("norm", norm.name, "the Frobenius, nuclear or an ℓp norm")
    methods = ("auto", *METHODS) if exact else ("auto", "interior")
    if method not in methods:
        needs = f"one of {', '.join(methods)} for the norm {norm.name}"
        raise InputError("method", repr(method), needs)


def _deliver(
    problem: MarginProblem, norm: Norm, dual: Tensor, W: Tensor, outcome: Tensor, iterations: Tensor
) -> Solution:
    """The answer of a method in the dtype of the problem, with its certificate."""
    infeasible = outcome == INFEASIBLE
    if bool(infeasible.any()):
        W = W.masked_fill(infeasible[..., None, None], torch.nan)
    dtype = problem.left.dtype
    W, dual = W.to(dtype), dual.to(dtype)
    return Solution(problem, norm, W, dual, certify(problem, norm, W, dual), iterations)


def _second_opinion(solution: Solution, method: str) -> Solution:
    """Solve the inaccurate members by another method, and keep what is proved better."""
    problem, norm = solution.problem, solution.norm
    doubtful = torch.from_numpy(np.asarray(solution.status == Status.INACCURATE))
    if not bool(doubtful.any()):
        return solution
    members = problem[doubtful]
    again = _deliver(members, norm, *solve_frobenius(members, None, method))
    proved = torch.from_numpy(again.status != Status.INACCURATE)
    better = proved | (again.certificate.gap < solution.certificate.gap[doubtful])
    W, dual, iterations = (x.clone() for x in (solution.W, solution.dual, solution.iterations))
    W[doubtful] = again.W.where(better[:, None, None], W[doubtful])
    dual[doubtful] = again.dual.where(better[:, None], dual[doubtful])
    iterations[doubtful] += again.iterations
    return Solution(problem, norm, W, dual, certify(problem, norm, W, dual), iterations)


def _start(problem: MarginProblem, warm_start: Solution | Array | None) -> Tensor | None:
    """Rows to begin with, bool ``(*B, M)``."""
    if warm_start is None:
        return None
    given = warm_start.dual if isinstance(warm_start, Solution) else warm_start
    dual = as_tensor("warm_start", given).to(problem.left.device)
    try:
        return (dual != 0).expand(*problem.batch_shape, problem.M)
    except RuntimeError as error:
        needs = f"{(*problem.batch_shape, problem.M)}, one multiplier per row"
        raise InputError("warm_start", f"multipliers {tuple(dual.shape)}", needs) from error
