"""The words of many texts, found once, as numbers."""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from html import unescape
from itertools import groupby, pairwise
from typing import Any, NamedTuple
from unicodedata import category

import numpy as np
from numpy.typing import NDArray

from attnmargin.base.progress import Progress
from attnmargin.base.ragged import starts_of
from attnmargin.text.pieces import word_of

_TAG = re.compile(r"</?[A-Za-z!][^<>]*>")
# Stands for a tag: it separates words, and phrases as well.
_BREAK = "|"
# Characters and texts that are split at a time.
_CHARACTERS, _TEXTS = 1 << 24, 1 << 16
_THREADS = 2


class Words(NamedTuple):
    """All words of all texts, as indices into the distinct ones in order of appearance."""

    vocabulary: list[str]
    ids: NDArray[np.int32]  # (total,)
    start: NDArray[np.int64]  # (n + 1,)
    close: NDArray[np.bool_]  # (total,): only blanks and hyphens separate it from the word before


def split_texts(texts: list[str], markup: bool, progress: Progress | None = None) -> Words:
    """Find the words of texts: letters with their marks, and digits, in lower case.

    Punctuation separates words; apostrophes between letters do not.

    Args:
        markup: remove tags such as ``<br />``, and read ``&amp;`` as ``&``.
        progress: called with the number of texts done.

    Example:
        >>> from attnmargin.text.tokens.splitting import split_texts
        >>> found = split_texts(["It's good, <b>isn’t</b> it?", "Good!"], markup=True)
        >>> found.vocabulary, found.ids.tolist(), found.start.tolist()
        (["it's", 'good', "isn't", 'it'], [0, 1, 2, 3, 1], [0, 4, 5])
        >>> found.close.tolist()
        [False, True, False, False, False]
    """
    place: dict[str, int] = {}
    ids, close, lengths = [np.empty(0, np.int32)], [np.empty(0, bool)], [np.empty(0, np.int64)]
    done = 0
    with ThreadPoolExecutor(_THREADS) as pool:
        for words, own, near, sizes in pool.map(partial(_split_run, markup), _runs(texts, markup)):
            number = np.array([place.setdefault(word, len(place)) for word in words], np.int32)
            ids.append(number[own] if len(own) else own)
            close.append(near)
            lengths.append(sizes)
            done += len(sizes)
            if progress is not None:
                progress(done, len(texts))
    start = starts_of(np.concatenate(lengths))
    return Words(list(place), np.concatenate(ids), start, np.concatenate(close))


Run = tuple[list[str], NDArray[np.int32], NDArray[np.bool_], NDArray[np.int64]]


def _runs(texts: list[str], markup: bool) -> Iterator[tuple[list[Any], bool]]:
    """Group neighbouring texts: those in Latin-1, as bytes, and all others."""
    prepared = (_prepared(text, markup) for text in texts)
    for latin, group in groupby(prepared, lambda own: isinstance(own, bytes)):
        part: list[Any] = []
        size = 0
        for own in group:
            part.append(own)
            size += len(own)
            if size >= _CHARACTERS or len(part) >= _TEXTS:
                yield part, latin
                part, size = [], 0
        if part:
            yield part, latin


def _prepared(text: str, markup: bool) -> bytes | str:
    """Return a text in Latin-1, if its words are; else the text without markup."""
    if markup and "&" in text:
        text = unescape(_TAG.sub(_BREAK, text)).replace("<", _BREAK)
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        outside = {c: _stand_in(c) for c in set(text) if c > "ÿ"}
        if all(outside.values()):
            for c, other in outside.items():
                text = text.replace(c, other)
            return text.encode("latin-1")
        return _TAG.sub(_BREAK, text) if markup else text


@cache
def _stand_in(c: str) -> str:
    """Return a character of Latin-1 that separates words as ``c`` does; "" if ``c`` is of words."""
    if c == "’":
        return "'"
    if c.isalnum() or category(c).startswith("M") or c.lower() != c:
        return ""
    return " " if c.isspace() else _BREAK


def _split_run(markup: bool, run: tuple[list[Any], bool]) -> Run:
    texts, latin = run
    return _split_latin(texts, markup) if latin else _split_any(texts)


def _split_any(texts: list[str]) -> Run:
    """Split texts in any script."""
    place: dict[str, int] = {}
    ids: list[int] = []
    close: list[bool] = []
    lengths = []
    for text in texts:
        plain = text.lower().replace("’", "'")
        word, before, end = word_of(r"[^\W_]", text), len(ids), 0
        for found in re.finditer(f"{word}(?:'{word})*", plain):
            gap = plain[end : found.start()]
            close.append(end > 0 and not gap.strip().strip("-_"))
            ids.append(place.setdefault(found.group(), len(place)))
            end = found.end()
        lengths.append(len(ids) - before)
    return list(place), np.array(ids, np.int32), np.array(close, bool), np.array(lengths)


def _split_latin(texts: list[bytes], markup: bool) -> Run:
    """Split texts in Latin-1, with a table of its letters."""
    from attnmargin.text.tokens.splitting_kernel import split

    start = starts_of([len(text) for text in texts])
    characters = np.frombuffer(b"".join(texts), np.uint8)
    letter, blank = _tables()
    most = len(characters) // 2 + len(texts)
    ids, close = np.empty(most, np.int32), np.empty(most, np.bool_)
    ends, stored = np.empty(len(texts), np.int64), np.empty(len(characters), np.uint8)
    spelled = split(characters, start, letter, blank, markup, ids, close, ends, stored)
    total = int(ends[-1])
    written = stored[: spelled[-1]].tobytes().decode("latin-1")
    bounds = spelled.tolist()
    words = [written[a:b] for a, b in pairwise(bounds)]
    return words, ids[:total], close[:total], np.diff(ends, prepend=0)


@cache
def _tables() -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """Return the lower case of every letter and digit of Latin-1, else zero; and what is blank."""
    characters = [chr(code) for code in range(256)]
    letter = [ord(c.lower()) if re.match(r"[^\W_]", c) else 0 for c in characters]
    blank = [c.isspace() or c in "-_" for c in characters]
    return np.array(letter, np.uint8), np.array(blank, np.bool_)
