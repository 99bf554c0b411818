"""Splitting of texts in Latin-1, compiled: this module imports the compiler."""

from typing import Any

import numpy as np

from attnmargin.base.kernels import jit, kernel

_APOSTROPHE, _LESS, _MORE, _SLASH, _EXCLAMATION = (ord(c) for c in "'<>/!")


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
def split(
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
                c = int(letter[text[i]])
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
