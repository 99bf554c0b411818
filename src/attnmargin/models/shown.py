"""Queries of a head as they are shown: attention, what is selected, and which tokens guard it."""

from dataclasses import dataclass
from typing import final

from attnmargin.models.fit import Choices, Fit
from attnmargin.models.head import Head

# Rivals of a query that are named.
_GUARDS = 3


@final
@dataclass(frozen=True)
class Guard:
    """A rival that holds a selection in place: removing it lets the best margin grow."""

    token: int
    weight: float  # share of all multipliers of the solution, which sum to its norm


@final
@dataclass(frozen=True)
class Shown:
    """One query of a head."""

    text: int
    position: int
    token: int  # what it selects
    attention: list[float]
    margin: float  # least logit difference, over the length of the projected W
    guards: list[Guard]  # strongest first


def shown_queries(head: Head, choices: Choices, fit: Fit | None) -> list[Shown]:
    """Collect what a page shows of some queries; without a fit, no margin and no guards."""
    attention = {int(i): head.attention_of(int(i)) for i in choices.text.unique()}
    found = []
    for q in range(len(choices)):
        i, t, s = (int(x[q]) for x in (choices.text, choices.position, choices.token))
        shares = attention[i][t][: len(head.words[i])].tolist()
        margin, guards = _of_fit(fit, q, len(choices))
        found.append(Shown(i, t, s, shares, margin, guards))
    return found


def _of_fit(fit: Fit | None, q: int, count: int) -> tuple[float, list[Guard]]:
    if fit is None:
        return float("nan"), []
    problem = fit.problem
    per = problem.M // count
    own = slice(q * per, (q + 1) * per)
    there = problem.mask[own]
    margin = float(fit.rows[own][there].min()) / fit.length if fit.length > 0.0 else 0.0
    weight = fit.solution.dual[own] / fit.solution.dual.sum()
    if not fit.feasible:
        return margin, []
    order = weight.argsort(descending=True)[:_GUARDS]
    other = problem.names.other[own]
    return margin, [Guard(int(other[k]), float(weight[k])) for k in order if weight[k] > 0]
