"""The faces of norm balls: where every W with ``⟨V, W⟩ = ‖W‖ ‖V‖_dual`` lies.

A face is described by the directions along which such a W can move and keep its norm, to first
order. They form a space of matrices ``D = L S Rᵀ``, or of matrices that are zero outside a set of
entries.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from attnmargin.margin.norms import ColumnMax, Max, Norm, Nuclear, RowMax, Spectral, Sum

# Parts of V below this share of its dual norm, or this near to the largest, are not told apart
# from zero and from the largest: a relative gap of 1e-10 fixes W to 1e-5 elsewhere.
_SURE = 1e-5


class Face(ABC):
    """A space of matrices D with k coordinates."""

    @abstractmethod
    def rows(self, left: Tensor, right: Tensor) -> Tensor:
        """Write ``left_iᵀ D right_i`` as rows ``(M, k)`` in the coordinates of D."""

    @abstractmethod
    def matrix(self, coordinates: Tensor) -> Tensor:
        """Build D ``(d, e)`` from its coordinates ``(k,)``."""


@final
@dataclass(frozen=True)
class _Entries(Face):
    """Matrices that are zero outside a set of entries, bool ``(d, e)``."""

    free: Tensor

    def rows(self, left: Tensor, right: Tensor) -> Tensor:
        i, j = self.free.nonzero(as_tuple=True)
        return left[:, i] * right[:, j]

    def matrix(self, coordinates: Tensor) -> Tensor:
        D = torch.zeros(self.free.shape, dtype=coordinates.dtype, device=coordinates.device)
        D[self.free] = coordinates
        return D


@final
@dataclass(frozen=True)
class _Between(Face):
    """Matrices ``L S Rᵀ`` with any S."""

    left: Tensor  # (d, r)
    right: Tensor  # (e, s)

    def rows(self, left: Tensor, right: Tensor) -> Tensor:
        return ((left @ self.left).unsqueeze(-1) * (right @ self.right).unsqueeze(-2)).flatten(1)

    def matrix(self, coordinates: Tensor) -> Tensor:
        S = coordinates.reshape(self.left.shape[1], self.right.shape[1])
        return self.left @ S @ self.right.mT


@final
@dataclass(frozen=True)
class _Symmetric(Face):
    """Matrices ``L S Rᵀ`` with symmetric S, in an orthonormal basis."""

    left: Tensor  # (d, r)
    right: Tensor  # (e, r)

    def _places(self) -> tuple[Tensor, Tensor, Tensor]:
        r = self.left.shape[1]
        i, j = torch.triu_indices(r, r, device=self.left.device)
        return i, j, torch.where(i == j, 0.5, 0.5**0.5)

    def rows(self, left: Tensor, right: Tensor) -> Tensor:
        outer = (left @ self.left).unsqueeze(-1) * (right @ self.right).unsqueeze(-2)
        i, j, size = self._places()
        return (outer + outer.mT)[:, i, j] * size

    def matrix(self, coordinates: Tensor) -> Tensor:
        i, j, size = self._places()
        half = coordinates.new_zeros(self.left.shape[1], self.left.shape[1])
        half[i, j] = coordinates * size
        return self.left @ (half + half.mT) @ self.right.mT


def face(norm: Norm, V: Tensor) -> Face:
    """Find the face that V ``(d, e)``, not zero, touches, in a norm that is not strictly convex.

    >>> V = torch.tensor([[2.0, 0.0], [0.0, 1.0]])
    >>> face(Max(), V).matrix(torch.ones(2)).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    V = V / norm.dual_value(V)
    size = V.abs()
    if isinstance(norm, Max):
        return _Entries(size <= _SURE)
    if isinstance(norm, Sum):
        return _Entries(size >= 1.0 - _SURE)
    if isinstance(norm, RowMax | ColumnMax):
        lengths = torch.linalg.vector_norm(
            V, dim=1 if isinstance(norm, RowMax) else 0, keepdim=True
        )
        return _Entries((lengths <= _SURE).expand_as(V))
    U, sigma, Vh = torch.linalg.svd(V)
    if isinstance(norm, Nuclear):
        r = int((sigma > 1.0 - _SURE).sum())
        return _Symmetric(U[:, :r], Vh[:r].mT)
    if isinstance(norm, Spectral):
        r = int((sigma > _SURE).sum())
        return _Between(U[:, r:], Vh[r:].mT)
    raise AssertionError(f"a strictly convex norm: {norm.name}")
