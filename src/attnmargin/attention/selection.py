"""Selections, checked: one token per query, or a set of tokens per query."""

from collections.abc import Sequence

import torch
from torch import Tensor

from attnmargin.base.arrays import Array, as_tensor, booleans, integers
from attnmargin.base.errors import InputError
from attnmargin.data.attention_data import AttentionData


def check_selection(
    data: AttentionData, selection: Array, batch: Sequence[int] | None = None
) -> Tensor:
    """Check one token per query of some data, see :func:`selected_tokens`."""
    return selected_tokens(selection, data.X, data.z.shape[data.X.ndim - 3 : -1], data.T, batch)


def selected_tokens(
    selection: Array,
    like: Tensor,
    queries: Sequence[int],
    T: int,
    batch: Sequence[int] | None = None,
    argument: str = "selection",
) -> Tensor:
    """Check one token per query, int64 ``(*S, *queries)``, or raise InputError.

    Args:
        like: a tensor on the wanted device.
        queries: ``(n,)``, or ``(n, K)`` with several queries.
        T: number of tokens.
        batch: the batch shape that ``*S`` is spread over; any ``*S`` without it.
    """
    index = integers(argument, selection, like)
    queries = tuple(queries)
    full = queries if batch is None else (*batch, *queries)
    own, inner = index.shape[: -len(queries)], index.shape[index.ndim - len(queries) :]
    if inner != queries or (batch is not None and not _spreads(own, batch)):
        raise InputError(argument, f"shape {tuple(index.shape)}", f"one token per query, {full}")
    if not bool(((index >= 0) & (index < T)).all()):
        got = f"tokens from {int(index.min())} to {int(index.max())}"
        raise InputError(argument, got, f"tokens from 0 to {T - 1}")
    return index if batch is None else index.expand(full)


def selected_sets(
    selection: Array, like: Tensor, queries: Sequence[int], T: int, argument: str = "selection"
) -> Tensor:
    """Check a selection by index or by set, and return it as sets, bool ``(*S, *queries, T)``."""
    raw = as_tensor(argument, selection)
    if raw.dtype != torch.bool:
        index = selected_tokens(raw, like, queries, T, argument=argument)
        return torch.nn.functional.one_hot(index, T).bool()
    chosen, wanted = booleans(argument, raw, like), (*queries, T)
    if chosen.shape[-len(wanted) :] != wanted:
        raise InputError(argument, f"shape {tuple(chosen.shape)}", f"a set per query, {wanted}")
    return chosen


def _spreads(own: Sequence[int], batch: Sequence[int]) -> bool:
    """Whether a shape can be expanded to the batch."""
    if len(own) > len(batch):
        return False
    last = list(batch)[len(batch) - len(own) :]
    return all(size in (1, wanted) for size, wanted in zip(own, last, strict=True))
