"""Checks of arguments: whole numbers, numbers, instances, indices."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from attnmargin.base.errors import InputError

# No machine can hold more of anything.
_LARGEST = 1 << 48


def check_whole(least: int = 1, /, **values: object) -> None:
    """Raise InputError unless all values are whole numbers of at least ``least``."""
    for name, value in values.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise InputError(name, repr(value), f"a whole number of at least {least}")
        if value > _LARGEST:
            raise InputError(name, f"{value!r:.40}", "a whole number of at most 2⁴⁸")


def check_kind(argument: str, value: object, kind: type) -> None:
    """Raise InputError unless ``value`` is a ``kind``."""
    if not isinstance(value, kind):
        got = f"a {type(value).__name__}"
        raise InputError(argument, got, f"an instance of am.{kind.__name__}")


def check_number(argument: str, value: object, needs: str) -> float:
    """Convert to float, or raise InputError."""
    try:
        if isinstance(value, str | bytes):
            raise TypeError
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError, RuntimeError):
        raise InputError(argument, f"{value!r:.80}", needs) from None


def check_index(batch: Sequence[int], index: Any) -> None:
    """Raise InputError unless ``index`` fits a batch of this shape."""
    try:
        plain = index.cpu() if isinstance(index, Tensor) else index
        torch.empty(tuple(batch), dtype=torch.bool)[plain]
    except (IndexError, TypeError, ValueError, RuntimeError) as error:
        shape = f"a batch of shape {tuple(batch)}" if len(batch) else "no batch"
        raise InputError("index", f"{index!r} for {shape}", "one that fits") from error
