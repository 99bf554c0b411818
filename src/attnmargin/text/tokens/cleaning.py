"""From texts to tokens: markup, stop words, stems, word pieces, rare tokens; each step optional."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from html import unescape
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from attnmargin.base.checks import check_whole
from attnmargin.base.errors import MissingPackageError
from attnmargin.base.ragged import part_of, starts_of
from attnmargin.text.corpus import Corpus
from attnmargin.text.pieces import Pieces, read_vocabulary, split_words, word_of

_TAG = re.compile(r"</?[A-Za-z!][^<>]*>")

_STOPPED = """a about above after again against ain't all am an and any are aren't as at be
because been before being below between both but by can can't cannot could couldn't did didn't do
does doesn't doing don't down during each few for from further had hadn't has hasn't have haven't
having he he'd he'll he's her here here's hers herself him himself his how how's i i'd i'll i'm
i've if in into is isn't it it'd it'll it's its itself just let's ll me might mightn't more most
must mustn't my myself needn't no nor not now of off on once only or other ought our ours
ourselves out over own re s same shan't she she'd she'll she's should shouldn't so some such t
than that that'll that's the their theirs them themselves then there there's these they they'd
they'll they're they've this those through to too under until up us ve very was wasn't we we'd
we'll we're we've were weren't what what's when when's where where's which while who who's whom
why why's will with won't would wouldn't y you you'd you'll you're you've your yours yourself
yourselves"""
STOP_WORDS = frozenset(_STOPPED.split())


@final
@dataclass(frozen=True)
class Cleaning:
    """The steps to apply, in this order."""

    markup: bool = True  # remove tags such as <br />, read &amp; as &
    stop_words: bool = True  # remove words such as "the"
    stem: bool = True  # reduce "loved" and "loving" to "love"
    vocabulary: str | Path | None = None  # word pieces of this file; default: whole words
    least: int = 50  # remove tokens that occur less often

    def __post_init__(self) -> None:
        check_whole(least=self.least)


class Step(NamedTuple):
    """The sizes after a cleaning step."""

    step: str
    tokens: int
    vocabulary: int


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
    own = cleaning or Cleaning()
    words, ids, start = _read_words(corpus.texts, own.markup)
    steps = [Step("words", len(ids), len(words))]
    names, spell = _spell(words, own)
    for name, kept in names:
        seen = np.bincount(ids, minlength=len(words)) * [len(kept(word)) for word in words]
        steps.append(Step(name, int(seen.sum()), len({t for word in words for t in kept(word)})))
    vocabulary, ids, start = _expand([spell(word) for word in words], ids, start)
    if own.least > 1:
        vocabulary, ids, start = _purge(vocabulary, ids, start, own.least)
        steps.append(Step(f"seen at least {own.least} times", len(ids), len(vocabulary)))
    return Pieces(ids, start, corpus.labels, vocabulary), steps


def _read_words(texts: list[str], markup: bool) -> tuple[list[str], NDArray[Any], NDArray[Any]]:
    """Find the distinct words, and all words of all texts as indices into them."""
    place: dict[str, int] = {}
    number = place.setdefault
    parts = []
    for text in texts:
        plain = unescape(_TAG.sub(" ", text)) if markup else text
        word = word_of(r"[^\W_]", plain)
        found = re.findall(f"{word}(?:'{word})*", plain.lower().replace("’", "'"))
        row = [number(word, len(place)) for word in found]
        parts.append(np.fromiter(row, np.int32, len(row)))
    start = starts_of([len(part) for part in parts])
    ids = np.concatenate(parts) if parts else np.empty(0, np.int32)
    return list(place), ids, start


Spelling = Callable[[str], tuple[str, ...]]


def _spell(words: list[str], own: Cleaning) -> tuple[list[tuple[str, Spelling]], Spelling]:
    """Compute the tokens of each word after each named step, and after all steps."""
    table: dict[str, tuple[str, ...]] = {word: (word,) for word in words}
    named: list[tuple[str, Spelling]] = []
    if own.stop_words:
        table = {w: () if w in STOP_WORDS else t for w, t in table.items()}
        named.append(("stop words removed", table.__getitem__))
    if own.stem:
        stem = _stemmer()
        table = {w: tuple(stem(part) for part in t) for w, t in table.items()}
        named.append(("stems", table.__getitem__))
    if own.vocabulary is not None:
        known = sorted({part for t in table.values() for part in t})
        pieces = dict(zip(known, split_words(known, read_vocabulary(own.vocabulary)), strict=True))
        table = {
            w: tuple(chain.from_iterable(pieces[part] for part in t)) for w, t in table.items()
        }
        named.append(("word pieces", table.__getitem__))
    return named, table.__getitem__


def _stemmer() -> Callable[[str], str]:
    try:
        import snowballstemmer
    except ImportError as error:
        raise MissingPackageError("stemming", "attnmargin[text]") from error
    stem: Callable[[str], str] = snowballstemmer.stemmer("english").stemWord
    return stem


def _expand(
    spelled: list[tuple[str, ...]], ids: NDArray[Any], start: NDArray[Any]
) -> tuple[list[str], NDArray[Any], NDArray[Any]]:
    """Replace every word by its tokens."""
    place: dict[str, int] = {}
    rows = [[place.setdefault(token, len(place)) for token in tokens] for tokens in spelled]
    first = starts_of([len(row) for row in rows])
    flat = np.fromiter(chain.from_iterable(rows), np.int32, int(first[-1]))
    entries, ends = part_of(first, ids)
    return list(place), flat[entries], ends[start]


def _purge(
    vocabulary: list[str], ids: NDArray[Any], start: NDArray[Any], least: int
) -> tuple[list[str], NDArray[Any], NDArray[Any]]:
    """Remove tokens that occur fewer than ``least`` times."""
    count = np.bincount(ids, minlength=len(vocabulary))
    keep = count >= least
    number = np.cumsum(keep) - 1
    inside = keep[ids]
    ends = starts_of(inside)
    kept = [word for word, good in zip(vocabulary, keep, strict=True) if good]
    return kept, number[ids[inside]].astype(np.int32), ends[start]
