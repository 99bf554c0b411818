"""Samples: next-token data with sequences of any length, in plain arrays."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from attnmargin.base.errors import InputError
from attnmargin.base.ragged import Ids, owners_of, part_of, starts_of
from attnmargin.graphs.vocabulary import Vocabulary

# Number of sequences read from a stream at a time.
_CHUNK = 1 << 16


@final
@dataclass(frozen=True, eq=False)
class Samples:
    """n concatenated sequences of token ids, and the token that follows each."""

    tokens: Ids  # (total,)
    start: Ids  # (n + 1,); sequence i is tokens[start[i] : start[i + 1]]
    labels: Ids  # (n,)

    @property
    def n(self) -> int:
        """Number of sequences."""
        return len(self.labels)

    @property
    def last(self) -> Ids:
        """The last token of each sequence, ``(n,)``: the query."""
        return self.tokens[self.start[1:] - 1]

    @property
    def owner(self) -> Ids:
        """The sequence that each token belongs to, ``(total,)``."""
        return owners_of(self.start)

    @property
    def realisable(self) -> NDArray[np.bool_]:
        """Whether the label occurs in its sequence, ``(n,)`` (paper C, Assumption 2)."""
        found = np.zeros(self.n, dtype=bool)
        owner = self.owner
        found[owner[self.tokens == self.labels[owner]]] = True
        return found

    def __getitem__(self, keep: NDArray[Any]) -> "Samples":
        """Select samples by a bool array ``(n,)`` or by index."""
        entries, start = part_of(self.start, keep)
        return Samples(self.tokens[entries], start, self.labels[keep])


def joined(parts: list[Samples]) -> Samples:
    """Concatenate several samples into one."""
    if not parts:
        nothing = np.zeros(0, dtype=np.int64)
        return Samples(nothing, np.zeros(1, dtype=np.int64), nothing)
    lengths = np.concatenate([np.diff(part.start) for part in parts])
    tokens, labels = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("tokens", "labels")
    )
    return Samples(tokens, starts_of(lengths), labels)


def as_samples(sequences: Any, labels: Any, vocabulary: Vocabulary) -> Samples:
    """Read all samples at once, from an array ``(n, T)`` or from sequences of any length."""
    return joined(list(chunks(sequences, labels, vocabulary)))


def chunks(sequences: Any, labels: Any, vocabulary: Vocabulary) -> Iterator[Samples]:
    """Yield samples in chunks of bounded size, from arrays, lists or streams."""
    if isinstance(sequences, np.ndarray | Tensor) and not vocabulary.by_name:
        yield from _rows(_integers("sequences", sequences), labels, vocabulary)
        return
    if isinstance(sequences, str) or not isinstance(sequences, Iterable):
        got = f"a {type(sequences).__name__}"
        raise InputError("sequences", got, "sequences of tokens, one after the other")
    if isinstance(sequences, np.ndarray | Tensor):
        sequences = list(_integers("sequences", sequences))
    given = labels.tolist() if isinstance(labels, np.ndarray | Tensor) else labels
    if not isinstance(given, Iterable) or isinstance(given, str | set | dict):
        raise InputError("labels", f"a {type(labels).__name__}", "one label per sequence")
    pairs, seen = _paired(sequences, given), 0
    while part := list(islice(pairs, _CHUNK)):
        yield _chunk(part, vocabulary, seen)
        seen += len(part)


def _paired(sequences: Iterable[Any], labels: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
    """Pair sequences with labels; raise InputError if one of the two ends first."""
    end, count = object(), 0
    left, right = iter(sequences), iter(labels)
    while True:
        sequence, label = next(left, end), next(right, end)
        if sequence is end and label is end:
            return
        if sequence is end or label is end:
            short, long = ("labels", "sequences") if label is end else ("sequences", "labels")
            raise InputError(short, f"{count}, and more {long}", "one label per sequence")
        count += 1
        yield sequence, label


def _chunk(pairs: list[tuple[Any, Any]], vocabulary: Vocabulary, seen: int) -> Samples:
    rows = [_tokens(sequence, seen + i) for i, (sequence, _) in enumerate(pairs)]
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    if not lengths.all():
        got = f"no token in sequence {seen + int(lengths.argmin())}"
        raise InputError("sequences", got, "at least one token per sequence")
    tokens = vocabulary.ids(chain.from_iterable(rows))
    own = vocabulary.ids([label for _, label in pairs], "labels")
    return Samples(tokens, starts_of(lengths), own)


def _tokens(sequence: Any, i: int) -> Any:
    """Return a sequence as an object with a length."""
    if isinstance(sequence, Tensor | np.ndarray):
        if sequence.ndim != 1:
            got = f"shape {tuple(sequence.shape)}"
            raise InputError(f"sequences[{i}]", got, "one row of tokens")
        return _integers(f"sequences[{i}]", sequence).tolist()
    if isinstance(sequence, str) or not isinstance(sequence, list | tuple):
        got = f"a {type(sequence).__name__} as sequence {i}"
        raise InputError("sequences", got, "a list of tokens per sequence")
    return sequence


def _integers(name: str, value: Any) -> NDArray[Any]:
    if isinstance(value, np.ma.MaskedArray) or getattr(value, "is_sparse", False):
        raise InputError(name, f"a {type(value).__name__}", "a plain array")
    array = value.cpu().numpy() if isinstance(value, Tensor) else value
    if array.dtype.kind not in "iu":
        raise InputError(name, f"{array.dtype} entries", "whole numbers")
    return array


def _rows(sequences: NDArray[Any], labels: Any, vocabulary: Vocabulary) -> Iterator[Samples]:
    """Yield the samples of an array ``(n, T)``."""
    if sequences.ndim != 2 or 0 in sequences.shape:
        raise InputError("sequences", f"shape {sequences.shape}", "token ids (n, T)")
    n, T = sequences.shape
    given = labels.cpu().numpy() if isinstance(labels, Tensor) else np.asarray(labels)
    if given.dtype == object:
        raise InputError("labels", "a list of odd things", "whole numbers")
    if given.shape != (n,):
        raise InputError("labels", f"shape {given.shape}", f"one label per sequence, ({n},)")
    step = max(1, _CHUNK * 16 // T)
    for i in range(0, n, step):
        part = vocabulary.check(sequences[i : i + step].reshape(-1))
        own = _integers("labels", given[i : i + step])
        yield Samples(part, starts_of(np.full(len(own), T)), vocabulary.check(own, "labels"))
