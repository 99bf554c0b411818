"""Planted corpora: random texts in which it is known which words decide, and how strongly."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from io import StringIO
from itertools import islice, product
from pathlib import Path
from typing import final

import numpy as np
from numpy.typing import NDArray

from attnmargin.base.checks import check_whole
from attnmargin.base.display import Summarised
from attnmargin.base.errors import InputError
from attnmargin.base.files import write_whole
from attnmargin.base.ragged import starts_of
from attnmargin.base.seeds import seed_of
from attnmargin.text.corpus import Corpus
from attnmargin.text.pieces import Pieces

# Word k occurs in proportion to 1 / (k + _FLAT), as in natural text.
_FLAT = 20.0
# Deciding words are that frequent: they lie between these ranks, evenly in the logarithm.
_RANKS = (10, 4000)
# Log-ratios of the rate in the own class to the overall one: each occurs equally often.
STRENGTHS = (0.15, 0.3, 0.6, 1.2)
# Spread of the logarithm of text lengths.
_SPREAD = 0.5
# Syllables of the made-up words; no stemmer changes words that end like this.
_CONSONANTS, _VOWELS = "bdfgklmnprtvwz", "aou"
_CLASSES = ("neg", "pos")


@final
@dataclass(frozen=True, eq=False, repr=False)
class PlantedCorpus(Summarised):
    """A random corpus with the rates that it was drawn from."""

    pieces: Pieces
    rates: NDArray[np.float64]  # (C, S): share of every word among the words of a class
    deciding: NDArray[np.int64]  # (S,): the class that a word decides for, −1 for none
    shares: NDArray[np.float64]  # (C,): share of every class among the texts
    classes: tuple[str, ...]

    def summary(self) -> dict[str, str]:
        """Return the sizes, by name."""
        decided = int((self.deciding >= 0).sum())
        return {
            "texts": f"{len(self.pieces):,} of {len(self.classes)} classes",
            "words": f"{len(self.deciding):,}, of which {decided:,} decide",
        }

    @cached_property
    def corpus(self) -> Corpus:
        """The same as texts."""
        texts = [" ".join(self.pieces.words(i)) for i in range(len(self.pieces))]
        return Corpus(texts, self.pieces.labels, self.classes)

    def alpha(self, positive: int = 1) -> NDArray[np.float64]:
        """Return the expected signed frequency of every word, ``(S,)``: a class against the rest.

        ``α_s = π r₊ − (1 − π) r₋`` with the share π of the class and the rates r.
        """
        own = self.shares[positive] * self.rates[positive]
        return 2.0 * own - self.shares @ self.rates

    def difference(self, positive: int = 1) -> NDArray[np.float64]:
        """Return the posterior difference ``α_s / (π r₊ + (1 − π) r₋)``, ``(S,)``."""
        return self.alpha(positive) / (self.shares @ self.rates)

    def write(self, path: str | Path) -> Path:
        """Write a ``.csv`` file with columns text and label."""
        stream = StringIO()
        rows = csv.writer(stream, lineterminator="\n")
        rows.writerow(("text", "label"))
        corpus = self.corpus
        names = (corpus.classes[y] for y in corpus.labels)
        rows.writerows(zip(corpus.texts, names, strict=True))
        return write_whole(Path(path), lambda out: out.write(stream.getvalue().encode()))


def planted_corpus(
    n: int,
    *,
    words: int = 20_000,
    deciding: int = 200,
    shares: float | Sequence[float] = 0.5,
    length: int = 80,
    burst: float = 0.2,
    strengths: Sequence[float] = STRENGTHS,
    seed: int = 0,
) -> PlantedCorpus:
    """Draw n texts in which ``deciding`` of the words occur more often in one of the classes.

    A word that decides with strength δ has ``e^δ`` times its rate in its own class and ``e^−δ``
    times in the others; all other words have the same rate in every class. Within a text words
    repeat themselves, so its words are not independent.

    Args:
        shares: share of the positive class, or one share per class.
        length: mean number of words of a text; lengths are log-normal.
        burst: probability that a word is followed by itself.
        strengths: values of δ, equally often each.

    Example:
        >>> import attnmargin as am
        >>> planted = am.text.planted_corpus(100, words=500, deciding=8, shares=0.3)
        >>> len(planted.corpus), (planted.deciding >= 0).sum(), planted.corpus.labels.sum()
        (100, np.int64(8), np.int64(30))
    """
    check_whole(n=n, words=words, deciding=deciding, length=length)
    own = _shares(shares)
    if not 0.0 <= burst < 1.0:
        raise InputError("burst", repr(burst), "a probability below 1")
    rates, decides = _rates(words, deciding, len(own), strengths)
    rng = np.random.default_rng(seed_of("planted corpus", base=seed))
    ends = np.rint(np.cumsum(own) * n).astype(np.int64)
    labels = np.searchsorted(ends, np.arange(n), side="right")
    parts = [
        _texts(rng, rates[k], int((labels == k).sum()), length, burst) for k in range(len(own))
    ]
    ids, sizes = (np.concatenate(own) for own in zip(*parts, strict=True))
    names = _CLASSES if len(own) == 2 else tuple(f"{k + 1}" for k in range(len(own)))
    pieces = Pieces(ids, starts_of(sizes), labels, _made_up(words))
    return PlantedCorpus(pieces, rates, decides, own, names)


def _shares(shares: float | Sequence[float]) -> NDArray[np.float64]:
    own = np.asarray((1.0 - shares, shares) if isinstance(shares, int | float) else shares, float)
    if own.ndim != 1 or len(own) < 2 or not (own > 0.0).all() or abs(own.sum() - 1.0) > 1e-9:
        raise InputError("shares", f"{shares}", "positive shares of at least two classes, sum one")
    return own


def _rates(
    words: int, deciding: int, classes: int, strengths: Sequence[float]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return rates ``(C, S)``, and the class that every word decides for.

    Deciding words come in groups, one per class, with the same overall rate: then all classes have
    the same sum, and the other words the same rate in each.
    """
    if deciding % classes or not 0 < deciding <= words // 2:
        needs = f"a multiple of {classes}, at most half of the words"
        raise InputError("deciding", f"{deciding} of {words} words", needs)
    base = 1.0 / (np.arange(words) + _FLAT)
    rates, decides = np.tile(base, (classes, 1)), np.full(words, -1)
    for g, first in enumerate(_places(words, deciding, classes)):
        delta = strengths[g % len(strengths)]
        rates[:, first : first + classes] = base[first] * np.exp(-delta)
        for k in range(classes):
            rates[k, first + k] = base[first] * np.exp(delta)
            decides[first + k] = k
    return rates / rates.sum(1, keepdims=True), decides


