"""Noise: choices that contradict the graphs, and their share after each last token."""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

from attnmargin.base.display import Summarised
from attnmargin.base.ragged import Ids


@final
@dataclass(frozen=True, eq=False, repr=False)
class Noise(Summarised):
    """The share ε of choices that are random tokens of their sequence.

    A random choice contradicts the graph unless it falls on a token of the best component. So
    ``wrong`` choices among ``exposed`` (the expected number if all were random) make a share
    ``wrong/exposed``; shares of single last tokens are drawn a little towards that of all.
    """

    last: Ids  # (m,) last tokens whose choices were examined
    wrong: Ids  # (m,) choices that contradict the graph
    exposed: NDArray[np.float64]  # (m,)
    share: NDArray[np.float64]  # (m,) ε
    samples: int  # number of samples left out of the graphs

    @property
    def total(self) -> float:
        """The share of noise of all last tokens together."""
        return float(self.wrong.sum() / max(self.exposed.sum(), 1e-300))

    def at(self, last: int) -> float:
        """Return ε after a last token, 0 if it was not examined."""
        place = int(np.searchsorted(self.last, last))
        known = place < len(self.last) and self.last[place] == last
        return float(self.share[place]) if known else 0.0

    def intervals(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Compute Jeffreys' 95 % intervals of the shares ``wrong/exposed``, low and high."""
        rest = np.maximum(self.exposed - self.wrong, 0.0)
        low = np.where(self.wrong > 0, beta.ppf(0.025, self.wrong + 0.5, rest + 0.5), 0.0)
        return low, beta.ppf(0.975, self.wrong + 0.5, rest + 0.5)

    def summary(self) -> dict[str, str]:
        """Return the share of all, by name."""
        return {"noise": f"{self.total:.1%}", "contradictions": f"{int(self.wrong.sum()):,}"}
