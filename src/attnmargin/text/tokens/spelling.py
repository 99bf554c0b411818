"""Spelling: which tokens every distinct word of a corpus becomes."""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from attnmargin.base.ragged import owners_of, starts_of


@final
@dataclass(frozen=True, eq=False)
class Spelling:
    """The tokens of W words, end to end: word w has ``tokens[start[w] : start[w + 1]]``."""

    tokens: NDArray[np.int32]
    start: NDArray[np.int64]  # (W + 1,)

    def counts(self, seen: NDArray[np.int64], tokens: int) -> NDArray[np.int64]:
        """Count each of so many tokens, when the words were seen so often."""
        found = np.zeros(tokens, np.int64)
        np.add.at(found, self.tokens, seen[owners_of(self.start)])
        return found

    def renumbered(self, number: NDArray[np.int64]) -> "Spelling":
        """Give tokens other numbers, and drop those with a negative one.

        >>> import numpy as np
        >>> own = Spelling(np.array([0, 1, 0]), np.array([0, 2, 3]))
        >>> own = own.renumbered(np.array([-1, 7]))
        >>> own.tokens.tolist(), own.start.tolist()
        ([7], [0, 1, 1])
        """
        found = number[self.tokens].astype(np.int32)
        inside = found >= 0
        return Spelling(found[inside], starts_of(inside)[self.start])

    def replace(
        self, words: NDArray[np.int32], start: NDArray[np.int64]
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Replace the words of texts, ``words[start[i] : start[i + 1]]``, by their tokens."""
        from attnmargin.text.tokens.counting_kernel import replace

        lengths = np.diff(self.start)
        ids = np.empty(int(lengths[words].sum()), np.int32)
        ends = np.zeros(len(start), np.int64)
        replace(words, start, self.tokens, self.start, ids, ends)
        return ids, ends
