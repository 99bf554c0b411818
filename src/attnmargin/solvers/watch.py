"""When a search for a solution is to end."""

import math
import time
from typing import final

from attnmargin.base.checks import check_number
from attnmargin.base.errors import InputError
from attnmargin.base.progress import Look


@final
class Watch:
    """Ends the search for a solution after some seconds, or when the one who looks on wants it."""

    def __init__(self, seconds: float | None = None, look: Look | None = None) -> None:
        limit = math.inf if seconds is None else check_number("time_limit", seconds, "seconds")
        if not limit >= 0.0:
            raise InputError("time_limit", f"{seconds}", "a number of seconds that is not negative")
        self._end, self._look, self.over = time.perf_counter() + limit, look, limit == 0.0

    def tell(self, rows: int, support: int, gap: float) -> None:
        """Report how far the search is; afterwards ``over`` says whether it is to end."""
        wanted = self._look is not None and bool(self._look(rows, support, gap))
        self.over = self.over or wanted or time.perf_counter() > self._end
