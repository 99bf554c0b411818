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

from attnmargin.base.kernels import jit, kernel
from attnmargin.base.progress import Progress
from attnmargin.base.ragged import starts_of
from attnmargin.text.pieces import word_of

_TAG = re.compile(r"</?[A-Za-z!][^<>]*>")
# Stands for a tag: it separates words, and phrases as well.
_BREAK = "|"
# Characters and texts that are split at a time.
_CHARACTERS, _TEXTS = 1 << 22, 1 << 16
_THREADS = 2
_APOSTROPHE, _LESS, _MORE, _SLASH, _EXCLAMATION = (ord(c) for c in "'<>/!")


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
    start = starts_of([len(text) for text in texts])
    characters = np.frombuffer(b"".join(texts), np.uint8)
    letter, blank = _tables()
    most = len(characters) // 2 + len(texts)
    ids, close = np.empty(most, np.int32), np.empty(most, np.bool_)
    ends, stored = np.empty(len(texts), np.int64), np.empty(len(characters), np.uint8)
    spelled = _split(characters, start, letter, blank, markup, ids, close, ends, stored)
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


@jit
def _after_tag(text: Any, i: int, end: int) -> int:
    """Return the place after the tag that begins at i, or i if there is none."""
    j = i + 1
    if j < end and text[j] == _SLASH:
        j += 1
    if j >= end:
        return i
    c = text[j]
    if not (c == _EXCLAMATION or 65 <= c <= 90 or 97 <= c <= 122):
        return i
    j += 1
    while j < end and text[j] != _LESS and text[j] != _MORE:
        j += 1
    return j + 1 if j < end and text[j] == _MORE else i


@jit
def _slot_of(table: Any, hashes: Any, bounds: Any, stored: Any, h: int, a: int, b: int) -> int:
    """Find the slot of the word ``stored[a:b]`` with a hash, or the free one where it belongs."""
    mask = table.size - 1
    slot = h & mask
    while table[slot] >= 0:
        k = table[slot]
        if hashes[k] == h and bounds[k + 1] - bounds[k] == b - a:
            same = True
            for i in range(b - a):
                if stored[bounds[k] + i] != stored[a + i]:
                    same = False
                    break
            if same:
                return slot
        slot = (slot + 1) & mask
    return slot


@jit
def _grown(table: Any, hashes: Any, count: int) -> Any:
    """Return a table of twice the size with the same words."""
    larger = np.full(2 * table.size, -1, np.int32)
    for k in range(count):
        slot = hashes[k] & (larger.size - 1)
        while larger[slot] >= 0:
            slot = (slot + 1) & (larger.size - 1)
        larger[slot] = k
    return larger


@kernel("splitting of texts", 3)
def _split(
    text: Any, start: Any, letter: Any, blank: Any, markup: bool,
    ids: Any, close: Any, ends: Any, stored: Any,
) -> Any:  # fmt: skip
    """Fill in word numbers, closeness, the ends of texts and the words; return their bounds."""
    table = np.full(1 << 12, -1, np.int32)
    hashes, bounds = np.empty(1 << 11, np.int64), np.zeros((1 << 11) + 1, np.int64)
    count, total = 0, 0
    for t in range(start.size - 1):
        i, end, near = start[t], start[t + 1], False
        while i < end:
            c = text[i]
            if letter[c] == 0:
                after = _after_tag(text, i, end) if markup and c == _LESS else i
                near = near and after == i and blank[c]
                i = max(after, i + 1)
                continue
            if count == hashes.size:
                table = _grown(table, hashes, count)
                hashes = np.append(hashes, np.empty_like(hashes))
                bounds = np.append(bounds, np.empty_like(hashes[:count]))
            a = bounds[count]
            b, h = a, 5381
            while i < end:
                c = letter[text[i]]
                if c == 0:
                    inner = text[i] == _APOSTROPHE and i + 1 < end and letter[text[i + 1]] != 0
                    if not inner:
                        break
                    c = _APOSTROPHE
                stored[b] = c
                h = (h * 33 + c) & 0x7FFFFFFFFFFF
                b += 1
                i += 1
            h ^= h >> 15
            slot = _slot_of(table, hashes, bounds, stored, h, a, b)
            if table[slot] < 0:
                table[slot], hashes[count], bounds[count + 1] = count, h, b
                count += 1
            ids[total], close[total] = table[slot], near
            total += 1
            near = True
        ends[t] = total
    return bounds[: count + 1].copy()
