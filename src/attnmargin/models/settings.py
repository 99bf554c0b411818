"""How heads are studied: which queries are asked, in how many problems, at what price of slack."""

import math
from dataclasses import dataclass
from typing import final

from attnmargin.base.checks import check_number, check_whole
from attnmargin.base.errors import InputError
from attnmargin.margin.norms import Frobenius
from attnmargin.margin.slack import check_price

WHICH = ("widest", "saturated", "all")
# The price of slack that "all" has if none is given.
PRICE = 1.0


@final
@dataclass(frozen=True)
class Settings:
    """How heads are studied.

    ``which`` says which queries an attention SVM asks: "widest", the ``queries · draws`` with the
    widest gaps, dealt into ``draws`` hands; "saturated", all of which one token has more than the
    share ``saturated``; or "all". The last two are one hand, or as few as size permits. Of
    ``draws`` random heads with the same spectrum, each plays one hand of the same size, of the
    queries that it decides most clearly. Of queries that see the same tokens, one is asked.

    A finite ``price`` C gives every query a slack:

        min ½ ‖W‖² + (C/ρ²) Σ_q ξ_q²   subject to   (x_α − x_s)ᵀ W z_q ≥ 1 − ξ_q

    where ρ² is the mean square of the lengths of the rows, so that C means the same for tokens of
    any scale. By default the price is 1 for "all", and infinite otherwise.
    """

    queries: int = 24  # of one attention SVM, if which is "widest"
    draws: int = 4
    saturated: float = 0.9  # a query is saturated if one token gets more than this
    seed: int = 0
    which: str = "widest"
    price: float | None = None

    def __post_init__(self) -> None:
        check_whole(queries=self.queries, draws=self.draws)
        if not 0.0 < check_number("saturated", self.saturated, "a share below 1") < 1.0:
            raise InputError("saturated", f"{self.saturated}", "a share between 0 and 1")
        if isinstance(self.seed, bool) or not isinstance(self.seed, int):
            raise InputError("seed", repr(self.seed), "a whole number")
        if self.which not in WHICH:
            raise InputError("which", f"{self.which!r:.80}", f"one of {', '.join(WHICH)}")
        if self.price is not None:
            check_price(self.price, Frobenius(), "price")

    @property
    def cost(self) -> float:
        """The price of slack, given or not; infinite for a hard margin."""
        if self.price is not None:
            return float(self.price)
        return PRICE if self.which == "all" else math.inf
