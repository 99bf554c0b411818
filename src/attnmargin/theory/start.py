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


def read_start(data: AttentionData, init: Any, width: int | None = None) -> Start:
    """Check ``init``, W(0) ``(*B, d, d)`` or a pair (K, Q) ``(*B, d, m)``, or raise InputError."""
    if width is not None:
        check_whole(width=width)
    if init is None:
        return Start(data.d if width is None else width)
    if not isinstance(init, tuple | list) or len(init) != 2 or _ndim(init[0]) < 2:
        return Start(data.d if width is None else width, _given(data, init, data.d))
    parts = [floats("init", part, like=data.X) for part in init]
    m = int(parts[0].shape[-1])
    if width not in (None, m):
        raise InputError("width", f"{width}", f"{m}, the columns of the K of init")
    K, Q = (_given(data, part, m) for part in parts)
    return Start(m, K @ Q.mT, (K, Q))


def _ndim(part: Any) -> int:
    """Number of dimensions; a pair of rows is a matrix, a pair of matrices is (K, Q)."""
    return torch.as_tensor(part).ndim


def _given(data: AttentionData, value: Any, m: int) -> Tensor:
    given, batch = finite("init", floats("init", value, like=data.X)), data.batch_shape
    own = given.shape[:-2]
    if given.shape[-2:] != (data.d, m) or own not in (torch.Size(), batch):
        needs = f"{(*batch, data.d, m)}, or {(data.d, m)} for all instances"
        raise InputError("init", f"shape {tuple(given.shape)}", needs)
    return given.expand(*batch, data.d, m)
