"""Feasible or not: every norm against exact linear programming."""

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

import attnmargin as am
from tests.hunt.answers import Answer, Case, judged
from tests.hunt.generators import GROUP, groups, seeded
from tests.hunt.oracle_exact import Exact, feasible_point
from tests.hunt.truth import problem_rows, token_rows

NORMS: tuple[str | float, ...] = ("fro", "nuc", 1.1, 1.75, 3.0, 10.0)


def batches(seed: int) -> Iterator[list[Case]]:
    """Yield cases, one per instance and norm: tokens, then rows of any kind."""
    tokens, rows = _tokens(seed), _rows(seed)
    while True:
        for _ in range(4):
            yield next(tokens)
        yield next(rows)


def _tokens(seed: int) -> Iterator[list[Case]]:
    for group in groups("status", seed):
        again = [token_rows(group, k) for k in range(len(group))]
        own = [group.arrays(k) for k in range(len(group))]
        yield _compared(group.problem(), group.family, group.adversarial, own, again)


def _rows(seed: int) -> Iterator[list[Case]]:
    """Rows with any bounds, scales of 1e±8, whole numbers and equalities."""
    k = 0
    while True:
        rng = seeded(seed, "rows", k)
        M, d, e = (int(x) for x in rng.integers(1, [7, 4, 3]))
        left, right = rng.standard_normal((GROUP, M, d)), rng.standard_normal((GROUP, M, e))
        if k % 2:
            left, right = np.round(left), np.round(right)
        scale = 10.0 ** rng.uniform(-8, 8, (GROUP, M, 1)) if k % 3 == 0 else 1.0
        bound = rng.choice([1.0, 1.0, 0.0, -1.0, 1e-8, 1e8], (GROUP, M))
        equality = rng.random((GROUP, M)) < (0.3 if k % 4 == 0 else 0.0)
        problem = am.margin_problem(left * scale, right, bound, equality)
        parts = {"left": left * scale, "right": right, "bound": bound, "equality": equality}
        own = [{name: part[g] for name, part in parts.items()} for g in range(GROUP)]
        yield _compared(problem, "rows", True, own, [None] * GROUP)
        k += 1


def _compared(
    problem: am.MarginProblem,
    family: str,
    adversarial: bool,
    arrays: list[Any],
    again: list[Exact | None],
) -> list[Case]:
    """Compare every norm; ``again`` are the rows of the data where the problem rounds them."""
    exact = list(problem_rows(problem))
    truth = [_truth(*both) for both in zip(exact, again, strict=True)]
    solutions = {norm: am.solve(problem, norm) for norm in NORMS}
    cases = []
    for k, (rows, feasible) in enumerate(zip(exact, truth, strict=True)):
        for norm, solution in solutions.items():
            answer = _judged(solution, k, rows, feasible)
            about = f"{norm}: {solution.status[k]}, exactly {'' if feasible else 'in'}feasible"
            cases.append(Case(answer, family, adversarial, about, arrays[k], feasible is not None))
    return cases


def _truth(rows: Exact, before: Exact | None) -> bool | None:
    """Whether the rows are feasible; None if that depends on their rounding."""
    found = feasible_point(rows) is not None
    same = before is None or (feasible_point(before) is not None) == found
    return found if same else None


def _judged(solution: am.Solution, k: int, rows: Exact, feasible: bool | None) -> Answer:
    status = solution.status[k]
    said = None if status == am.Status.INACCURATE else status == am.Status.OPTIMAL
    answer = judged(said, feasible)
    if answer == Answer.WRONG and said is False and _documented(solution, k, rows):
        return Answer.UNDECIDED
    return answer


def _documented(solution: am.Solution, k: int, rows: Exact) -> bool:
    """Whether λ proves exactly that rounding alone can separate the rows: 64 units, and its own."""
    dual = solution.dual[k].double().numpy()
    total: list[Fraction] = [Fraction(0)] * len(rows.A[0])
    gain, single = Fraction(0), 0.0
    for a, b, power, m in zip(rows.A, rows.b, rows.scale, rows.origin, strict=True):
        weight = Fraction(float(dual[m])) / 2**power
        if weight <= 0:
            continue
        total = [x + weight * y for x, y in zip(total, a, strict=True)]
        gain += weight * b
        length = float(np.sqrt(float(sum(Fraction(x, 2**power) ** 2 for x in a))))
        single = max(single, abs(float(Fraction(b, 2**power))) / length if length else 0.0)
    size = float(np.sqrt(float(sum(x * x for x in total))))
    return gain > 0 and size * single <= 3e-14 * float(gain)
