"""Offers: what the sequences of one last token offered, and which token came next."""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from attnmargin.base.ragged import Ids
from attnmargin.graphs.edges import distinct
from attnmargin.graphs.samples import Samples

Floats = NDArray[np.float64]
# Steps that fit the shares inside components, far more than a comparison needs.
_STEPS = 60


@final
@dataclass(frozen=True, eq=False)
class Offers:
    """n samples with one last token: entries are distinct tokens of samples, sorted by sample."""

    tokens: Ids  # (N,) ids, sorted; nodes are indices of them
    row: Ids  # (entries,) the sample
    node: Ids  # (entries,)
    share: Floats  # (entries,) of the sample that this token fills
    chosen: Ids  # (n,) node of the label

    @property
    def n(self) -> int:
        """Number of samples."""
        return len(self.chosen)

    @property
    def width(self) -> Ids:
        """Number of different tokens of each sample, ``(n,)``."""
        return np.bincount(self.row, minlength=self.n)

    def best(self, rank: Ids) -> Ids:
        """Return the smallest rank that each sample offers, ``(n,)``."""
        begin = np.searchsorted(self.row, np.arange(self.n))
        return np.minimum.reduceat(rank[self.node], begin)

    def likelihood(self, rank: Ids, noise: float) -> float:
        """Compute the log-likelihood if tokens of the best rank are shared, and the rest is noise.

        P(label j) = (1 − ε) [j of the best rank] c_j e^{a_j} / Σ c e^a + ε c_j / Σ c
        """
        top = rank[self.node] == self.best(rank)[self.row]
        right = rank[self.chosen] == self.best(rank)
        shares = self._shares(top, right)
        floor = self.share[self.node == self.chosen[self.row]]
        kept = np.where(right, shares, 0.0)
        return float(np.log((1.0 - noise) * kept + noise * floor).sum())

    def _shares(self, top: NDArray[np.bool_], right: NDArray[np.bool_]) -> Floats:
        """Fit one weight per token to the samples whose label has the best rank, ``(n,)``."""
        row, node, share = self.row[top], self.node[top], self.share[top]
        inside = right[row]
        wins = np.bincount(self.chosen[right], minlength=len(self.tokens)).astype(float)
        weight = np.where(wins > 0.0, 1.0, 1e-9)
        for _ in range(_STEPS):
            total = np.bincount(row, share * weight[node], minlength=self.n)
            pull = np.bincount(
                node[inside], (share / total[row])[inside], minlength=len(self.tokens)
            )
            weight = np.where(pull > 0.0, np.maximum(wins, 1e-9) / np.maximum(pull, 1e-300), weight)
        total = np.bincount(row, share * weight[node], minlength=self.n)
        own = np.zeros(self.n)
        mine = node == self.chosen[row]
        own[row[mine]] = (share * weight[node] / total[row])[mine]
        return own


def offers_of(samples: Samples) -> Offers:
    """Collect samples that have one last token, and labels among their tokens."""
    tokens = distinct(samples.tokens)
    node = np.searchsorted(tokens, samples.tokens)
    keys, times = np.unique(samples.owner * len(tokens) + node, return_counts=True)
    row, own = np.divmod(keys, len(tokens))
    share = times / np.diff(samples.start)[row]
    return Offers(tokens, row, own, share, np.searchsorted(tokens, samples.labels))
