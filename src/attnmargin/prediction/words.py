"""Names for the tokens and sequences of an instance."""

from dataclasses import dataclass
from typing import Any, final

import torch
from torch import Tensor

from attnmargin.base.errors import InputError
from attnmargin.base.words import counted
from attnmargin.data.attention_data import AttentionData


@final
@dataclass(frozen=True)
class Words:
    """Names of tokens and titles of sequences."""

    names: list[list[str]]
    titles: list[str]
    visible: Tensor  # bool (n, T)
    spoken: bool  # whether the names are words and not numbers


def name_tokens(
    data: AttentionData, names: list[list[str]] | None = None, titles: list[str] | None = None
) -> Words:
    """Name the tokens of one instance as given, or "token 3" of "sequence 1"."""
    if data.batch_shape or data.z.ndim == data.X.ndim:
        raise InputError("data", repr(data), "one instance with one query per sequence")
    visible = torch.ones(data.n, data.T, dtype=torch.bool)
    if data.mask is not None:
        visible = data.mask.reshape(data.n, data.T)
    if names is not None and [len(row) for row in names] != [data.T] * data.n:
        got = f"{counted(len(names), 'row')} of {sorted({len(row) for row in names})} names"
        raise InputError("words", got, f"{data.n} rows of {data.T} names")
    numbers = [[f"token {t}" for t in range(data.T)] for _ in range(data.n)]
    plain = [f"sequence {i}" for i in range(data.n)]
    return Words(names or numbers, titles or plain, visible, names is not None)


def token_numbers(selection: Tensor) -> list[Any]:
    """List the numbers of the selected tokens; where sets are selected, a list of each set."""
    if selection.dtype != torch.bool:
        numbers: list[Any] = selection.tolist()
        return numbers
    if selection.ndim == 1:
        return selection.nonzero().flatten().tolist()
    return [token_numbers(part) for part in selection]


def listing(items: list[str], most: int = 8) -> str:
    """Join items for a sentence: "a, b and c"."""
    if len(items) > most:
        items = [*items[: most - 1], f"{len(items) - most + 1} more"]
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"


def selected_words(words: Words, chosen: Tensor) -> list[str]:
    """Name the selected tokens of every sequence, in quotes where they are words."""
    rows = []
    for i, row in enumerate(chosen):
        found = [words.names[i][t] for t in row.nonzero().flatten().tolist()]
        text = " + ".join(f"“{name}”" if words.spoken else name for name in found)
        rows.append(text if words.spoken else f"{text} of {words.titles[i]}")
    return rows
