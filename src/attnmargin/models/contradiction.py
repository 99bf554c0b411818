"""Choices that no W realises: which queries and tokens contradict each other."""

from dataclasses import dataclass
from typing import final

from attnmargin.margin.solution import Solution
from attnmargin.models.fit import Choices


@final
@dataclass(frozen=True)
class Demand:
    """One row of a contradiction: in a text, a query is to select one token over another."""

    text: int
    query: int
    chosen: int
    other: int
    weight: float  # of the row in the proof: the weighted sum of all rows is zero


@final
@dataclass(frozen=True)
class Contradiction:
    """Demands that no W satisfies together, and whether all their queries are equal."""

    demands: list[Demand]
    same: bool


def contradiction_of(solution: Solution, choices: Choices) -> Contradiction | None:
    """Read the proof of a single infeasible problem; None if there is none."""
    if not bool(solution.infeasible):
        return None
    problem = solution.problem
    per = problem.M // len(choices)
    demands = []
    for m in solution.dual.nonzero().flatten().tolist():
        text, query, token = (
            int(x[m // per]) for x in (choices.text, choices.position, choices.token)
        )
        other, weight = int(problem.names.other[m]), float(solution.dual[m])
        demands.append(Demand(text, query, token, other, weight))
    asked = problem.query[solution.dual.nonzero().flatten() // per]
    return Contradiction(demands, bool((asked == asked[:1]).all()))
