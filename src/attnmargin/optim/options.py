"""What all optimisers share: checks of their options and gradients, and the heavy ball."""

import math
from typing import Any

import torch
from torch import Tensor
from torch.optim.optimizer import Optimizer

from attnmargin.base.errors import InputError


def check_options(options: dict[str, Any]) -> None:
    """Raise InputError unless lr, momentum and weight_decay are numbers in their ranges."""
    lr = options["lr"]
    single = isinstance(lr, int | float) or (
        isinstance(lr, Tensor) and lr.numel() == 1 and not lr.is_complex()
    )
    number = float(lr) if single else math.nan
    if not (math.isfinite(number) and number >= 0.0):
        raise InputError("lr", repr(lr), "a number that is not negative")
    for name, below in (("momentum", 1.0), ("weight_decay", math.inf)):
        value = options[name]
        if not isinstance(value, int | float) or not 0.0 <= value < below:
            needs = (
                "a number from 0 to below 1" if below == 1.0 else "a number that is not negative"
            )
            raise InputError(name, repr(value), needs)


def dense(gradient: Tensor) -> Tensor:
    """Return the gradient, or raise InputError if it is sparse or complex."""
    if gradient.is_sparse:
        raise InputError("gradient", "a sparse one", "dense gradients: sparse=False")
    if gradient.is_complex():
        raise InputError("gradient", "a complex one", "real parameters")
    return gradient


def parameters_and_gradients(group: dict[str, Any]) -> tuple[list[Tensor], list[Tensor]]:
    """Return the parameters of a group that have a gradient, and their gradients."""
    parameters = [w for w in group["params"] if w.grad is not None]
    return parameters, [dense(w.grad) for w in parameters]


def heavy_ball(
    optimiser: Optimizer, parameters: list[Tensor], gradients: list[Tensor], momentum: float
) -> list[Tensor]:
    """Update ``buffer ← momentum · buffer + g`` in the state, and return the buffers."""
    buffers = []
    for w, g in zip(parameters, gradients, strict=True):
        state = optimiser.state[w]
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = g.clone()  # keeps the dtype of the gradient
        else:
            state["momentum_buffer"].mul_(momentum).add_(g)
        buffers.append(state["momentum_buffer"])
    return buffers


def decay(parameters: list[Tensor], lr: float | Tensor, weight_decay: float) -> None:
    """Shrink parameters in place: ``w ← (1 − lr · weight_decay) w``."""
    if weight_decay != 0.0:
        for w in parameters:
            w.mul_(1.0 - lr * weight_decay)


def scalar(lr: float | Tensor) -> float | Tensor:
    """Return a rate that multiplies tensors on any device: a number, or a tensor of no dimension.

    >>> scalar(torch.tensor([0.5])).shape
    torch.Size([])
    """
    return lr.reshape(()) if isinstance(lr, Tensor) else lr


def closed(closure: Any) -> Any:
    """Evaluate the closure of a step with gradients, if there is one."""
    if closure is None:
        return None
    with torch.enable_grad():
        return closure()
