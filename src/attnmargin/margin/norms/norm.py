"""What a norm of W is: its value, its dual norm and its steepest direction."""

import math
from abc import ABC, abstractmethod
from typing import final

import torch
from torch import Tensor


class Norm(ABC):
    """A norm on matrices ``(*B, d, e)``; a vector is a matrix with one column."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name that :func:`as_norm` reads."""

    @abstractmethod
    def value(self, W: Tensor) -> Tensor:
        """Compute ``‖W‖``, shape ``(*B,)``."""

    @abstractmethod
    def dual_value(self, W: Tensor) -> Tensor:
        """Compute ``max ⟨W, V⟩`` over ``‖V‖ ≤ 1``, shape ``(*B,)``."""

    @abstractmethod
    def _steepest(self, D: Tensor) -> Tensor:
        """Compute the steepest direction of finite D, at least float32; zero for zero."""

    @final
    def steepest(self, D: Tensor) -> Tensor:
        """Return the V with ``‖V‖ ≤ 1`` that maximises ``⟨D, V⟩``, shape ``(*B, d, e)``.

        Steepest descent in this norm moves along ``−steepest(gradient)``. V has norm one, and
        ``⟨D, V⟩ = dual_value(D)``. Where D is zero, so is V; where D is not finite, V is NaN.

        Example:
            >>> import attnmargin as am
            >>> D = torch.tensor([[3.0, -4.0], [0.0, 0.0]])
            >>> am.norms.Max().steepest(D).tolist(), am.norms.RowMax().steepest(2 * D).tolist()
            ([[1.0, -1.0], [0.0, 0.0]], [[0.6000000238418579, -0.800000011920929], [0.0, 0.0]])
        """
        bad = ~torch.isfinite(D).all(-1, keepdim=True).all(-2, keepdim=True)
        V = self._steepest(D.to(working_dtype(D)).masked_fill(bad, 0.0))
        return V.masked_fill(bad, torch.nan).to(D.dtype)


def working_dtype(x: Tensor) -> torch.dtype:
    """Return the dtype to compute in: at least float32."""
    return torch.promote_types(x.dtype, torch.float32)


def scaled_norm(x: Tensor, p: float = 2.0) -> Tensor:
    """Compute the ℓp norm over the last dimension, scaled if powers would over- or underflow."""
    if x.shape[-1] == 0:
        return x.sum(-1)
    plain = torch.linalg.vector_norm(x, ord=p, dim=-1)
    if plain.numel() == 0:
        return plain
    power = 0.9 * math.log10(torch.finfo(x.dtype).max) / p
    least, largest = plain.aminmax()
    if not bool((least > 10.0**-power) & (largest < 10.0**power)):
        unsafe = ~((plain > 10.0**-power) & (plain < 10.0**power))
        rows = x[unsafe]  # mostly rows of zeros
        largest = rows.abs().amax(-1, keepdim=True)
        scaled = rows / largest.where(largest > 0, 1.0)
        again = largest.squeeze(-1) * torch.linalg.vector_norm(scaled, ord=p, dim=-1)
        plain = plain.masked_scatter(unsafe, again)
    return plain


def entrywise(W: Tensor, p: float) -> Tensor:
    """Compute ``(Σ |W_ij|^p)^{1/p}``, shape ``(*B,)``."""
    return scaled_norm(W.flatten(-2), p)


def scaled(D: Tensor) -> Tensor:
    """Divide each matrix by its largest entry, so that powers and products stay finite."""
    largest = D.abs().amax((-2, -1), keepdim=True)
    return D / largest.where(largest > 0, 1.0)


def unit_rows(D: Tensor, p: float = 2.0) -> Tensor:
    """Divide each row by its ℓp norm; a row of zeros stays."""
    largest = D.abs().amax(-1, keepdim=True)
    D = D / largest.where(largest > 0, 1.0)  # the norm of subnormal numbers loses digits
    size = scaled_norm(D, p).unsqueeze(-1)
    return D / size.where(size > 0, 1.0)
