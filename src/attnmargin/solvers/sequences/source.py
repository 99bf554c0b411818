"""Sources of sequences: arrays, folders of arrays, datasets; read a bounded part at a time."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol, final

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from attnmargin.attention.selection import selected_sets
from attnmargin.base.arrays import Array, as_tensor, booleans, floats
from attnmargin.base.errors import InputError
from attnmargin.base.files import check_file
from attnmargin.base.places import sequence_words
from attnmargin.solvers.sequences.chunk import Chunk

# Numbers in a chunk: tokens, and values of rows. Four arrays of this size exist at a time.
MOST_NUMBERS = 1 << 22
_NAMES = ("X", "z", "selection", "mask")
_NEEDS = (
    "a tuple (X, z, selection) or (X, z, selection, mask) of arrays, a folder with X.npy, z.npy "
    "and selection.npy, or a dataset whose items are such tuples, one per sequence"
)
_LARGEST = 1e100


class Source(Protocol):
    """Yields the same sequences whenever it is asked."""

    def chunks(self, most: int) -> Iterator[Chunk]:
        """Yield all sequences in chunks of at most so many numbers, or one sequence."""


def as_source(sequences: Any) -> Source:
    """Recognise arrays, a folder or a dataset."""
    if isinstance(sequences, str | Path):
        return _folder(Path(sequences))
    if isinstance(sequences, tuple):
        return _arrays(*_three_or_four(sequences, "sequences"))
    once = isinstance(sequences, Iterator | Mapping) or hasattr(sequences, "shape")
    if once or not (_listed(sequences) or isinstance(sequences, Iterable)):
        raise InputError("sequences", _kind(sequences), _NEEDS)
    return _Items(sequences)


def _listed(sequences: Any) -> bool:
    return hasattr(sequences, "__len__") and hasattr(sequences, "__getitem__")


def _three_or_four(parts: Any, argument: str) -> Any:
    if not isinstance(parts, tuple | list) or len(parts) not in (3, 4):
        got = f"{len(parts)} parts" if isinstance(parts, tuple | list) else _kind(parts)
        raise InputError(argument, got, "(X, z, selection) or (X, z, selection, mask)")
    return parts


def _kind(value: Any) -> str:
    return f"a {type(value).__name__}"


def _folder(path: Path) -> Source:
    """Open the arrays of a folder, memory-mapped."""
    if not path.is_dir():
        got = f"{path!s:.200}, {'which is a file' if path.exists() else 'which does not exist'}"
        raise InputError("sequences", got, "a folder with X.npy, z.npy and selection.npy")
    names = _NAMES if (path / "mask.npy").exists() else _NAMES[:3]
    return _arrays(*(_mapped(path / f"{name}.npy") for name in names))


def _mapped(path: Path) -> Any:
    check_file(path, "sequences", "a folder with X.npy, z.npy and selection.npy")
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise InputError("sequences", f"{path!s:.200} ({error})", "a plain array") from error


def _arrays(X: Any, z: Any, selection: Any, mask: Any = None) -> Source:
    """Check the shapes of arrays; lists become arrays."""
    X, z, selection = (_sliced(name, x) for name, x in zip(_NAMES, (X, z, selection), strict=False))
    mask = None if mask is None else _sliced("mask", mask)
    if len(X.shape) != 3 or 0 in X.shape:
        raise InputError("X", f"shape {tuple(X.shape)}", "tokens (n, T, d)")
    n, T, d = X.shape
    if len(z.shape) not in (2, 3) or z.shape[0] != n or z.shape[-1] != d or 0 in z.shape:
        raise InputError("z", f"shape {tuple(z.shape)}", f"queries ({n}, {d}) or ({n}, K, {d})")
    queries = tuple(z.shape[:-1])
    if tuple(selection.shape) not in (queries, (*queries, T)):
        needs = f"{queries} whole numbers, or sets {(*queries, T)}"
        raise InputError("selection", f"shape {tuple(selection.shape)}", needs)
    if mask is not None and tuple(mask.shape) not in ((n, T), (*queries, T)):
        needs = f"{(n, T)}" if len(queries) == 1 else f"{(n, T)} or {(*queries, T)}"
        raise InputError("mask", f"shape {tuple(mask.shape)}", needs)
    return _Arrays(X, z, selection, mask)


def _sliced(name: str, value: Any) -> Any:
    """Return what has a shape and can be sliced as it is, anything else as a tensor."""
    return value if hasattr(value, "shape") else as_tensor(name, value)


@final
class _Arrays:
    """Arrays (n, …), or anything that has a shape and yields arrays when sliced."""

    def __init__(self, *parts: Any) -> None:
        self._parts = parts

    def chunks(self, most: int) -> Iterator[Chunk]:
        X, z = self._parts[:2]
        n, T, d = X.shape
        K = z.shape[1] if len(z.shape) == 3 else 1
        step = max(most // (T * max(d, K)), 1)
        for first in range(0, n, step):
            parts = [x if x is None else x[first : first + step] for x in self._parts]
            yield from _cut(_named(first, *parts), most)


@final
class _Items:
    """A dataset, a list, or anything that can be iterated again and again."""

    def __init__(self, items: Any) -> None:
        self._items = items

    def _all(self) -> Iterator[Any]:
        if _listed(self._items):
            return (self._items[i] for i in range(len(self._items)))
        return iter(self._items)

    def chunks(self, most: int) -> Iterator[Chunk]:
        waiting: list[Chunk] = []
        for i, item in enumerate(self._all()):
            one = _item(i, item)
            if waiting and not _fits(waiting, one, most):
                yield from _cut(_together(waiting), most)
                waiting = []
            waiting.append(one)
        if waiting:
            yield from _cut(_together(waiting), most)


def _fits(waiting: list[Chunk], one: Chunk, most: int) -> bool:
    """Decide whether a sequence joins others that wait: the same width and number of queries."""
    last = waiting[-1]
    T = max(max(own.X.shape[1] for own in waiting), one.X.shape[1])
    numbers = (len(waiting) + 1) * T * max(one.X.shape[2], one.z.shape[1])
    same = last.z.shape[1:] == one.z.shape[1:]
    return same and numbers <= most


def _together(parts: list[Chunk]) -> Chunk:
    """Join sequences; shorter ones are padded with tokens that no query sees."""
    if len(parts) == 1:
        return parts[0]
    T = max(own.X.shape[1] for own in parts)
    X = torch.cat([pad(own.X, (0, 0, 0, T - own.X.shape[1])) for own in parts])
    chosen = torch.cat([pad(own.chosen, (0, T - own.X.shape[1])) for own in parts])
    visible = torch.cat([pad(own.visible, (0, T - own.X.shape[1])) for own in parts])
    z = torch.cat([own.z for own in parts])
    return Chunk(parts[0].first, X, z, chosen, visible, parts[0].several)


def _cut(chunk: Chunk, most: int) -> Iterator[Chunk]:
    """Cut a long sequence with many queries."""
    return chunk.by_queries(max(most // (len(chunk.X) * chunk.X.shape[1]), 1))


def _item(i: int, item: Any) -> Chunk:
    """Check one sequence of a dataset."""
    where = sequence_words(i)
    parts = _three_or_four(item, where)
    X, z, selection, mask = (*parts, None)[:4]
    tensors = [as_tensor(name, x) for name, x in zip(_NAMES, (X, z, selection), strict=False)]
    X, z, selection = tensors
    if X.ndim != 2 or 0 in X.shape:
        raise InputError("X", f"shape {tuple(X.shape)} in {where}", "tokens (T, d)")
    T, d = X.shape
    if z.ndim not in (1, 2) or z.shape[-1] != d or 0 in z.shape:
        raise InputError("z", f"shape {tuple(z.shape)} in {where}", f"({d},) or (K, {d})")
    queries = tuple(z.shape[:-1])
    if tuple(selection.shape) not in (queries, (*queries, T)):
        needs = f"shape {queries} or {(*queries, T)}"
        raise InputError("selection", f"shape {tuple(selection.shape)} in {where}", needs)
    if mask is not None:
        mask = as_tensor("mask", mask)
        if tuple(mask.shape) not in ((T,), (*queries, T)):
            needs = f"shape {(T,)}" if not queries else f"shape {(T,)} or {(*queries, T)}"
            raise InputError("mask", f"shape {tuple(mask.shape)} in {where}", needs)
        mask = mask[None]
    return _named(i, X[None], z[None], selection[None], mask)


def _named(first: int, X: Array, z: Array, selection: Array, mask: Array | None) -> Chunk:
    """Check some sequences; an error names the one that is wrong."""
    try:
        return _checked(first, X, z, selection, mask)
    except InputError as error:
        for i in range(len(X) if len(X) > 1 else 0):
            own = slice(i, i + 1)
            _named(first + i, X[own], z[own], selection[own], None if mask is None else mask[own])
        if len(X) > 1 or "sequence" in error.got:
            raise
        got = f"{error.got} in {sequence_words(first)}"
        raise InputError(error.argument, got, error.needs) from error


def _checked(first: int, X: Array, z: Array, selection: Array, mask: Array | None) -> Chunk:
    """Convert some sequences whose shapes are right."""
    X, z = _doubles("X", X), _doubles("z", z)
    T = X.shape[1]
    chosen = selected_sets(as_tensor("selection", selection).cpu(), X, z.shape[:-1], T)
    if z.ndim == 2:
        z, chosen = z.unsqueeze(1), chosen.unsqueeze(1)
    visible = torch.ones((), dtype=torch.bool)
    if mask is not None:
        mask = booleans("mask", as_tensor("mask", mask).cpu(), X)
        visible = mask if mask.ndim == 3 else mask.unsqueeze(1)
        X = X.masked_fill(~visible.any(1).unsqueeze(-1), 0.0)  # hidden tokens may be anything
    _refuse_odd("X", X, first)
    _refuse_odd("z", z, first)
    chunk = Chunk(first, X, z, chosen, visible.expand(chosen.shape), z.shape[1] > 1)
    chunk.representative  # noqa: B018 - checks the selection
    return chunk


def _doubles(name: str, value: Array) -> Tensor:
    return floats(name, value).cpu().to(torch.float64)


def _refuse_odd(name: str, x: Tensor, first: int) -> None:
    """Raise InputError on a number that is not finite or too large to multiply."""
    least, largest = x.aminmax()
    if float(least) >= -_LARGEST and float(largest) <= _LARGEST:
        return
    place = tuple(int(i) for i in (~(x.abs() <= _LARGEST)).nonzero()[0])
    got = f"{float(x[place]):g} in {sequence_words(first + place[0])}"
    raise InputError(name, got, f"finite numbers of at most {_LARGEST:g}")
