"""One head in detail: how the margin grows without its guards, and in the nuclear norm."""

import math
from dataclasses import dataclass, replace
from typing import final

from attnmargin.base.compiled import one_thread
from attnmargin.models.contradiction import Contradiction, contradiction_of
from attnmargin.models.fit import Choices, Fit, fit_choices, softened
from attnmargin.models.hands import hands, refusal
from attnmargin.models.head import Head
from attnmargin.models.queries import selections
from attnmargin.models.settings import Settings
from attnmargin.solvers.entry import solve

# Numbers of guards that are taken away; queries of the nuclear problem.
_TAKEN, _NUCLEAR = (1, 10, 100), 8


@final
@dataclass(frozen=True)
class HeadDetail:
    """What takes a while to find out about one head, on its most decided queries."""

    best: float  # best margin, Frobenius norm; NaN if no W selects these tokens
    guards: int  # rows that hold the selection in place
    without: dict[int, float]  # best margin without so many of the strongest guards
    contradiction: Contradiction | None
    nuclear: float  # efficiency in the nuclear norm, on fewer queries; NaN if not asked for
    frobenius: float  # efficiency in the Frobenius norm, on the same ones
    reason: str = ""  # why nothing can be said


@one_thread
def examine_head(head: Head, settings: Settings | None = None, nuclear: bool = False) -> HeadDetail:
    """Take the guards of a head away, and compare the norms.

    The best margin of the most decided queries can only grow when rivals go. If it grows much, few
    tokens hold the selection in place. An efficiency that is larger in the nuclear than in the
    Frobenius norm says that W is nearer to what gradient descent on (W_K, W_Q) ends in (paper A).

    Args:
        nuclear: also solve in the nuclear norm, which takes about half a minute at d = 384.
    """
    own = settings or Settings()
    queries = selections(head)
    dealt = hands(head, queries, own)
    reason = refusal(head, queries, dealt, own)
    if reason:
        return HeadDetail(math.nan, 0, {}, None, math.nan, math.nan, reason)
    fit = fit_choices([head], [dealt[0]], price=own.cost)[0]
    found = contradiction_of(fit.solution, dealt[0])
    few = Choices(*(x[:_NUCLEAR] for x in (dealt[0].text, dealt[0].position, dealt[0].token)))
    frobenius = fit_choices([head], [few])[0].efficiency
    other = fit_choices([head], [few], "nuc")[0].efficiency if nuclear else math.nan
    without = _without_guards(fit) if fit.feasible else {}
    guards = int((fit.solution.dual > 0).sum()) if fit.feasible else 0
    return HeadDetail(fit.best, guards, without, found, other, frobenius)


def _without_guards(fit: Fit) -> dict[int, float]:
    """Solve without the rows of largest multiplier, at the same price of slack."""
    order = fit.solution.dual.argsort(descending=True)
    margins = {}
    for count in (k for k in _TAKEN if k < int((fit.solution.dual > 0).sum())):
        mask = fit.problem.mask.clone()
        mask[order[:count]] = False
        rest = softened(replace(fit.problem, mask=mask), fit.price)
        margins[count] = float(solve(rest).margin)
    return margins
