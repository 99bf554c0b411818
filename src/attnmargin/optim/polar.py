"""The polar factor of matrices by matrix products alone: Newton–Schulz iteration."""

import torch
from torch import Tensor

# The odd quintic of Muon (Jordan et al. 2024): steep at zero, so that small singular values grow
# fast; in exchange they end between 0.7 and 1.2 instead of at one.
_QUINTIC = (3.4445, -4.7750, 2.0315)
_STEPS = 5


def newton_schulz(D: Tensor) -> Tensor:
    """Approximate ``U Vᵀ`` of ``D = U Σ Vᵀ``, ``(*B, r, c)``, in bfloat16.

        X ← a X + b (X Xᵀ) X + c (X Xᵀ)² X,      X₀ = D / ‖D‖_F

    Singular values above a hundredth of ``‖D‖_F`` end between 0.65 and 1.25; smaller ones stay
    smaller. Zero stays zero.

    Example:
        >>> D = torch.tensor([[0.0, 2.0], [-1.0, 0.0]])
        >>> (newton_schulz(D).abs() - torch.tensor([[0.0, 1.0], [1.0, 0.0]])).abs().max() < 0.35
        tensor(True)
    """
    wide = D.shape[-2] <= D.shape[-1]
    shape = D.shape if wide else D.mT.shape
    X = _unit(D if wide else D.mT).bfloat16().reshape(-1, *shape[-2:])
    a, b, c = _QUINTIC
    for _ in range(_STEPS):
        A = X @ X.mT
        B = torch.baddbmm(A, A, A, beta=b, alpha=c)
        X = torch.baddbmm(X, B, X, beta=a)
    X = X.reshape(shape)
    return (X if wide else X.mT).to(D.dtype)


def _unit(D: Tensor) -> Tensor:
    """Divide each matrix by its Frobenius norm, in at least float32."""
    D = D.to(torch.promote_types(D.dtype, torch.float32))
    largest = D.abs().amax((-2, -1), keepdim=True)
    D = D / torch.where(largest > 0, largest, 1.0)
    size = D.square().sum((-2, -1), keepdim=True).sqrt()
    return D / torch.where(size > 0, size, 1.0)
