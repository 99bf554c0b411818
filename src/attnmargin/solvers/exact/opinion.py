"""The last opinion on members that floating point leaves open: small ones are solved exactly."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import torch
from mpmath import mp, mpf
from torch import Tensor

from attnmargin.margin.certificate import certify
from attnmargin.margin.exact.frobenius import ExactAnswer, solve_exactly
from attnmargin.margin.exact.rows import ExactRows, exact_rows
from attnmargin.margin.norms import Frobenius, Lp, Nuclear
from attnmargin.margin.problem import MarginProblem
from attnmargin.margin.solution import Solution
from attnmargin.margin.support import Decision
from attnmargin.solvers.exact.powers import solve_powers

# Sizes above which a member would take longer than about a second: rows; for powers, the squared
# number of held rows times the entries of W.
_ROWS, _POWERS = 48, 40_000
# A multiplier below this share of the largest says nothing about its row.
_GUESS = 1e-9
# What is left of a contradiction in floating point, at most, to be looked at exactly.
_NEARLY = 1e-9
# Other singular values of a matrix of rank one, relative to the first.
_RANK_ONE = 1e-15

# W, multipliers, and tight rows if they are known
Numbers = tuple[list[float], dict[int, float], list[int] | None]


def with_exact_opinion(solution: Solution, asked: Tensor) -> Solution:
    """Replace the members ``asked``, bool ``(*B,)``, by exact solutions, rounded, or by proofs."""
    W, dual = solution.W.clone(), solution.dual.clone()
    W[~solution.feasible] = torch.nan  # no use as a start
    sure = solution.feasible & (solution.certificate.primal == 0)
    known: dict[tuple[int, ...], list[int]] = {}
    for index in (tuple(i) for i in asked.nonzero().tolist()):
        found = _solve(solution[index], W[index], bool(sure[index]))
        if found is not None:
            _write(W[index], dual[index], found)
            if found[2] is not None:
                known[index] = found[2]
        elif not bool(solution.feasible[index]):
            W[index] = solution.W[index]
    solution = _unless_worse(solution, W, dual)
    return replace(solution, decision=_decided(solution, known)) if known else solution


def _unless_worse(solution: Solution, W: Tensor, dual: Tensor) -> Solution:
    """Exchange the numbers, but not where only the earlier ones are optimal as floats.

    Rounded, an exact solution can miss rows that are much longer than others.
    """
    check = certify(solution.problem, solution.norm, W, dual)
    new = replace(solution, W=W, dual=dual, certificate=check)
    worse = solution.optimal & ~new.optimal & ~new.infeasible
    W = solution.W.where(worse[..., None, None], W)
    dual = solution.dual.where(worse.unsqueeze(-1), dual)
    check = certify(solution.problem, solution.norm, W, dual)
    return replace(new, W=W, dual=dual, certificate=check)


def _write(W: Tensor, dual: Tensor, found: Numbers) -> None:
    W.copy_(torch.tensor(found[0], dtype=torch.float64).reshape(W.shape))
    dual.zero_()
    for m, x in found[1].items():
        dual[m] = x


def _decided(solution: Solution, known: dict[tuple[int, ...], list[int]]) -> Decision:
    """Enter exactly known rows into the decision about all rows."""
    tight, doubtful = solution.rows.tight.clone(), solution.rows.doubtful.clone()
    for index, rows in known.items():
        tight[index], doubtful[index] = False, False
        tight[index][rows] = True
    return Decision(tight, doubtful)


def _solve(solution: Solution, W: Tensor, sure: bool) -> Numbers | None:
    """Solve one member; None if it is too large, or if floating point does as well.

    Args:
        solution: of the member, in floating point.
        W: where to begin; nan if nothing feasible is known.
        sure: whether W meets every row, so that no contradiction need be looked for.
    """
    problem = _few_rows(solution, W)
    if problem is None:
        return None
    rows, norm = exact_rows(problem), solution.norm
    guess = _guess(rows, solution.dual)
    power = norm.p if isinstance(norm, Lp) and norm.p != 2.0 else None
    if power is not None and sure:
        return _powers(rows, power, guess, W.flatten().tolist())
    answer = solve_exactly(rows, guess)
    if not answer.feasible:
        return _proof(rows, answer, W.numel())
    if problem is not solution.problem:
        return None
    found = _frobenius(rows, answer)
    if power is not None:
        known = bool(torch.isfinite(W).all())
        start = W.flatten().tolist() if known else found[0]
        better = _powers(rows, power, guess or list(answer.dual), start)
        return better if better is not None or known else _feasible(found)
    if isinstance(norm, Nuclear):
        return _nuclear(found, W)
    if isinstance(norm, Frobenius | Lp):
        return found
    return None if bool(torch.isfinite(W).all()) else _feasible(found)


def _few_rows(solution: Solution, W: Tensor) -> MarginProblem | None:
    """Return the problem; if it is too large, the rows that nearly contradict each other."""
    problem, dual = solution.problem, solution.dual
    if int(problem.mask.sum()) <= _ROWS:
        return problem
    counts = dual.abs() > _GUESS * dual.abs().amax()
    claimed = problem.mask & (problem.equality | counts)
    if int(claimed.sum()) > _ROWS or bool(torch.isfinite(W).all()):
        return None
    left = float(certify(problem, solution.norm, W, dual).dual)
    return replace(problem, mask=claimed) if left <= _NEARLY else None


def _guess(rows: ExactRows, dual: Tensor) -> list[int]:
    """List rows by falling multipliers; equalities first."""
    size = {k: abs(float(dual[m])) for k, m in enumerate(rows.place)}
    least = _GUESS * max(size.values(), default=0.0)
    counted = [k for k in size if size[k] > least or rows.equality[k]]
    return sorted(counted, key=lambda k: (not rows.equality[k], -size[k]))


def _proof(rows: ExactRows, answer: ExactAnswer, entries: int) -> Numbers:
    """Scale a contradiction so that ``bᵀλ = 1``."""
    gain = sum(x * rows.bound[m] for m, x in answer.dual.items())
    dual = {m: x / gain for m, x in answer.dual.items()}
    return [float("nan")] * entries, _original(rows, dual, Fraction(1)), None


def _frobenius(rows: ExactRows, answer: ExactAnswer) -> Numbers:
    W = [
        sum((x * rows.left[m][c] * rows.right[m][e] for m, x in answer.dual.items()), Fraction(0))
        for c in range(len(rows.left[0]))
        for e in range(len(rows.right[0]))
    ]
    value = mp.sqrt(sum((_mpf(x) ** 2 for x in W), mpf(0)))
    plain = [float(x / rows.scale) for x in W]
    tight = [rows.place[m] for m in answer.tight]
    return plain, _original(rows, answer.dual, value), tight


def _feasible(found: Numbers) -> Numbers:
    """Keep of a solution in another norm that its W is feasible."""
    return found[0], found[1], None


def _powers(rows: ExactRows, p: float, guess: list[int], start: list[float]) -> Numbers | None:
    if len(guess) ** 2 * len(start) > _POWERS:
        return None
    found = solve_powers(rows, p, guess, start)
    if found is None:
        return None
    with mp.workdps(50):
        size = max((abs(x) for x in found.W), default=mpf(1)) or mpf(1)
        value = size * sum((abs(x / size) ** mpf(p) for x in found.W), mpf(0)) ** (1 / mpf(p))
        scaled = {m: x / value ** mpf(p - 1) for m, x in found.dual.items()}
        W = [float(x / _mpf(rows.scale)) for x in found.W]
        return W, _original(rows, scaled, mpf(1)), [rows.place[m] for m in found.tight]


def _nuclear(found: Numbers, W: Tensor) -> Numbers | None:
    """Return the Frobenius solution if its rank is one: ``‖W‖_F ≤ ‖W‖_*``, with equality there.

    If no W is known at all, it is at least a feasible one.
    """
    singular = torch.linalg.svdvals(torch.tensor(found[0], dtype=torch.float64).reshape(W.shape))
    one = float(singular[1:].sum()) <= _RANK_ONE * float(singular[0])
    if one:
        return found
    return None if bool(torch.isfinite(W).all()) else _feasible(found)


def _original(rows: ExactRows, dual: dict[int, Any], value: Any) -> dict[int, float]:
    """Return multipliers of the rows as they were given; ``value`` is the norm of W here."""
    factor = 1 if value == 1 else value
    return {
        rows.place[m]: float(_mpf(x) * mpf(2) ** rows.power[m] / factor) for m, x in dual.items()
    }


def _mpf(x: Any) -> Any:
    return mpf(x.numerator) / mpf(x.denominator) if isinstance(x, Fraction) else x
