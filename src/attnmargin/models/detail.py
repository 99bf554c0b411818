"""One head in detail: how the margin grows without its guards, and in the nuclear norm."""

import math
from dataclasses import dataclass, replace
from typing import final

from attnmargin.base.compiled import one_thread
from attnmargin.models.contradiction import Contradiction, contradiction_of
from attnmargin.models.fit import Choices, Fit, fit_choices
from attnmargin.models.head import Head
from attnmargin.models.queries import selections
from attnmargin.models.study import ROTARY, TOO_SHORT, Settings, hands
from attnmargin.solvers.entry import solve

# Guards that are taken away one after the other; queries of the nuclear problem.
_GUARDS, _NUCLEAR = 5, 12


@final
@dataclass(frozen=True)
class HeadDetail:
    """What takes a while to find out about one head, on its most decided queries."""

    best: float  # best margin, Frobenius norm; NaN if no W selects these tokens
    guards: int  # rows that hold the selection in place
    without: list[float]  # best margin without the strongest guard, the two strongest, …
    contradiction: Contradiction | None
    nuclear: float  # efficiency in the nuclear norm, on fewer queries
    frobenius: float  # efficiency in the Frobenius norm, on the same ones
    reason: str = ""  # why nothing can be said


@one_thread
def examine_head(head: Head, settings: Settings | None = None) -> HeadDetail:
    """Take the guards of a head away one by one, and compare the norms.

    The best margin of the most decided queries can only grow when a rival goes. A head of which it
    grows much is held in place by few tokens. An efficiency that is larger in the nuclear than in
    the Frobenius norm says that W_K and W_Q were trained, rather than W (paper A).
    """
    own = settings or Settings()
    dealt = hands(selections(head), own)
    if head.rotary is not None or not dealt:
        reason = ROTARY if head.rotary is not None else TOO_SHORT
        return HeadDetail(math.nan, 0, [], None, math.nan, math.nan, reason)
    fit = fit_choices([head], [dealt[0]])[0]
    found = contradiction_of(fit.solution, dealt[0])
    few = Choices(*(x[:_NUCLEAR] for x in (dealt[0].text, dealt[0].position, dealt[0].token)))
    nuclear, frobenius = (fit_choices([head], [few], norm)[0].efficiency for norm in ("nuc", "fro"))
    without = _without_guards(fit) if fit.feasible else []
    guards = int((fit.solution.dual > 0).sum()) if fit.feasible else 0
    return HeadDetail(fit.best, guards, without, found, nuclear, frobenius)


def _without_guards(fit: Fit) -> list[float]:
    """Solve without the row of largest multiplier, then without the two largest, and so on."""
    order = fit.solution.dual.argsort(descending=True)[:_GUARDS]
    margins, mask = [], fit.problem.mask
    for row in order.tolist():
        mask = mask.clone()
        mask[row] = False
        margins.append(float(solve(replace(fit.problem, mask=mask)).margin))
    return margins
