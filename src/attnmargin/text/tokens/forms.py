"""Forms: the words, as people write them, that every token stands for."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Self, final

import numpy as np
from numpy.typing import NDArray

from attnmargin.base.ragged import owners_of, starts_of
from attnmargin.text.tokens.spelling import Spelling

# Forms of a token that are kept.
_MOST = 6


@final
@dataclass(frozen=True, eq=False)
class Forms:
    """The most frequent words of S tokens, most frequent first."""

    words: list[list[str]]  # (S,), each of at most six words
    shown: list[str]  # (S,): what a token is called

    @classmethod
    def of_words(
        cls, words: list[str], seen: NDArray[np.int64], spelling: Spelling, tokens: int
    ) -> Self:
        """Collect the words of every token by how often they were seen."""
        owner = owners_of(spelling.start)
        order = np.lexsort((owner, -seen[owner], spelling.tokens))
        start = starts_of(np.bincount(spelling.tokens, minlength=tokens)).tolist()
        places = owner[order].tolist()
        found = [
            list(dict.fromkeys(words[w] for w in places[a : min(b, a + 2 * _MOST)]))[:_MOST]
            for a, b in pairwise(start)
        ]
        return cls(found, [own[0] for own in found])

    def named(self, names: list[str]) -> "Forms":
        """Call the tokens by other names."""
        return Forms(self.words, names)
