"""MirrorDescent: ℓp mirror descent as a PyTorch optimiser (paper B)."""

import math
from collections.abc import Callable, Iterable
from typing import Any, final, overload

import torch
from torch import Tensor
from torch.optim.optimizer import Optimizer

from attnmargin.base.errors import InputError
from attnmargin.margin.norms import mirror_step, scaled_norm, working_dtype
from attnmargin.optim.kernel import WORTH_A_KERNEL, fits, update
from attnmargin.optim.options import (
    check_options,
    closed,
    decay,
    heavy_ball,
    parameters_and_gradients,
    scalar,
)

# Tables with at least this many rows may be embeddings.
_MANY_ROWS = 1 << 10


@final
class MirrorDescent(Optimizer):
    """Mirror descent with the potential ``ψ(w) = (1/p) Σ |w|^p``, for any model.

        ∇ψ(w⁺) = ∇ψ(w) − lr · g,      ∇ψ(w) = sign(w) |w|^{p−1}

    p = 2 is SGD, bit for bit. p near 1 favours sparse weights: attention weights converge in
    direction to the ℓp-SVM (paper B, Theorem 3). The update is computed relative to the larger of
    the two terms, so that weights neither vanish by underflow nor blow up at zero.

    Args:
        params: parameters, or groups with their own ``lr``, ``p`` and other options.
        lr: learning rate, a number or a tensor with one number.
        p: power of the potential, ``1 < p < ∞``.
        normalize: divide the gradient of a group by its dual norm ``‖g‖_q``, ``1/p + 1/q = 1``.
        momentum: ``buffer ← momentum · buffer + g`` replaces g: heavy ball in the mirror domain,
            where steps add up.
        weight_decay: decoupled, ``w ← (1 − lr · weight_decay) w`` before the step.
        foreach: update all parameters of a group with the same dtype and device together; False
            updates them one by one.
        fused: run one kernel per parameter on a GPU, see :mod:`attnmargin.optim.kernel`; None does
            so for large parameters if it can.

    Example:
        >>> import attnmargin as am, torch
        >>> w = torch.nn.Parameter(torch.tensor([4.0, 0.0]))
        >>> w.grad = torch.tensor([-1.0, -3.0])
        >>> am.MirrorDescent([w], lr=1.0, p=1.5).step()
        >>> w.tolist()  # (√4 + 1)², 3²
        [9.0, 9.0]
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1e-3,
        p: float = 2.0,
        *,
        normalize: bool = False,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        foreach: bool | None = None,
        fused: bool | None = None,
    ) -> None:
        defaults = {
            "lr": lr,
            "p": p,
            "normalize": normalize,
            "momentum": momentum,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "fused": fused,
        }
        super().__init__(params, defaults)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Check the options of a group, and add it."""
        _check({**self.defaults, **param_group})
        super().add_param_group(param_group)

    @overload
    def step(self, closure: None = None) -> None: ...

    @overload
    def step(self, closure: Callable[[], float]) -> float: ...

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        """Take one step; ``closure`` recomputes the loss and returns it."""
        loss: float | None = closed(closure)
        for group in self.param_groups:
            parameters, gradients = parameters_and_gradients(group)
            if group["normalize"] and gradients:
                size = _group_norm(gradients, group["p"])
                gradients = [
                    g.to(working_dtype(g)) / size.to(g.device, working_dtype(g)) for g in gradients
                ]
            if group["momentum"] > 0.0:
                gradients = heavy_ball(self, parameters, gradients, group["momentum"])
            _descend(parameters, gradients, group)
        return loss


def _check(options: dict[str, Any]) -> None:
    check_options(options)
    p = options["p"]
    if not isinstance(p, int | float) or not 1.0 < p < math.inf:
        raise InputError("p", repr(p), "a number with 1 < p < ∞")


def _group_norm(gradients: list[Tensor], p: float) -> Tensor:
    """Compute ``‖g‖_q`` over all gradients of a group; 1 if they are zero."""
    q = p / (p - 1.0)
    sizes = [
        scaled_norm(g.flatten().to(torch.promote_types(g.dtype, torch.float32)), q)
        for g in gradients
    ]
    total = scaled_norm(torch.stack([size.to(sizes[0]) for size in sizes]), q)
    return torch.where(total > 0, total, 1.0)


