"""Vocabulary: what the tokens of next-token data are called."""

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from attnmargin.errors import InputError

# Ids have so many bits, so that three of them fit into one number of 64 bits.
BITS = 21
LARGEST = 1 << BITS


@final
class Vocabulary:
    """K tokens with ids 0, …, K − 1: plain numbers, or names that are looked up.

    Args:
        tokens: K, a list of K different names, or None to number tokens as they come.

    Example:
        >>> from attnmargin.graphs import Vocabulary
        >>> words = Vocabulary(["the", "cat", "sat"])
        >>> words.ids(["cat", "the"]).tolist(), words.name(2)
        ([1, 0], 'sat')
    """

    def __init__(self, tokens: "int | Sequence[Hashable] | Vocabulary | None" = None) -> None:
        self.names: list[Hashable] | None = None
        self.size, self.grows = 0, tokens is None
        if isinstance(tokens, Vocabulary):
            self.names, self.size = tokens.names, tokens.size
        elif isinstance(tokens, int | np.integer) and not isinstance(tokens, bool):
            self.size = int(tokens)
        elif tokens is not None:
            if isinstance(tokens, str) or not isinstance(tokens, Iterable):
                raise InputError("vocabulary", repr(tokens), "a size, or a list of names")
            self.names = list(tokens)
            self.size = len(self.names)
        self._index: dict[Hashable, int] = {}
        if self.names is not None:
            self._index = {name: k for k, name in enumerate(self.names)}
            if len(self._index) < self.size:
                twice = next(name for k, name in enumerate(self.names) if self._index[name] != k)
                raise InputError("vocabulary", f"the name {twice!r} twice", "different names")
        if not self.grows and not 0 < self.size < LARGEST:
            raise InputError("vocabulary", f"{self.size} tokens", f"1 to {LARGEST - 1} tokens")

    def __len__(self) -> int:
        return self.size

    def name(self, token: int) -> str:
        """What a token is called."""
        return str(token) if self.names is None else str(self.names[token])

    def ids(self, tokens: Any) -> NDArray[np.int64]:
        """Ids of tokens, given as names or as ids."""
        listed = list(tokens)
        if listed and all(isinstance(token, int | np.integer) for token in listed):
            known = self.names is not None and all(token in self._index for token in listed)
            if not known and (self.names is None or not self.grows):
                return self.check(np.asarray(listed, dtype=np.int64))
        return self._look_up(listed)

    def _look_up(self, listed: list[Hashable]) -> NDArray[np.int64]:
        if self.names is None and self.grows and self.size == 0:
            self.names = []
        if self.names is None:
            wrong = next((t for t in listed if not isinstance(t, int)), None)
            raise InputError("sequences", f"the token {wrong!r}", f"ids from 0 to {self.size - 1}")
        if self.grows:
            self._grow(listed)
        try:
            return np.fromiter((self._index[t] for t in listed), np.int64, len(listed))
        except KeyError as error:
            got = f"the token {error.args[0]!r}"
            raise InputError("sequences", got, "tokens of the vocabulary") from None

    def _grow(self, listed: list[Hashable]) -> None:
        """Number the tokens that are new, in the order in which they come."""
        assert self.names is not None
        for token in dict.fromkeys(listed):
            if token not in self._index:
                self._index[token] = len(self.names)
                self.names.append(token)
        self.size = len(self.names)
        if self.size >= LARGEST:
            raise InputError("sequences", f"{self.size} tokens", f"at most {LARGEST - 1} tokens")

    def check(self, ids: NDArray[Any]) -> NDArray[np.int64]:
        """Ids themselves, refused if one is outside of the vocabulary."""
        if ids.size == 0:
            return ids.astype(np.int64)
        low, high = int(ids.min()), int(ids.max())
        if self.grows and self.names is None:
            self.size = max(self.size, high + 1)
        if low < 0 or high >= min(self.size, LARGEST):
            got = f"the token id {low if low < 0 else high}"
            raise InputError("sequences", got, f"ids from 0 to {min(self.size, LARGEST) - 1}")
        return ids.astype(np.int64)
