"""The boundary: numpy arrays, torch tensors and lists in, checked torch tensors out."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attnmargin.base.errors import InputError

_LARGEST = 1e100
Array = Any  # numpy array, torch tensor, number, or nested list of numbers


def as_tensor(name: str, value: Array) -> Tensor:
    """Return a dense real tensor of any dtype: ``value`` itself, or a copy of an array or list."""
    if isinstance(value, Tensor):
        if value.is_complex() or value.layout != torch.strided:
            kind = value.dtype if value.is_complex() else value.layout
            raise InputError(name, f"a {kind} tensor", "dense real numbers")
        return value.detach()
    if isinstance(value, np.ma.MaskedArray):
        raise InputError(name, "a numpy masked array", "a plain array, and the mask by itself")
    try:
        array = np.asarray(value)
    except (ValueError, TypeError, OverflowError) as error:
        raise InputError(name, "a list of unequal lengths", "a rectangular array") from error
    if array.dtype.kind not in "fiub" or array.dtype.itemsize > 8:
        raise InputError(name, f"{array.dtype} entries", "real numbers of at most 64 bits")
    # torch needs a contiguous, writable array in native byte order.
    return torch.from_numpy(array.astype(array.dtype.newbyteorder("="), order="C", copy=True))


def floats(name: str, value: Array, like: Tensor | None = None) -> Tensor:
    """Convert to a float32 or float64 tensor; integers become float64, or the dtype of ``like``.

    Dtype and device must match those of ``like``, so that nothing is promoted silently.
    """
    tensor = as_tensor(name, value)
    if not tensor.dtype.is_floating_point:
        tensor = tensor.to(torch.float64 if like is None else like.dtype)
    if tensor.dtype not in (torch.float32, torch.float64):
        raise InputError(name, str(tensor.dtype), "float32 or float64")
    if like is not None and tensor.dtype != like.dtype:
        raise InputError(name, str(tensor.dtype), f"{like.dtype}, the dtype of the other arrays")
    return _same_device(name, tensor, like)


def _same_device(name: str, tensor: Tensor, like: Tensor | None) -> Tensor:
    if like is not None and tensor.device != like.device:
        raise InputError(
            name, f"device {tensor.device}", f"{like.device}, where the other arrays are"
        )
    return tensor


def integers(name: str, value: Array, like: Tensor) -> Tensor:
    """Convert to an int64 tensor on the device of ``like``; ``value`` may be on any device."""
    tensor = as_tensor(name, value)
    if tensor.dtype == torch.bool or tensor.dtype.is_floating_point:
        raise InputError(name, f"{tensor.dtype} entries", "whole numbers")
    return tensor.to(torch.int64).to(like.device)


def booleans(name: str, value: Array, like: Tensor) -> Tensor:
    """Convert to a bool tensor on the device of ``like``."""
    tensor = as_tensor(name, value)
    if tensor.dtype != torch.bool:
        raise InputError(name, f"{tensor.dtype} entries", "true or false")
    return tensor.to(like.device)


def finite(name: str, tensor: Tensor) -> Tensor:
    """Return the tensor; raise InputError if an entry is NaN, infinite or too large to multiply."""
    if tensor.numel() == 0:
        return tensor
    most = min(_LARGEST, torch.finfo(tensor.dtype).max)
    low, high = tensor.aminmax()  # faster than |x|, and NaN if there is one
    if not bool(torch.maximum(-low, high) <= most):
        good = tensor.abs() <= most
        index = tuple(int(i) for i in (~good).nonzero()[0])
        needs = f"finite numbers of at most {_LARGEST:g}"
        raise InputError(name, f"{float(tensor[index]):g} at {index}", needs)
    return tensor


def shaped(name: str, tensor: Tensor, *ndims: int, meaning: str) -> Tensor:
    """Return the tensor; raise InputError unless its number of dimensions is in ``ndims``."""
    if tensor.ndim not in ndims:
        raise InputError(name, f"shape {tuple(tensor.shape)}", meaning)
    return tensor


def broadcast(shapes: Mapping[str, Sequence[int]]) -> torch.Size:
    """Return the common batch shape of all arguments."""
    different = {tuple(shape) for shape in shapes.values()} - {()}
    if len(different) <= 1:
        return torch.Size(*different)
    try:
        return torch.broadcast_shapes(*(tuple(shape) for shape in shapes.values()))
    except RuntimeError as error:
        listed = ", ".join(f"{name} {tuple(shape)}" for name, shape in shapes.items())
        raise InputError(
            "batch dimensions", listed, "leading shapes that broadcast together"
        ) from error


def tiny(x: Tensor) -> float:
    """Return the smallest positive normal number of the dtype, a safe lower clamp for divisors."""
    return torch.finfo(x.dtype).tiny
