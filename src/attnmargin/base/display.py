"""Summaries of results: a few lines in the terminal, a small table in notebooks."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import numpy as np
from torch import Tensor

_MOST_CHARACTERS = 60


class Summarised(ABC):
    """A result that prints as a few named lines.

    A dataclass needs ``repr=False``, or its generated ``__repr__`` wins.
    """

    @abstractmethod
    def summary(self) -> dict[str, str]:
        """Return what is worth seeing at a glance, by name."""

    def __repr__(self) -> str:
        lines = self.summary()
        width = max(map(len, lines), default=0)
        return "\n".join([type(self).__name__, *(f"  {k:<{width}}  {v}" for k, v in lines.items())])

    def _repr_html_(self) -> str:
        rows = "".join(
            f'<tr><th style="text-align:left">{escape(k)}</th>'
            f'<td style="text-align:left">{escape(v)}</td></tr>'
            for k, v in self.summary().items()
        )
        return f"<table><caption>{type(self).__name__}</caption>{rows}</table>"


def shape_words(shape: Sequence[int]) -> str:
    """Write the shape of a batch.

    >>> shape_words(()), shape_words((100,)), shape_words((3, 4))
    ('one', '100', '3 × 4')
    """
    return " × ".join(map(str, shape)) or "one"


def tally_words(values: Any) -> str:
    """Count words, the most frequent first; a single word stands for itself.

    >>> tally_words(np.array(["optimal", "optimal", "infeasible"])), tally_words("optimal")
    ('2 optimal, 1 infeasible', 'optimal')
    """
    flat = np.asarray(values, dtype=object)
    if flat.ndim == 0:
        return str(flat.item())
    found = Counter(map(str, flat.flatten())).most_common()
    return ", ".join(f"{count} {word}" for word, count in found) or "none"


def range_words(x: Tensor) -> str:
    """Write one number, or the range of several, leaving out NaN.

    >>> import torch
    >>> range_words(torch.tensor(0.5)), range_words(torch.tensor([0.5, 2.0, torch.nan]))
    ('0.5', '0.5 to 2 (1 undefined)')
    """
    known = x[~x.isnan()] if x.ndim else x
    if known.ndim == 0:
        return f"{float(known):.6g}"
    if not known.numel():
        return "none" if not x.numel() else "undefined"
    missing = x.numel() - known.numel()
    rest = f" ({missing} undefined)" if missing else ""
    return f"{float(known.min()):.4g} to {float(known.max()):.4g}{rest}"


def share_words(flags: Tensor) -> str:
    """Write yes or no, or how many of a batch are true.

    >>> import torch
    >>> share_words(torch.tensor(True)), share_words(torch.tensor([True, False]))
    ('yes', '1 of 2')
    """
    if flags.ndim == 0:
        return "yes" if bool(flags) else "no"
    return f"{int(flags.sum())} of {flags.numel()}"


def few_words(items: Iterable[Any]) -> str:
    """Write a list, cut short if it is long.

    >>> few_words([1, 4, 1, 3, 0])
    '[1, 4, 1, 3, 0]'
    """
    text = str(list(items))
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]} …]"
