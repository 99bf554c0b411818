"""Norms of the singular values of W: their sum, and the largest."""

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from attnmargin.margin.norms.norm import Norm, scaled


@final
@dataclass(frozen=True)
class Nuclear(Norm):
    """Sum of singular values; dual: the largest one. Gradient descent on (K, Q) (paper A)."""

    @property
    def name(self) -> str:
        return "nuc"

    def value(self, W: Tensor) -> Tensor:
        return _singular_values(W).sum(-1)

    def dual_value(self, W: Tensor) -> Tensor:
        return _singular_values(W).amax(-1)

    def _steepest(self, D: Tensor) -> Tensor:
        """Compute ``u₁ v₁ᵀ`` of the largest singular value."""
        U, sigma, Vh = torch.linalg.svd(scaled(D), full_matrices=False)
        first = U[..., :, :1] @ Vh[..., :1, :]
        return first.where(sigma[..., :1, None] > 0, 0.0)


@final
@dataclass(frozen=True)
class Spectral(Norm):
    """The largest singular value; dual: their sum. Muon and Shampoo without memory."""

    @property
    def name(self) -> str:
        return "spectral"

    def value(self, W: Tensor) -> Tensor:
        return _singular_values(W).amax(-1)

    def dual_value(self, W: Tensor) -> Tensor:
        return _singular_values(W).sum(-1)

    def _steepest(self, D: Tensor) -> Tensor:
        """Compute the polar factor ``U Vᵀ``, over singular values that are not rounding."""
        U, sigma, Vh = torch.linalg.svd(scaled(D), full_matrices=False)
        least = max(D.shape[-2:]) * torch.finfo(D.dtype).eps * sigma[..., :1]
        return (U * (sigma > least).to(U.dtype).unsqueeze(-2)) @ Vh


def _singular_values(W: Tensor) -> Tensor:
    """Compute singular values; NaN, not an error, for a matrix that is not finite."""
    bad = ~torch.isfinite(W).all(-1).all(-1)
    values = torch.linalg.svdvals(W.masked_fill(bad[..., None, None], 0.0))
    return values.masked_fill(bad.unsqueeze(-1), torch.nan)