def _descend(parameters: list[Tensor], gradients: list[Tensor], group: dict[str, Any]) -> None:
    """Update one group in place."""
    lr, p = scalar(group["lr"]), float(group["p"])
    decay(parameters, lr, group["weight_decay"])
    if p == 2.0:
        _descend_plainly(parameters, gradients, lr, group["foreach"])
    else:
        parameters, gradients = _descend_fused(parameters, gradients, lr, p, group["fused"])
        parameters, gradients = _descend_in_rows(parameters, gradients, lr, p)
        if group["foreach"] is False or len(parameters) < 2:
            for w, g in zip(parameters, gradients, strict=True):
                w.copy_(mirror_step(w, lr * g.to(working_dtype(w)), p))
        else:
            _descend_together(parameters, gradients, lr, p)


def _descend_plainly(
    parameters: list[Tensor], gradients: list[Tensor], lr: float | Tensor, foreach: bool | None
) -> None:
    """Take a step of gradient descent, with the same operations as ``torch.optim.SGD``."""
    if isinstance(lr, Tensor):
        for w, g in zip(parameters, gradients, strict=True):
            w.sub_(lr.to(w.device) * g)
    elif foreach is False or not parameters:
        for w, g in zip(parameters, gradients, strict=True):
            w.add_(g, alpha=-lr)
    else:
        torch._foreach_add_(parameters, gradients, alpha=-lr)


def _descend_fused(
    parameters: list[Tensor],
    gradients: list[Tensor],
    lr: float | Tensor,
    p: float,
    fused: bool | None,
) -> tuple[list[Tensor], list[Tensor]]:
    """Update what the kernel can, and return the rest; small parameters do better concatenated."""
    if fused is False:
        return parameters, gradients
    least = 0 if fused else WORTH_A_KERNEL
    left: tuple[list[Tensor], list[Tensor]] = ([], [])
    for w, g in zip(parameters, gradients, strict=True):
        if w.numel() >= least and fits(w, g):
            update(w, g, lr, p)
        elif fused:
            needs = "dense float32 or half weights and gradients on a GPU, and Triton"
            raise InputError("fused", f"True with {w.dtype} on {w.device}", needs)
        else:
            left[0].append(w)
            left[1].append(g)
    return left


def _descend_in_rows(
    parameters: list[Tensor], gradients: list[Tensor], lr: float | Tensor, p: float
) -> tuple[list[Tensor], list[Tensor]]:
    """Update large CPU tables only in rows with a nonzero gradient; return the rest.

    A batch of texts touches few rows of an embedding, and a zero gradient changes nothing.
    """
    left: tuple[list[Tensor], list[Tensor]] = ([], [])
    for w, g in zip(parameters, gradients, strict=True):
        if w.ndim == 2 and len(w) >= _MANY_ROWS and w.device.type == "cpu":
            rows = (g != 0).any(1).nonzero().flatten()
            w[rows] = mirror_step(w[rows], lr * g[rows].to(working_dtype(w)), p)
        else:
            left[0].append(w)
            left[1].append(g)
    return left


def _descend_together(
    parameters: list[Tensor], gradients: list[Tensor], lr: float | Tensor, p: float
) -> None:
    """Concatenate all parameters of a dtype and device, and update them together."""
    kinds: dict[tuple[Any, Any], list[int]] = {}
    for i, w in enumerate(parameters):
        kinds.setdefault((w.dtype, w.device), []).append(i)
    for places in kinds.values():
        flat = torch.cat([parameters[i].flatten() for i in places])
        step = torch.cat([gradients[i].flatten().to(working_dtype(flat)) for i in places])
        parts = mirror_step(flat, lr * step, p).split([parameters[i].numel() for i in places])
        for i, part in zip(places, parts, strict=True):
            parameters[i].copy_(part.view_as(parameters[i]))