def _places(words: int, deciding: int, classes: int) -> NDArray[np.int64]:
    """Return the rank of the first word of every group of deciding words."""
    low = min(_RANKS[0], words - deciding)
    room = min(_RANKS[1], words) - low - deciding
    gaps = np.geomspace(1.0, max(room, 0) + 1.0, deciding // classes) - 1.0
    return low + classes * np.arange(deciding // classes) + gaps.astype(np.int64)


def _texts(
    rng: np.random.Generator, rates: NDArray[np.float64], n: int, length: int, burst: float
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Draw the texts of one class: token ids, and the length of every text."""
    mean = length * (1.0 - burst)
    sizes = mean * np.exp(_SPREAD * rng.standard_normal(n) - _SPREAD**2 / 2.0)
    start = starts_of(np.maximum(np.rint(sizes), 1.0))
    ids = np.repeat(np.arange(len(rates), dtype=np.int32), rng.multinomial(start[-1], rates))
    rng.shuffle(ids)
    copies = rng.geometric(1.0 - burst, len(ids))
    return np.repeat(ids, copies), np.add.reduceat(copies, start[:-1]) if n else start[:0]


def _made_up(words: int) -> list[str]:
    """Make up different words of two or more syllables."""
    syllables = ["".join(pair) for pair in product(_CONSONANTS, _VOWELS)]
    count = 2
    while len(syllables) ** count < words:
        count += 1
    return ["".join(parts) for parts in islice(product(syllables, repeat=count), words)]
