"""Pairs: neighbouring words as tokens of their own, such as "not good"."""

from collections.abc import Set
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnmargin.base.ragged import starts_of
from attnmargin.text.pieces import Pieces
from attnmargin.text.tokens.forms import Forms
from attnmargin.text.tokens.spelling import Spelling
from attnmargin.text.tokens.splitting import Words
from attnmargin.text.tokens.stop_words import NEGATIONS

# The first word of a pair that begins with a negation.
_NOT = "not"
# What a word is to pairs, if it is no token: it is skipped, or ends a phrase.
_SKIPPED, _END = -1, -2


def add_pairs(
    pieces: Pieces, forms: Forms, words: Words, spelling: Spelling, removed: Set[str], least: int
) -> tuple[Pieces, Forms]:
    """Append to every text its pairs of neighbouring words that occur at least ``least`` times.

    Stop words that were removed are skipped, so that "not a very good film" has "not good" and
    "good film"; but negations among them open a pair, all as "not". A pair does not cross
    punctuation, and rare words have no pairs.
    """
    S = len(pieces.vocabulary)
    item = np.full(len(words.vocabulary), _END)
    single = np.diff(spelling.start) == 1
    item[single] = spelling.tokens[spelling.start[:-1][single]]
    for w, word in enumerate(words.vocabulary):
        if word in removed:
            item[w] = S if word in NEGATIONS else _SKIPPED
    codes, spoken, ends = _pairs(words, item, S + 1)
    known, place, count = np.unique(codes, return_inverse=True, return_counts=True)
    keep = count >= least
    number = np.where(keep, S + np.cumsum(keep) - 1, -1)[place]
    inside = number >= 0
    names = [*pieces.vocabulary, _NOT]
    vocabulary = [f"{names[code // (S + 1)]} {names[code % (S + 1)]}" for code in known[keep]]
    own = _named(words.vocabulary, spoken[inside], number[inside] - S, len(vocabulary))
    ids, start = _joined(pieces, number[inside].astype(np.int32), starts_of(inside)[ends])
    joined = Forms(forms.words + own.words, forms.shown + own.shown)
    return Pieces(ids, start, pieces.labels, pieces.vocabulary + vocabulary), joined


def _pairs(words: Words, item: NDArray[np.int64], base: int) -> tuple[Any, Any, Any]:
    """Return the codes of all pairs of items, those of their words, and where texts end."""
    from attnmargin.text.tokens.counting_kernel import collect

    W = len(words.vocabulary)
    codes, spoken = (np.empty(len(words.ids), np.int64) for _ in range(2))
    ends = np.zeros(len(words.start), np.int64)
    collect(words.ids, words.start, words.close, item, base, W, codes, spoken, ends)
    return codes[: ends[-1]], spoken[: ends[-1]], ends


def _named(
    words: list[str], spoken: NDArray[np.int64], pair: NDArray[np.int64], count: int
) -> Forms:
    """Collect the most frequent spellings of every pair."""
    W = len(words)
    known, place, seen = np.unique(spoken, return_inverse=True, return_counts=True)
    owner = np.empty(len(known), np.int64)
    owner[place] = pair
    order = np.argsort(owner, kind="stable")
    names = [f"{words[code // W]} {words[code % W]}" for code in known[order].tolist()]
    spelling = Spelling(owner[order].astype(np.int32), np.arange(len(known) + 1))
    return Forms.of_words(names, seen[order], spelling, count)


def _joined(
    pieces: Pieces, pairs: NDArray[np.int32], ends: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Append the pairs of every text to its tokens."""
    start = pieces.start + ends
    ids = np.empty(int(start[-1]), np.int32)
    first = np.zeros(len(ids) + 1, np.int64)
    np.add.at(first, start[:-1] + pieces.lengths, 1)
    np.add.at(first, start[1:], -1)
    inside = np.cumsum(first[:-1]) > 0
    ids[~inside], ids[inside] = pieces.ids, pairs
    return ids, start
