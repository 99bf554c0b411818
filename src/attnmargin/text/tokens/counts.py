"""Occurrences of every token by class: in all texts, and text by text."""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from attnmargin.base.display import Summarised
from attnmargin.base.errors import InputError
from attnmargin.text.pieces import Pieces

Ints = NDArray[np.int64]


@final
@dataclass(frozen=True, eq=False, repr=False)
class TextCounts(Summarised):
    """Counts of S tokens in texts of C classes; the rest of a pair is column 0, its class 1."""

    occurrences: Ints  # (S, C)
    texts: Ints  # (S, C): texts with the token
    squares: Ints  # (S, C): sums over texts of the squared number of occurrences
    lengths: Ints  # (L, C): texts by their number of tokens

    def summary(self) -> dict[str, str]:
        """Return the sizes, by name."""
        return {
            "tokens": f"{len(self.occurrences):,}",
            "texts by class": ", ".join(f"{count:,}" for count in self.sizes.tolist()),
        }

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of texts of every class, ``(C,)``."""
        return np.asarray(self.lengths.sum(0))

    def against(self, positive: int) -> "TextCounts":
        """Compare one class with the sum of the others: columns 1 and 0 of the result."""

        def two(own: Ints) -> Ints:
            return np.stack([own.sum(1) - own[:, positive], own[:, positive]], 1)

        return TextCounts(
            two(self.occurrences), two(self.texts), two(self.squares), two(self.lengths)
        )


def count_texts(pieces: Pieces, classes: int = 2) -> TextCounts:
    """Count the tokens of texts by class.

    Example:
        >>> import attnmargin as am, numpy as np
        >>> from attnmargin.text.tokens.counts import count_texts
        >>> pieces = am.text.Pieces(np.array([0, 0, 1, 0]), np.array([0, 3, 4]), np.array([1, 0]),
        ...                         ["good", "film"])
        >>> found = count_texts(pieces)
        >>> found.occurrences.tolist(), found.texts.tolist(), found.squares.tolist()
        ([[1, 2], [0, 1]], [[1, 1], [0, 1]], [[1, 4], [0, 1]])
    """
    from attnmargin.text.tokens.counting_kernel import count

    S = len(pieces.vocabulary)
    if len(pieces) and not 0 <= pieces.labels.min() <= pieces.labels.max() < classes:
        raise InputError("classes", f"{classes} for labels up to {pieces.labels.max()}", "one more")
    counts = np.zeros((3, S, classes), np.int64)
    ids, start = (np.ascontiguousarray(x, np.int64) for x in (pieces.ids, pieces.start))
    count(ids, start, np.ascontiguousarray(pieces.labels, np.int64), counts)
    longest = int(pieces.lengths.max(initial=0))
    lengths = np.zeros((longest + 1, classes), np.int64)
    np.add.at(lengths, (pieces.lengths, pieces.labels), 1)
    return TextCounts(counts[0], counts[1], counts[2], lengths)
