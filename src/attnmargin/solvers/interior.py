"""Step lengths of interior-point methods, for batches."""

import torch
from torch import Tensor


def ratio_step(x: Tensor, dx: Tensor) -> Tensor:
    """The largest t with ``x + t dx ≥ 0`` in the last dimension; x > 0."""
    return (-x / dx).where(dx < 0, torch.inf).amin(-1)


def positive_step(X: Tensor, dX: Tensor, square: Tensor | None = None) -> Tensor:
    """The largest t with ``X + t dX − t² square ⪰ 0`` for symmetric matrices; X ≻ 0, square ⪰ 0.

    With a square the condition is that of the twice as large pencil
    ``[[X + t dX, t Rᵀ], [t R, I]] ⪰ 0``, ``RᵀR = square``, which is linear in t.
    """
    factor, failed = torch.linalg.cholesky_ex(X)
    half = torch.linalg.solve_triangular(factor, dX, upper=False)
    scaled = torch.linalg.solve_triangular(factor, half.mT, upper=False)
    if square is not None:
        size = square.diagonal(dim1=-2, dim2=-1).amax(-1)[..., None, None]
        identity = torch.eye(X.shape[-1], dtype=X.dtype, device=X.device)
        root = torch.linalg.cholesky_ex(square + (1e-14 * size + 1e-300) * identity)[0]
        side = torch.linalg.solve_triangular(factor, root, upper=False)
        top = torch.cat((scaled, side), -1)
        bottom = torch.cat((side.mT, torch.zeros_like(side)), -1)
        scaled = torch.cat((top, bottom), -2)
    scaled = (0.5 * (scaled + scaled.mT)).nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)
    least = torch.linalg.eigvalsh(scaled)[..., 0]
    return (-1.0 / least).where(least < 0, torch.inf).where(failed == 0, 0.0)
