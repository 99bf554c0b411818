"""A learning rate to start with: the one of a grid that lowers the loss most in a few steps."""

import math
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.optimizer import Optimizer

from attnmargin.base.checks import check_kind, check_whole
from attnmargin.base.errors import InputError

# Rates tried per factor of ten.
_DENSITY = 2


def suggest_lr(
    model: nn.Module,
    optimiser: Optimizer,
    closure: Callable[[], Any],
    *,
    least: float = 1e-8,
    most: float = 10.0,
    steps: int = 10,
) -> float:
    """Find a learning rate for which the loss falls.

    A rate of mirror descent means a step of the mirrored weights ``∇ψ(w) = sign(w)|w|^{p−1}``, so
    the rates that train differ by powers of ten between p. Every rate ``10^{k/2}`` from ``least``
    to ``most`` takes ``steps`` steps from the same start; the rate whose last loss is lowest wins.
    Training for longer often needs a smaller one: half of it is a careful choice.

    Args:
        model: what is trained; its weights and buffers are as before afterwards.
        optimiser: of this model, of any class; its state and rates are as before, too. Groups keep
            the ratio of their rates to that of the first.
        closure: sets gradients to zero, computes the loss, propagates back and returns the loss,
            as ``optimiser.step`` takes it; best on always the same data.
        steps: how many steps each rate takes.

    Returns:
        The rate of the first group.

    Example:
        >>> import attnmargin as am, torch
        >>> model = torch.nn.Linear(1, 1, bias=False)
        >>> optimiser = am.MirrorDescent(model.parameters(), p=1.5)
        >>> def closure():
        ...     optimiser.zero_grad()
        ...     loss = (model(torch.ones(1, 1)) - 3.0).square().sum()
        ...     loss.backward()
        ...     return loss
        >>> 0.01 < am.optim.suggest_lr(model, optimiser, closure) < 1.0
        True
    """
    check_kind("model", model, nn.Module)
    check_kind("optimiser", optimiser, Optimizer)
    check_whole(steps=steps)
    if not 0.0 < least <= most < math.inf:
        raise InputError("least", f"{least!r} with most {most!r}", "0 < least ≤ most")
    count = max(round(_DENSITY * math.log10(most / least)), 0)
    rates = [least * 10.0 ** (k / _DENSITY) for k in range(count + 1)]
    saved = deepcopy(model.state_dict()), deepcopy(optimiser.state_dict())
    shares = _shares(optimiser)
    try:
        with torch.random.fork_rng():
            seeds = torch.get_rng_state()
            before = _loss(closure)
            after = []
            for rate in rates:
                _restore(model, optimiser, saved)
                torch.set_rng_state(seeds)
                after.append(_trial(optimiser, closure, [rate * share for share in shares], steps))
    finally:
        _restore(model, optimiser, saved)
        optimiser.zero_grad()
    best = min(range(len(rates)), key=after.__getitem__)
    if not after[best] < before:
        got = f"a loss of {before:g} that no rate from {least:g} to {most:g} lowers"
        raise InputError("closure", got, "a loss that falls, and gradients of it")
    return rates[best]


def _shares(optimiser: Optimizer) -> list[float]:
    rates = [float(group["lr"]) for group in optimiser.param_groups]
    return [rate / rates[0] if rates[0] > 0.0 else 1.0 for rate in rates]


def _restore(model: nn.Module, optimiser: Optimizer, saved: tuple[Any, Any]) -> None:
    model.load_state_dict(saved[0])
    optimiser.load_state_dict(deepcopy(saved[1]))


def _loss(closure: Callable[[], Any]) -> float:
    """Evaluate the closure; a loss that is not finite counts as infinite."""
    found = closure()
    loss = float(found.detach()) if isinstance(found, Tensor) else float(found)
    return loss if math.isfinite(loss) else math.inf


def _trial(
    optimiser: Optimizer, closure: Callable[[], Any], rates: list[float], steps: int
) -> float:
    """Take steps, and return the loss after them."""
    for group, rate in zip(optimiser.param_groups, rates, strict=True):
        old = group["lr"]
        group["lr"] = torch.full_like(old, rate) if isinstance(old, Tensor) else rate
    for _ in range(steps):
        if not math.isfinite(_loss(closure)):
            return math.inf
        optimiser.step()
    return _loss(closure)
