"""W, its norm and its support rows against exact solutions."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

import attnmargin as am
from tests.hunt.answers import Answer, Case, judged, support_claims, tight_truth, worst
from tests.hunt.generators import Group, attempt, groups
from tests.hunt.oracle_exact import Exact, Shortest, shortest_point
from tests.hunt.oracle_nuclear import Planted, planted_nuclear
from tests.hunt.truth import problem_rows, solved

NORMS: tuple[str | float, ...] = ("fro", 1.1, 1.75, 3.0, 4.0, 6.0, 10.0)
# Relative error of the planted value itself.
_VALUE = 1e-9


def batches(seed: int) -> Iterator[list[Case]]:
    """Yield cases, one per feasible instance and norm."""
    for k, group in enumerate(groups("solutions", seed)):
        yield attempt(_exact, group)
        if k % 4 == 0:
            yield planted_cases(planted_nuclear(seed, k // 4))


def _exact(group: Group) -> list[Case]:
    problem = group.problem()
    exact = [shortest_point(rows) for rows in problem_rows(problem)]
    feasible = [k for k, found in enumerate(exact) if found is not None]
    if not feasible:
        return []
    solutions = {norm: am.solve(problem[feasible], norm) for norm in NORMS}
    rows = list(problem_rows(problem[feasible]))
    cases = []
    for j, k in enumerate(feasible):
        shortest = exact[k]
        assert shortest is not None
        for norm, solution in solutions.items():
            truth = solved(rows[j], norm, shortest, solution[j].dual.numpy())
            answer, about = _compared(solution[j], rows[j], shortest, truth)
            text, own = f"{norm}: {about}", group.arrays(k)
            cases.append(Case(answer, group.family, group.adversarial, text, own, bool(truth)))
    return cases


def _compared(
    solution: am.Solution, rows: Exact, exact: Shortest, truth: tuple[list[Any], list[Any]] | None
) -> tuple[Answer, str]:
    """Compare one solution of a feasible problem."""
    if solution.status != am.Status.OPTIMAL:
        wrong = solution.status == am.Status.INFEASIBLE and _near(exact, rows)
        return (Answer.WRONG if wrong else Answer.UNDECIDED), f"{solution.status}, exactly feasible"
    if truth is None:
        return Answer.RIGHT, "the oracle found no solution"
    error, radius = _error(solution, truth[0]), float(solution.certificate.radius)
    if error > radius:
        return Answer.WRONG, f"W is off by {error:.1e} of its norm, the certificate says {radius}"
    return support_compared(support_claims(solution)[rows.origin], truth[1])


def _error(solution: am.Solution, w: list[Any]) -> float:
    """``‖W − W⋆‖ / ‖W‖`` in the norm of the solution."""
    number = type(w[0]) if w else float  # that of the oracle
    said = [number(x) for x in solution.W.flatten().tolist()]
    size = max(map(abs, said))
    if size == 0 or not w:
        return float(size > 0 or any(w))
    off = torch.tensor([[float((x - y) / size) for x, y in zip(w, said, strict=True)]])
    return float(solution.norm.value(off.double()) * float(size) / solution.value)


def _near(exact: Shortest, rows: Exact) -> bool:
    """Whether W is shorter than 1e13 times what its most demanding row needs."""
    length = float(sum(x * x for x in exact.w)) ** 0.5
    need = max(
        (b / sum(x * x for x in a) ** 0.5 for a, b in zip(rows.A, rows.b, strict=True) if any(a)),
        default=0.0,
    )
    return length < 1e13 * need


def support_compared(said: Any, slack: Any) -> tuple[Answer, str]:
    """Compare the tight rows."""
    answers = [judged(s, tight_truth(x)) for s, x in zip(said, slack, strict=True)]
    answer = worst(answers)
    if answer == Answer.RIGHT:
        return answer, ""
    m = answers.index(answer)
    return answer, f"row {m} has relative slack {float(slack[m]):.2e}, tight: {said[m]}"


def planted_cases(planted: Planted) -> list[Case]:
    """Compare the nuclear solutions of a planted group: value, feasibility, support."""
    group, solution = planted.group, am.solve(planted.group.problem(), "nuc")
    said, gap = support_claims(solution).reshape(planted.slack.shape), solution.certificate.gap
    cases = []
    for k in range(len(group)):
        if solution.status[k] != am.Status.OPTIMAL:
            wrong = solution.status[k] == am.Status.INFEASIBLE
            answer = Answer.WRONG if wrong else Answer.UNDECIDED
            about = str(solution.status[k])
        elif abs(float(solution.value[k]) / planted.value[k] - 1.0) > _VALUE + gap[k]:
            answer, about = Answer.WRONG, f"value {float(solution.value[k])}, {planted.value[k]}"
        else:
            slack = np.where(np.abs(planted.slack[k]) < 1e-12, 0.0, planted.slack[k])
            answer, about = support_compared(said[k].ravel(), slack.ravel())
        text = f"nuc: {about}"
        cases.append(Case(answer, group.family, group.adversarial, text, group.arrays(k)))
    return cases
