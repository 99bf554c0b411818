"""Vocabulary: the names of the tokens of next-token data."""

from collections.abc import Hashable, Iterable
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from attnmargin.base.errors import InputError

# Bits per id: three ids fit into one 64-bit integer.
BITS = 21
LARGEST = 1 << BITS


def _whole(token: Any) -> bool:
    return isinstance(token, int | np.integer) and not isinstance(token, bool)


def _named(tokens: Any) -> list[Hashable]:
    """Return the names as a list; raise InputError unless they are distinct."""
    if isinstance(tokens, str) or not isinstance(tokens, Iterable):
        raise InputError("vocabulary", repr(tokens), "a size, or a list of names")
    names = list(tokens)
    for name in names:
        _check_name(name, "vocabulary")
    if len(set(names)) < len(names):
        twice = next(name for k, name in enumerate(names) if name in names[:k])
        raise InputError("vocabulary", f"the name {twice!r} twice", "different names")
    return names


def _check_name(name: Any, argument: str) -> None:
    """Raise InputError unless the name is a word, a whole number or a tuple."""
    if not isinstance(name, str | tuple) and not _whole(name):
        raise InputError(argument, f"the token {name!r:.60}", "words or whole numbers")


@final
class Vocabulary:
    """K tokens with ids 0, …, K − 1: plain numbers, or names to look up.

    If all names are words, whole numbers are ids. If some name is a number, numbers are names.

    Args:
        tokens: K, a list of K distinct names, or None to number tokens in order of appearance.

    Example:
        >>> from attnmargin.graphs import Vocabulary
        >>> words = Vocabulary(["the", "cat", "sat"])
        >>> words.ids(["cat", "the"]).tolist(), words.ids([2]).tolist(), words.name(2)
        ([1, 0], [2], 'sat')
    """

    def __init__(self, tokens: Any = None) -> None:
        self.names: list[Hashable] | None = None
        self.size, self.grows = 0, tokens is None
        if isinstance(tokens, np.ndarray | Tensor) and tokens.ndim == 0:
            tokens = tokens.item()
        if isinstance(tokens, Vocabulary):
            self.names, self.size = tokens.names, tokens.size
        elif _whole(tokens):
            self.size = int(tokens)
        elif tokens is not None:
            self.names = _named(tokens)
            self.size = len(self.names)
        if not self.grows and not 0 < self.size < LARGEST:
            raise InputError("vocabulary", f"{self.size} tokens", f"1 to {LARGEST - 1} tokens")
        self._index = {name: k for k, name in enumerate(self.names or ())}
        self._numbers = any(map(_whole, self.names or ()))

    def __len__(self) -> int:
        return self.size

    @property
    def by_name(self) -> bool:
        """Whether whole numbers are names."""
        return self.names is not None and (self.grows or self._numbers)

    def close(self) -> None:
        """Accept no more names."""
        self.grows = False
        self._numbers = any(map(_whole, self.names or ()))

    def name(self, token: int) -> str:
        """Return the name of a token."""
        return str(token) if self.names is None else str(self.names[token])

    def find(self, token: Any) -> int | None:
        """Return the id of a token, or None if it is unknown."""
        try:
            return int(self.ids([token])[0])
        except InputError:
            return None

    def ids(self, tokens: Any, argument: str = "sequences") -> NDArray[np.int64]:
        """Convert names or ids to ids; errors blame ``argument``."""
        listed = list(tokens)
        if not self.by_name and all(map(_whole, listed)):
            try:
                return self.check(np.asarray(listed, dtype=np.int64), argument)
            except OverflowError:
                largest = f"the token id {max(listed, key=abs):.0e}"
                raise InputError(argument, largest, f"ids below {LARGEST}") from None
        return self._look_up(listed, argument)

    def _look_up(self, listed: list[Any], argument: str) -> NDArray[np.int64]:
        if self.names is None and self.grows and self.size == 0:
            self.names = []
        if self.names is None:
            wrong = next(token for token in listed if not _whole(token))
            raise InputError(argument, f"the token {wrong!r:.60}", f"ids from 0 to {self.size - 1}")
        try:
            if self.grows:
                self._grow(listed, argument)
            return np.fromiter((self._index[t] for t in listed), np.int64, len(listed))
        except KeyError as error:
            got = f"the token {error.args[0]!r:.60}"
            raise InputError(argument, got, "tokens of the vocabulary") from None
        except TypeError:
            raise InputError(argument, "a list as a token", "words or whole numbers") from None

    def _grow(self, listed: list[Hashable], argument: str) -> None:
        """Number unknown tokens in order of appearance."""
        assert self.names is not None
        for token in dict.fromkeys(listed):
            if token not in self._index:
                _check_name(token, argument)
                self._index[token] = len(self.names)
                self.names.append(token)
        self.size = len(self.names)
        if self.size >= LARGEST:
            raise InputError(argument, f"{self.size} tokens", f"at most {LARGEST - 1} tokens")

    def check(self, ids: NDArray[Any], argument: str = "sequences") -> NDArray[np.int64]:
        """Return the ids; raise InputError if one is outside the vocabulary."""
        if ids.size == 0:
            return ids.astype(np.int64)
        low, high = int(ids.min()), int(ids.max())
        if self.grows and self.names is None:
            self.size = min(max(self.size, high + 1), LARGEST)
        if low < 0 or high >= self.size:
            got = f"the token id {low if low < 0 else high}"
            needs = f"ids from 0 to {self.size - 1}" if not self.grows else f"ids below {LARGEST}"
            raise InputError(argument, got, needs)
        return ids.astype(np.int64)
