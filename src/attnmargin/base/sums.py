"""Sums of products in twice the precision of their numbers."""

import torch
from torch import Tensor

# Splits a float64 into two halves whose products are exact (Dekker).
_SPLIT = 2.0**27 + 1.0


def accurate_dot(X: Tensor, v: Tensor) -> Tensor:
    """Compute ``Σ_c X_c v_c`` over the last dimension, as if in twice the precision, rounded once.

    Example:
        >>> import torch
        >>> from attnmargin.base.sums import accurate_dot
        >>> X = torch.tensor([1e17, 1.0, -1e17], dtype=torch.float64)
        >>> float(accurate_dot(X, torch.ones_like(X)))
        1.0
    """
    if X.dtype != torch.float64:
        return accurate_dot(X.double(), v.double()).to(X.dtype)
    product, error = _product(X, v)
    total, rest = torch.zeros_like(product[..., 0]), error.sum(-1)
    for term in product.unbind(-1):
        total, lost = _sum(total, term)
        rest = rest + lost
    return total + rest


def _product(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Return ``a b`` rounded, and what rounding took."""
    product = a * b
    (a_high, a_low), (b_high, b_low) = _halves(a), _halves(b)
    error = a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low)
    return product, error


def _halves(x: Tensor) -> tuple[Tensor, Tensor]:
    scaled = _SPLIT * x
    high = scaled - (scaled - x)
    return high, x - high


def _sum(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Return ``a + b`` rounded, and what rounding took."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)
