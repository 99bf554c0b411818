"""Evidence: which tokens belong to a class more than chance explains, and how sure that is."""

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtri

from attnmargin.base.display import Summarised
from attnmargin.base.errors import InputError
from attnmargin.text.tokens.chance import chance, length_odds
from attnmargin.text.tokens.counts import TextCounts

# Share of false discoveries that is allowed, and one minus the level of the intervals.
LEVEL = 0.05

Floats = NDArray[np.float64]
Interval = tuple[Floats, Floats]


@final
@dataclass(frozen=True, eq=False, repr=False)
class Evidence(Summarised):
    """Tests and intervals of S tokens in texts of a class, column 1, and of the rest, column 0.

    The words of one text are not independent, so that texts are counted. A token is evidence if
    the texts that have it are of one class more often than chance explains, given how long the
    texts of either class are: among all such tokens, at most a share ``level`` is chance (Benjamini
    and Hochberg). Intervals have the level ``1 − level``.

    Example:
        >>> import attnmargin as am, numpy as np
        >>> planted = am.text.planted_corpus(2000, words=500, deciding=20, strengths=[0.8])
        >>> found = am.text.Evidence(am.text.count_texts(planted.pieces))
        >>> found.found.sum(), (found.found & (planted.deciding < 0)).sum()
        (np.int64(21), np.int64(1))
    """

    counts: TextCounts
    level: float = LEVEL

    def __post_init__(self) -> None:
        if not isinstance(self.level, int | float) or not 0.0 < self.level < 1.0:
            raise InputError("level", repr(self.level), "a number between 0 and 1, such as 0.05")
        if self.counts.texts.shape[1] != 2:
            got = f"{self.counts.texts.shape[1]} classes"
            raise InputError("counts", got, "one class against the rest: counts.against(k)")

    def summary(self) -> dict[str, str]:
        """Return the numbers of tokens that are evidence, by name."""
        return {
            "tokens": f"{len(self.found):,}",
            "evidence": f"{int(self.found.sum()):,}",
            "level": f"{self.level:g}",
        }

    @cached_property
    def _tested(self) -> tuple[Floats, NDArray[np.int64]]:
        texts = np.ascontiguousarray(self.counts.texts)
        total = texts.sum(1)
        return chance(
            texts[:, 1].copy(), total, self.counts.sizes, length_odds(total, self.counts.lengths)
        )

    @property
    def p(self) -> Floats:
        """Probability of so unequal a split of the texts by chance, ``(S,)``."""
        return self._tested[0]

    @property
    def side(self) -> NDArray[np.int64]:
        """1 for more texts of the class than by chance, −1 for fewer, 0 for as many."""
        return self._tested[1]

    @cached_property
    def adjusted(self) -> Floats:
        """Least level at which a token is evidence, ``(S,)``; tokens that never occur have 1."""
        seen = np.flatnonzero(self.counts.texts.sum(1))
        order = seen[np.argsort(self.p[seen], kind="stable")]
        scaled = self.p[order] * len(order) / np.arange(1, len(order) + 1)
        found = np.ones(len(self.p))
        found[order] = np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0)
        return found

    @property
    def found(self) -> NDArray[np.bool_]:
        """Whether a token is evidence, ``(S,)``."""
        return self.adjusted <= self.level

    @cached_property
    def difference(self) -> Interval:
        """Low and high end of the posterior difference, ``(S,)`` each.

        Jeffreys' interval of the share of a token's occurrences that are in the class. Instead of
        the occurrences it takes the number of independent texts with the same variance.
        """
        count = self.counts.occurrences.sum(1).astype(float)
        with np.errstate(invalid="ignore", divide="ignore"):
            share = self.counts.occurrences[:, 1] / count
            low, high = _jeffreys(share, self._independent, self.level)
        return 2.0 * low - 1.0, 2.0 * high - 1.0

    @property
    def _independent(self) -> Floats:
        """Number of texts whose share of the class varies as much as that of the occurrences.

        ``(Σc)² / Σc²`` over texts with c occurrences; less, if texts of one class repeat a token
        more often.
        """
        inside, squares = (x[:, 1].astype(float) for x in self._pairs)
        count, every = (x.sum(1).astype(float) for x in self._pairs)
        plain = count**2 / every
        weight = every / count
        share = (inside + 0.5 * weight) / (count + weight)  # never zero or one
        spread = squares * (1.0 - share) ** 2 + (every - squares) * share**2
        return np.minimum(plain, count**2 * share * (1.0 - share) / spread)

    @property
    def _pairs(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return self.counts.occurrences, self.counts.squares

    @cached_property
    def alpha(self) -> Interval:
        """Low and high end of the signed frequency α, ``(S,)`` each.

        Both of its parts, occurrences in the class and in the rest over all tokens, are rates with
        score intervals, widened for repetitions within texts; their distances to the parts add up
        as squares (Zou and Donner).
        """
        occurrences, squares = self._pairs
        total = max(int(occurrences.sum()), 1)
        with np.errstate(invalid="ignore", divide="ignore"):
            repeats = squares.sum(1) / occurrences.sum(1)
        low, high = _rates(occurrences, repeats[:, None], self.level)
        down, up = (occurrences - low) / total, (high - occurrences) / total
        alpha = (occurrences[:, 1] - occurrences[:, 0]) / total
        return alpha - np.hypot(down[:, 1], up[:, 0]), alpha + np.hypot(up[:, 1], down[:, 0])

    @cached_property
    def texts(self) -> tuple[Interval, Interval]:
        """Jeffreys' intervals of the share of texts with a token: of the rest, of the class."""
        n = self.counts.sizes
        rest, own = (_jeffreys(self.counts.texts[:, y] / n[y], n[y], self.level) for y in (0, 1))
        return rest, own


def _jeffreys(share: Floats, n: Floats | np.int64, level: float) -> Interval:
    """Compute Jeffreys' interval of shares of n independent cases; n need not be whole."""
    x = share * n
    low = betaincinv(x + 0.5, n - x + 0.5, level / 2.0)
    high = betaincinv(x + 0.5, n - x + 0.5, 1.0 - level / 2.0)
    return np.where(share > 0.0, low, 0.0 * share), np.where(share < 1.0, high, 1.0 + 0.0 * share)


def _rates(count: NDArray[np.int64], repeats: Floats, level: float) -> Interval:
    """Compute score intervals of expected counts that come ``repeats`` at a time."""
    z = -float(ndtri(level / 2.0))
    x = count / repeats
    half = z * np.sqrt(x + z**2 / 4.0)
    return repeats * (x + z**2 / 2.0 - half), repeats * (x + z**2 / 2.0 + half)
