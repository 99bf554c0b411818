"""How often each token of a vocabulary occurs, and with which label (paper D, Section 2)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from attnmargin.base.display import Summarised
from attnmargin.base.errors import InputError
from attnmargin.base.words import counted


@final
@dataclass(frozen=True, eq=False, repr=False)
class TokenStatistics(Summarised):
    """Occurrences of S tokens in sequences with labels +1 and −1."""

    positive: NDArray[np.int64]  # (S,): occurrences with label +1
    negative: NDArray[np.int64]  # (S,)

    def summary(self) -> dict[str, str]:
        """Return the numbers of tokens and occurrences, by name."""
        return {
            "tokens": f"{len(self.positive):,}",
            "occurrences": f"{int(self.count.sum()):,}",
            "share with label +1": f"{self.share:.4g}",
        }

    @property
    def count(self) -> NDArray[np.int64]:
        """Total occurrences."""
        return self.positive + self.negative

    @property
    def alpha(self) -> NDArray[np.float64]:
        """Average signed frequency (eq. 3): signed occurrences over the total number of tokens.

        The equation assumes sequences of equal length; otherwise longer ones weigh more here.
        """
        return (self.positive - self.negative) / max(int(self.count.sum()), 1)

    @property
    def difference(self) -> NDArray[np.float64]:
        """Posterior difference ``p(+1 | s) − p(−1 | s)`` (eq. 37); NaN for unseen tokens."""
        count = self.count
        with np.errstate(invalid="ignore"):
            return np.where(count > 0, (self.positive - self.negative) / count, np.nan)

    @property
    def share(self) -> float:
        """Share π of all occurrences that have label +1."""
        return float(self.positive.sum() / max(int(self.count.sum()), 1))

    @property
    def score(self) -> NDArray[np.float64]:
        """How far n₊ of n occurrences is from chance: ``(n₊ − nπ) / √(nπ(1 − π))``, ``(S,)``.

        Rank tokens by it: a posterior difference of 0.9 in 50 occurrences is weaker evidence than
        0.6 in 5,000.
        """
        share = self.share
        spread = np.sqrt(np.maximum(self.count, 1) * max(share * (1.0 - share), 1e-12))
        return (self.positive - self.count * share) / spread

    @property
    def kind(self) -> NDArray[Any]:
        """Positive, negative, irrelevant, completely positive or negative, unseen (Def. 1)."""
        kinds = np.full(len(self.positive), "irrelevant", dtype="<U19")
        kinds[self.positive > self.negative] = "positive"
        kinds[self.positive < self.negative] = "negative"
        kinds[(self.positive > 0) & (self.negative == 0)] = "completely positive"
        kinds[(self.negative > 0) & (self.positive == 0)] = "completely negative"
        kinds[self.count == 0] = "unseen"
        return kinds

    @property
    def complete(self) -> NDArray[np.bool_]:
        """Tokens that occur with one label only: the set S_c."""
        return (self.count > 0) & ((self.positive == 0) | (self.negative == 0))

    @property
    def irrelevant(self) -> NDArray[np.bool_]:
        """Tokens that occur equally often with both labels."""
        return (self.count > 0) & (self.positive == self.negative)


def token_statistics(
    sequences: Iterable[Sequence[int]], labels: Iterable[Any], vocabulary: int
) -> TokenStatistics:
    """Count tokens by label.

    Args:
        sequences: token ids, of any lengths.
        labels: −1 or +1 for every sequence.
        vocabulary: the number S of tokens.

    Example:
        >>> import attnmargin as am
        >>> found = am.embeddings.token_statistics([[0, 1, 1], [0, 2, 2]], [1, -1], 4)
        >>> found.alpha.round(3).tolist(), found.kind[1:].tolist()
        ([0.0, 0.333, -0.333, 0.0], ['completely positive', 'completely negative', 'unseen'])
    """
    rows = [np.asarray(row) for row in sequences]
    for i, row in enumerate(rows):
        if row.ndim != 1 or (len(row) and row.dtype.kind not in "iu"):
            raise InputError(f"sequences[{i}]", f"{str(row)[:40]}", "a list of token ids")
    signs = np.asarray(list(labels))
    if len(signs) and signs.dtype.kind not in "iuf":
        raise InputError("labels", f"{signs[0]!r:.40}", "−1 or +1")
    if len(rows) != len(signs):
        got = f"{len(signs)} for {counted(len(rows), 'sequence')}"
        raise InputError("labels", got, "one per sequence")
    ids = np.concatenate(rows).astype(np.int64) if rows else np.empty(0, np.int64)
    return count_tokens(ids, np.repeat(signs, [len(row) for row in rows]), vocabulary)


def count_tokens(ids: NDArray[Any], signs: NDArray[Any], vocabulary: int) -> TokenStatistics:
    """Count all tokens of concatenated sequences, each with the label of its sequence."""
    if not np.isin(signs, (-1, 1)).all():
        raise InputError("labels", f"{signs[~np.isin(signs, (-1, 1))][0]:g}", "−1 or +1")
    if len(ids) and not 0 <= int(ids.min()) <= int(ids.max()) < vocabulary:
        wrong = ids[(ids < 0) | (ids >= vocabulary)][0]
        raise InputError("sequences", f"token id {wrong}", f"ids from 0 to {vocabulary - 1}")
    positive = np.bincount(ids[signs > 0], minlength=vocabulary)
    return TokenStatistics(positive, np.bincount(ids, minlength=vocabulary) - positive)
