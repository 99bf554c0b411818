"""Weight decay of two factors: what it does to their product (Kobayashi et al., 2410.23819)."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from torch import Tensor

from attnmargin.base.arrays import Array, finite, floats
from attnmargin.base.checks import check_number
from attnmargin.base.errors import InaccurateError, InputError

_POSITIVE = "a number that is not negative"
# Relative and absolute error of a step of the flow.
_ERROR = (1e-11, 1e-14)
# Gradient of the loss in W, (*B, d, e) to (*B, d, e).
Gradient = Callable[[Tensor], Tensor]


def shrunk(M: Array, amount: float) -> Tensor:
    """Shrink singular values to ``(s − amount)₊``: the minimiser of ½‖W − M‖² + amount ‖W‖_*.

    Args:
        M: ``(*B, d, e)``.

    Example:
        >>> from attnmargin.training.decay import shrunk
        >>> shrunk([[3.0, 0.0], [0.0, 1.0]], 2.0).tolist()
        [[1.0, 0.0], [0.0, 0.0]]
    """
    amount = check_number("amount", amount, _POSITIVE)
    if not amount >= 0.0:
        raise InputError("amount", f"{amount:g}", _POSITIVE)
    U, s, Vh = torch.linalg.svd(finite("M", floats("M", M)), full_matrices=False)
    return (U * (s - amount).clamp_min(0.0).unsqueeze(-2)) @ Vh


def factor_gradients(
    gradient: Gradient, A: Tensor, B: Tensor, decay: float
) -> tuple[Tensor, Tensor]:
    """Compute the gradients in A and B of ``L(A Bᵀ) + decay/2 (‖A‖² + ‖B‖²)``.

    Args:
        gradient: ∇L of W.
        A, B: ``(*B, d, m)`` and ``(*B, e, m)``.
    """
    G = gradient(A @ B.mT)
    return G @ B + decay * A, G.mT @ A + decay * B


def decayed_flow(
    gradient: Gradient, A: Array, B: Array, decay: float, times: Sequence[float]
) -> tuple[Tensor, Tensor]:
    """Follow gradient flow of ``L(A Bᵀ) + decay/2 (‖A‖² + ‖B‖²)`` in the factors.

    Along the flow ``AᵀA − BᵀB`` decays exactly like ``e^{−2 decay t}``, whatever L is: each pair
    of gradients satisfies ``Aᵀ∂_A = Bᵀ∂_B`` without the decay. So at rest ``AᵀA = BᵀB``, and
    ``½ (‖A‖² + ‖B‖²) = ‖A Bᵀ‖_*``: decay of the factors is a penalty on the nuclear norm of their
    product (Kobayashi et al., 2410.23819).

    Integrated by Dormand and Prince's method of order eight, with errors of 1e-11 per step.

    Args:
        gradient: ∇L, from W ``(*B, d, e)`` to the same shape.
        A, B: the start, ``(*B, d, m)`` and ``(*B, e, m)``, float64.
        decay: λ.
        times: to record, rising from 0 or later.

    Returns:
        A and B, ``(R, *B, d, m)`` and ``(R, *B, e, m)``.

    Example:
        >>> import attnmargin as am, torch
        >>> from attnmargin.training.decay import decayed_flow
        >>> M = torch.diag(torch.tensor([0.3, 1.0])).double()
        >>> A, B = decayed_flow(lambda W: W - M, torch.eye(2).double(), M, 0.5, [0.0, 200.0])
        >>> torch.linalg.svdvals(A[-1] @ B[-1].mT).round(decimals=6).tolist()  # 1 − λ, (0.3 − λ)₊
        [0.5, 0.0]
        >>> bool(am.measures.imbalance(A, B)[-1] < 1e-12)
        True
    """
    first, second = floats("A", A).double(), floats("B", B).double()
    decay = check_number("decay", decay, _POSITIVE)
    moments = [check_number("times", time, "numbers") for time in times]
    if not moments or moments[0] < 0.0 or sorted(set(moments)) != moments:
        raise InputError("times", f"{moments}", "rising times that are not negative")
    if not 0.0 <= decay < float("inf"):
        raise InputError("decay", f"{decay:g}", _POSITIVE)

    def velocity(_: float, x: NDArray[np.float64]) -> NDArray[np.float64]:
        a, b = _split(torch.from_numpy(x), first, second)
        parts = factor_gradients(gradient, a, b, decay)
        return -torch.cat([part.flatten() for part in parts]).numpy()

    start = torch.cat([first.flatten(), second.flatten()]).numpy()
    rtol, atol = _ERROR
    found: Any = solve_ivp(velocity, (0.0, moments[-1]), start, "DOP853", t_eval=moments,
                           rtol=rtol, atol=atol)  # fmt: skip
    if not found.success:
        raise InaccurateError(f"gradient flow: {found.message}")
    rows = [_split(torch.from_numpy(x), first, second) for x in found.y.T.copy()]
    return torch.stack([a for a, _ in rows]), torch.stack([b for _, b in rows])


def _split(x: Tensor, first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
    """Cut a vector into A and B."""
    a, b = x.split([first.numel(), second.numel()])
    return a.reshape(first.shape), b.reshape(second.shape)
