"""A start of training: W(0), or the factors K and Q of it."""

from dataclasses import dataclass
from typing import Any, final

import torch
from torch import Tensor

from attnmargin.base.arrays import finite, floats
from attnmargin.base.checks import check_whole
from attnmargin.base.errors import InputError
from attnmargin.data.attention_data import AttentionData


@final
@dataclass(frozen=True, eq=False)
class Start:
    """Where a run begins; None where it is not known."""

    width: int  # m, the columns of K and Q; d if nothing is said
    W: Tensor | None = None  # (*B, d, d)
    factors: tuple[Tensor, Tensor] | None = None  # (*B, d, m) each


def read_start(
    data: AttentionData, init: Any, width: int | None = None, parameter: str = "W"
) -> Start:
    """Check ``init``, W(0) ``(*B, d, d)`` or a pair (K, Q) ``(*B, d, m)``, or raise InputError.

    A list of two matrices is a pair for the parameter "KQ", else an array: starts of two instances.
    """
    if width is not None:
        check_whole(width=width)
    if init is None:
        return Start(data.d if width is None else width)
    parts = _pair(data, init, parameter)
    if parts is None:
        return Start(data.d if width is None else width, _given(data, init, data.d))
    m = int(parts[0].shape[-1])
    if m == 0:
        raise InputError("init", f"shape {tuple(parts[0].shape)}", "K with at least one column")
    if width not in (None, m):
        raise InputError("width", f"{width}", f"{m}, the columns of the K of init")
    K, Q = (_given(data, part, m) for part in parts)
    return Start(m, K @ Q.mT, (K, Q))


def _pair(data: AttentionData, init: Any, parameter: str) -> list[Tensor] | None:
    """Read K and Q; None where ``init`` is an array, such as a pair of rows."""
    if not isinstance(init, tuple if parameter == "W" else tuple | list) or len(init) != 2:
        return None
    parts = [floats("init", part, like=data.X) for part in init]
    return parts if parts[0].ndim >= 2 else None


def _given(data: AttentionData, value: Any, m: int) -> Tensor:
    given, batch = finite("init", floats("init", value, like=data.X)), data.batch_shape
    own = given.shape[:-2]
    if given.shape[-2:] != (data.d, m) or own not in (torch.Size(), batch):
        needs = f"{(*batch, data.d, m)}, or {(data.d, m)} for all instances"
        raise InputError("init", f"shape {tuple(given.shape)}", needs)
    return given.expand(*batch, data.d, m)
