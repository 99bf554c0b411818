"""Contexts of a text file: which word follows which n-gram how often."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray

from attnmargin.base.arrays import Array
from attnmargin.base.checks import check_whole
from attnmargin.base.display import Summarised
from attnmargin.base.errors import InputError
from attnmargin.base.jsonl import text_lines
from attnmargin.base.seeds import seed_of
from attnmargin.decoders.contexts import NextWords, next_words


@final
@dataclass(frozen=True, eq=False, repr=False)
class WordCounts(Summarised):
    """How often each word follows each context of a text; most frequent contexts first."""

    contexts: tuple[tuple[str, ...], ...]
    words: tuple[str, ...]
    counts: NDArray[np.int64]  # (m, V)

    def summary(self) -> dict[str, str]:
        """Return sizes, by name."""
        several = int(((self.counts > 0).sum(1) > 1).sum())
        return {
            "contexts": f"{len(self.contexts)}, {several} of them with several words",
            "words": str(len(self.words)),
            "places": str(int(self.counts.sum())),
        }

    def embedded(
        self, d: int | None = None, *, table: Array | None = None, seed: int = 0
    ) -> NextWords:
        """Embed the contexts: rows of ``table`` ``(m, d)``, or random ones on the unit sphere in d.

        Args:
            d: width of random embeddings; by default the number of contexts, so that they are
                independent, compatible and separable.
            table: given embeddings, one per context.
        """
        m = len(self.contexts)
        if table is None:
            width = m if d is None else d
            check_whole(d=width)
            generator = torch.Generator().manual_seed(seed_of("contexts", width, base=seed))
            table = torch.randn(m, width, generator=generator, dtype=torch.float64)
            table = table / table.norm(dim=-1, keepdim=True)
        names = tuple(" ".join(context) for context in self.contexts)
        return next_words(table, self.counts, words=self.words, names=names)


def count_words(
    lines: Iterable[Iterable[str]], order: int = 1, most: int | None = None
) -> WordCounts:
    """Count which word follows which ``order`` words before it, line by line.

    Args:
        lines: of words.
        order: number of words of a context.
        most: number of contexts to keep, the most frequent ones; all by default.

    Example:
        >>> import attnmargin as am
        >>> lines = ["the cat sat", "the cat ran", "a dog sat"]
        >>> found = am.decoders.count_words(line.split() for line in lines)
        >>> found.contexts[0], dict(zip(found.words, found.counts[0].tolist()))
        (('cat',), {'cat': 0, 'dog': 0, 'ran': 1, 'sat': 1})
        >>> am.decoders.predict_decoder(found.embedded(2)).verdict
        'compatible, not separable'
    """
    check_whole(order=order, most=1 if most is None else most)
    found: dict[tuple[str, ...], Counter[str]] = {}
    for line in lines:
        words = list(line)
        for k in range(order, len(words)):
            found.setdefault(tuple(words[k - order : k]), Counter())[words[k]] += 1
    kept = sorted(found, key=lambda context: (-found[context].total(), context))[:most]
    words = sorted(set(chain.from_iterable(found[context] for context in kept)))
    if len(words) < 2:
        got = f"{len(words)} words that follow {order} others"
        raise InputError("lines", got, "at least two different ones")
    place = {word: k for k, word in enumerate(words)}
    counts = np.zeros((len(kept), len(words)), dtype=np.int64)
    for j, context in enumerate(kept):
        for word, times in found[context].items():
            counts[j, place[word]] = times
    return WordCounts(tuple(kept), tuple(words), counts)


def read_words(path: str | Path, order: int = 1, most: int | None = None) -> WordCounts:
    """Count the contexts of a text file; words are separated by spaces, and lines are apart.

    Args:
        path: a text file in UTF-8.
        order, most: as in :func:`count_words`.

    Example:
        >>> import attnmargin as am, pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp(), "words.txt")
        >>> _ = path.write_text("the cat sat\\nthe dog sat\\n")
        >>> am.decoders.read_words(path)
        WordCounts
          contexts  3, 1 of them with several words
          words     3
          places    4
    """
    lines = (line.split() for _, line in text_lines(path, "a text file"))
    return count_words(lines, order, most)
