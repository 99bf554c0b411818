"""Starting points of training: zero, small random factors, or the user's own."""

import math
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from attnmargin.attention.softmax import Sequences
from attnmargin.base.arrays import Array, finite, floats
from attnmargin.base.checks import check_whole
from attnmargin.base.errors import InputError
from attnmargin.base.seeds import seed_of
from attnmargin.training.weights import Entries, Factors, Movable

# Singular values below this share of the largest are rounding.
_DEPENDENT = 1e-10


def _given(name: str, value: Array, shape: tuple[int, ...], flat: Sequences) -> Tensor:
    """Check a start of shape ``(*B, …)`` or ``(…)``, and expand it to ``(B, …)``."""
    given = finite(name, floats(name, value, like=flat.X))
    tail = len(shape)
    fits = given.ndim >= tail and given.shape[given.ndim - tail :] == shape
    if not fits or given.shape[: given.ndim - tail] not in (torch.Size(), flat.batch):
        needs = f"{(*flat.batch, *shape)}, or {shape} for all trials"
        raise InputError(name, f"shape {tuple(given.shape)}", needs)
    return given.expand(*flat.batch, *shape).reshape(len(flat.X), *shape).clone()


def _pair(init: Any, names: str) -> tuple[Any, Any]:
    if not isinstance(init, tuple | list) or len(init) != 2:
        raise InputError("init", f"a {type(init).__name__}", f"a pair ({names})")
    return init[0], init[1]


def matrix_start(flat: Sequences, init: Any) -> Entries:
    """Start W from zero or from ``init``."""
    d = flat.X.shape[-1]
    if isinstance(init, tuple) and len(init) == 1:
        (init,) = init
    if init is None:
        return Entries(flat, flat.X.new_zeros(len(flat.X), d, d))
    return Entries(flat, _given("init", init, (d, d), flat))


def movable_start(
    flat: Sequences, parameter: str, init: Any, width: int | None, seed: int
) -> Movable:
    """Start W, (K, Q), or the vector p, which is W with the scalar 1 as every query."""
    if parameter == "KQ":
        return factor_start(flat, init, width, seed)
    if parameter == "p":
        return vector_start(flat, init)
    return matrix_start(flat, init)


def vector_start(flat: Sequences, init: Any) -> Entries:
    """Start p, a matrix of one column, from zero or from ``init`` ``(*B, d)``."""
    d = flat.X.shape[-1]
    single = replace(flat, z=flat.z.new_ones(*flat.z.shape[:2], 1))
    start = flat.X.new_zeros(len(flat.X), d) if init is None else _given("init", init, (d,), flat)
    return Entries(single, start.unsqueeze(-1))


def factor_start(flat: Sequences, init: Any, width: int | None, seed: int) -> Factors:
    """Start (K, Q) from ``init``, or with entries uniform in ±1/√d, as in paper A's experiments.

    Every trial has its own seed.
    """
    d = flat.X.shape[-1]
    if init is not None:
        K, Q = (floats("init", part, like=flat.X) for part in _pair(init, "K, Q"))
        m = K.shape[-1] if K.ndim else 1
        return Factors(flat, *(_given("init", part, (d, m), flat) for part in (K, Q)))
    m = d if width is None else width
    check_whole(width=m)
    drawn = []
    for trial in range(len(flat.X)):
        generator = torch.Generator().manual_seed(seed_of("factors", trial, base=seed))
        drawn.append(torch.rand(2, d, m, generator=generator, dtype=torch.float64))
    both = torch.stack(drawn) if drawn else torch.empty(0, 2, d, m)
    both = ((2.0 * both - 1.0) / math.sqrt(d)).to(flat.X)
    return Factors(flat, both[:, 0], both[:, 1])


def fixed_directions(flat: Sequences, fixed: Array) -> Tensor:
    """Orthonormalise matrices ``(*B, m, d, d)`` or ``(m, d, d)`` to ``(B, m, d, d)``.

    If they are linearly dependent, some of the results are zero.
    """
    given, d = finite("fixed", floats("fixed", fixed, like=flat.X)), flat.X.shape[-1]
    if given.ndim < 3 or given.shape[-2:] != (d, d):
        raise InputError("fixed", f"shape {tuple(given.shape)}", f"matrices (*B, m, {d}, {d})")
    wide = _given("fixed", given, tuple(given.shape[-3:]), flat).flatten(-2)
    if wide.shape[-2] == 0:
        return wide.unflatten(-1, (d, d))
    _, sizes, rows = torch.linalg.svd(wide, full_matrices=False)
    keep = sizes > _DEPENDENT * sizes[..., :1]
    return (rows * keep.unsqueeze(-1)).unflatten(-1, (d, d))


def joint_start(flat: Sequences, init: Any) -> tuple[Tensor, Entries]:
    """Start (v, W) from zero or from ``init``; v is ``(B, d, 1)``."""
    d = flat.X.shape[-1]
    v, W = (None, None) if init is None else _pair(init, "v, W")
    head = flat.X.new_zeros(len(flat.X), d)
    head = head if v is None else _given("init", v, (d,), flat)
    return head.unsqueeze(-1), matrix_start(flat, W)
