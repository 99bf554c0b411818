"""SteepestDescent: steepest descent in any matrix norm as a PyTorch optimiser."""

from collections.abc import Callable, Iterable
from itertools import compress
from typing import Any, final, overload

import torch
from torch import Tensor
from torch.optim.optimizer import Optimizer

from attnmargin.base.errors import InputError
from attnmargin.margin.implied import implication
from attnmargin.margin.norms import Norm, as_norm
from attnmargin.optim.kernel import WORTH_A_KERNEL, fits, update_by_signs
from attnmargin.optim.options import (
    check_options,
    closed,
    decay,
    heavy_ball,
    parameters_and_gradients,
    scalar,
)
from attnmargin.optim.polar import newton_schulz


@final
class SteepestDescent(Optimizer):
    """Steepest descent in a norm of each weight matrix, for any model.

        M ← momentum · M + g,      W ← W − lr V,      V = argmax ⟨M, V⟩ over ‖V‖ ≤ 1

    Every step of a matrix has length lr in its norm, however small the gradient is. "spectral" is
    Muon, "max" is sign descent (with momentum signum), "fro" normalised SGD per tensor, "rows"
    normalises each row. On linear classifiers training maximises the margin in this norm (Fan,
    Schmidt and Thrampoulidis, 2502.04664); see ``docs/optimizers.md``.

    Weights of more than two dimensions, such as convolutions, are matrices (out, all others);
    vectors are columns, so that "spectral" and "fro" give them their Euclidean length.

    Args:
        params: parameters, or groups with their own ``lr``, ``norm`` and other options; see
            :func:`attnmargin.optim.parameter_groups`.
        lr: learning rate, a number or a tensor with one number: the length of a step.
        norm: "spectral", "max", "fro", "sum", "rows", "columns", "nuc", a power p, or a norm.
        momentum: from 0 to below 1.
        nesterov: step along ``g + momentum · M``.
        weight_decay: decoupled, ``w ← (1 − lr · weight_decay) w`` before the step.
        exact: compute the polar factor of "spectral" by a singular value decomposition, instead of
            Newton–Schulz iteration in bfloat16, whose singular values are within 0.65 and 1.25.
        foreach: step matrices of the same shape, dtype and device together; False steps them one
            by one.

    Example:
        >>> import attnmargin as am, torch
        >>> w = torch.nn.Parameter(torch.zeros(2, 2))
        >>> w.grad = torch.tensor([[3.0, 0.0], [0.0, -0.1]])
        >>> am.SteepestDescent([w], lr=0.5, norm="max").step()
        >>> w.tolist()
        [[-0.5, 0.0], [0.0, 0.5]]
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1e-3,
        norm: str | float | Norm = "spectral",
        *,
        momentum: float = 0.0,
        nesterov: bool = False,
        weight_decay: float = 0.0,
        exact: bool = False,
        foreach: bool | None = None,
    ) -> None:
        defaults = {
            "lr": lr,
            "norm": as_norm(norm).name,
            "momentum": momentum,
            "nesterov": nesterov,
            "weight_decay": weight_decay,
            "exact": exact,
            "foreach": foreach,
        }
        super().__init__(params, defaults)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Check the options of a group, and add it."""
        options = {**self.defaults, **param_group}
        check_options(options)
        if options["nesterov"] and options["momentum"] == 0.0:
            raise InputError("nesterov", "True with momentum 0", "a momentum")
        # The name instead of an object: states are saved and loaded as plain data.
        super().add_param_group({**param_group, "norm": as_norm(options["norm"]).name})
        for w in self.param_groups[-1]["params"]:
            if w.is_complex():
                raise InputError("params", "a complex one", "real parameters")

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
            if group["momentum"] > 0.0:
                buffers = heavy_ball(self, parameters, gradients, group["momentum"])
                if group["nesterov"]:
                    rate = group["momentum"]
                    pairs = zip(gradients, buffers, strict=True)
                    gradients = [g.add(M, alpha=rate) for g, M in pairs]
                else:
                    gradients = buffers
            _descend(parameters, gradients, group)
        return loss

    def __repr__(self) -> str:
        lines = [super().__repr__()]
        for i, group in enumerate(self.param_groups):
            known = implication("W", "steepest", group["norm"])
            lines.append(
                f"Group {i}: margin of each matrix in the norm {group['norm']!r}, "
                f"{known.evidence.value} ({known.source})."
            )
        return "\n".join(lines)


def _descend(parameters: list[Tensor], gradients: list[Tensor], group: dict[str, Any]) -> None:
    """Update one group in place."""
    lr = scalar(group["lr"])
    decay(parameters, lr, group["weight_decay"])
    if group["norm"] == "max":
        _descend_by_signs(parameters, gradients, lr, group["foreach"])
        return
    for places in _together(parameters, gradients, group["foreach"] is not False):
        own = [_matrix(gradients[i]) for i in places]
        D = torch.stack(own) if len(own) > 1 else own[0].unsqueeze(0)
        V = _direction(D, group["norm"], group["exact"])
        for i, step in zip(places, V, strict=True):
            _move(parameters[i], step.reshape(parameters[i].shape), lr)


def _move(w: Tensor, V: Tensor, lr: float | Tensor) -> None:
    """Update ``w ← w − lr V`` in place."""
    if isinstance(lr, Tensor):
        w.sub_(lr.to(w.device, w.dtype) * V.to(w.dtype))
    else:
        w.sub_(V.to(w.dtype), alpha=lr)


def _descend_by_signs(
    parameters: list[Tensor], gradients: list[Tensor], lr: float | Tensor, foreach: bool | None
) -> None:
    """Take a step of sign descent, for all parameters together if they can be."""
    pairs = list(zip(parameters, gradients, strict=True))
    if foreach is not False:
        fused = [w.numel() >= WORTH_A_KERNEL and fits(w, g) for w, g in pairs]
        for w, g in compress(pairs, fused):
            update_by_signs(w, g, lr)
        pairs = [pair for pair, done in zip(pairs, fused, strict=True) if not done]
    same = all(w.dtype == g.dtype for w, g in pairs)
    if pairs and same and foreach is not False and not isinstance(lr, Tensor):
        weights, slopes = ([pair[k] for pair in pairs] for k in (0, 1))
        torch._foreach_add_(weights, torch._foreach_sign(slopes), alpha=-lr)
        return
    for w, g in pairs:
        _move(w, g.sign(), lr)


def _together(parameters: list[Tensor], gradients: list[Tensor], several: bool) -> list[list[int]]:
    """Number the parameters that are not empty; those that can be stacked, together."""
    kinds: dict[Any, list[int]] = {}
    for i, (w, g) in enumerate(zip(parameters, gradients, strict=True)):
        if w.numel() > 0:
            key = (_matrix(g).shape, g.dtype, g.device) if several else i
            kinds.setdefault(key, []).append(i)
    return list(kinds.values())


def _matrix(g: Tensor) -> Tensor:
    """Write a gradient as a matrix: (out, all others), a vector as a column."""
    return g.flatten(1) if g.ndim > 1 else g.reshape(-1, 1)


def _direction(D: Tensor, norm: str, exact: bool) -> Tensor:
    """Compute the steepest directions of ``(B, r, c)``."""
    if norm == "spectral" and min(D.shape[-2:]) == 1:
        norm = "fro"  # of one row or column, the same
    if norm == "spectral" and not exact:
        return newton_schulz(D)
    return as_norm(norm).steepest(D)
