"""From texts to tokens: markup, stop words, stems, word pieces, rare tokens; each step optional."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from attnmargin.base.checks import check_whole
from attnmargin.base.errors import InputError, MissingPackageError
from attnmargin.base.progress import Progress
from attnmargin.base.ragged import starts_of
from attnmargin.text.corpus import Corpus
from attnmargin.text.pieces import Pieces, read_vocabulary, split_words
from attnmargin.text.tokens.forms import Forms
from attnmargin.text.tokens.pairs import add_pairs
from attnmargin.text.tokens.spelling import Spelling
from attnmargin.text.tokens.splitting import split_texts
from attnmargin.text.tokens.stop_words import STOP_WORDS


@final
@dataclass(frozen=True)
class Cleaning:
    """The steps to apply, in this order."""

    markup: bool = True  # remove tags such as <br />, read &amp; as &
    stop_words: bool = True  # remove words such as "the"
    stem: bool = True  # reduce "loved" and "loving" to "love"
    vocabulary: str | Path | None = None  # word pieces of this file; default: whole words
    least: int = 50  # remove tokens that occur less often
    pairs: bool = False  # add pairs of neighbouring words, such as "not good"

    def __post_init__(self) -> None:
        check_whole(least=self.least)
        if self.pairs and self.vocabulary is not None:
            raise InputError("pairs", "word pieces", "whole words: no vocabulary")


class Step(NamedTuple):
    """The sizes after a cleaning step."""

    step: str
    tokens: int
    vocabulary: int


@final
@dataclass(frozen=True, eq=False)
class Cleaned:
    """The tokens of a corpus, the sizes after every step, and the words behind the tokens."""

    pieces: Pieces
    steps: list[Step]
    forms: Forms


def clean_tokens(corpus: Corpus, cleaning: Cleaning | None = None) -> tuple[Pieces, list[Step]]:
    """Extract the tokens of a corpus as in paper D, and report the sizes after every step.

    Words are runs of letters, with their marks, and digits, in lower case; punctuation separates
    them. Texts without any token left stay, empty.

    Example:
        >>> import attnmargin as am, numpy as np
        >>> texts = ["I loved it!<br />", "It was boring."]
        >>> corpus = am.text.Corpus(texts, np.array([1, 0]), ("neg", "pos"))
        >>> pieces, steps = am.text.clean_tokens(corpus, am.text.Cleaning(least=1))
        >>> pieces.vocabulary, [step.step for step in steps]
        (['love', 'bore'], ['words', 'stop words removed', 'stems'])
    """
    found = clean_corpus(corpus, cleaning)
    return found.pieces, found.steps


def clean_corpus(
    corpus: Corpus, cleaning: Cleaning | None = None, progress: Progress | None = None
) -> Cleaned:
    """Do the same as :func:`clean_tokens`, and keep the words that every token stands for."""
    own = cleaning or Cleaning()
    words = split_texts(corpus.texts, own.markup, progress)
    seen = np.bincount(words.ids, minlength=len(words.vocabulary))
    steps, spelled = _spell(words.vocabulary, seen, own)
    vocabulary, spelling = _numbered(spelled)
    count = spelling.counts(seen, len(vocabulary))
    keep = count >= own.least
    kept = [token for token, good in zip(vocabulary, keep, strict=True) if good]
    spelling = spelling.renumbered(np.where(keep, np.cumsum(keep) - 1, -1))
    ids, start = spelling.replace(words.ids, words.start)
    forms = Forms.of_words(words.vocabulary, seen, spelling, len(kept))
    if own.vocabulary is not None:
        forms = forms.named(kept)
    if own.least > 1:
        steps.append(Step(f"seen at least {own.least} times", len(ids), len(kept)))
    pieces = Pieces(ids, start, corpus.labels, kept)
    if not own.pairs:
        return Cleaned(pieces, steps, forms)
    removed = STOP_WORDS if own.stop_words else frozenset()
    pieces, forms = add_pairs(pieces, forms, words, spelling, removed, own.least)
    steps.append(Step("pairs of words added", len(pieces.ids), len(pieces.vocabulary)))
    return Cleaned(pieces, steps, forms)


Spelled = list[tuple[str, ...]]


def _spell(words: list[str], seen: NDArray[np.int64], own: Cleaning) -> tuple[list[Step], Spelled]:
    """Return the sizes after every step, and the tokens of each word after all of them."""
    table: Spelled = [(word,) for word in words]
    steps = [Step("words", int(seen.sum()), len(words))]

    def report(name: str) -> None:
        tokens = int(seen @ np.array([len(row) for row in table], np.int64))
        steps.append(Step(name, tokens, len(set(chain.from_iterable(table)))))

    if own.stop_words:
        table = [() if word in STOP_WORDS else row for word, row in zip(words, table, strict=True)]
        report("stop words removed")
    if own.stem:
        table = _replaced(table, _stems)
        report("stems")
    if own.vocabulary is not None:
        known = read_vocabulary(own.vocabulary)
        table = _replaced(table, lambda parts: split_words(parts, known))
        report("word pieces")
    return steps, table


def _replaced(table: Spelled, replace: Callable[[list[str]], list[list[str]]]) -> Spelled:
    """Replace every distinct part of the words by the parts that it consists of."""
    known = sorted(set(chain.from_iterable(table)))
    parts = dict(zip(known, map(tuple, replace(known)), strict=True))
    return [tuple(chain.from_iterable(parts[part] for part in row)) for row in table]


def _stems(words: list[str]) -> list[list[str]]:
    try:
        import snowballstemmer
    except ImportError as error:
        raise MissingPackageError("stemming", "attnmargin[text]") from error
    return [[stem] for stem in snowballstemmer.stemmer("english").stemWords(words)]


def _numbered(spelled: Spelled) -> tuple[list[str], Spelling]:
    """Number the tokens in order of appearance."""
    place: dict[str, int] = {}
    rows = [[place.setdefault(token, len(place)) for token in tokens] for tokens in spelled]
    start = starts_of([len(row) for row in rows])
    flat = np.fromiter(chain.from_iterable(rows), np.int32, int(start[-1]))
    return list(place), Spelling(flat, start)
