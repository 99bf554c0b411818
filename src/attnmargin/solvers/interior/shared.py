"""Rows of one large problem that share queries: Schur matrices for fewer operations.

The work of a method in lockstep grows with the square of the rows, times the entries of W. Rows of
the same query need most of it once. For a few hundred rows that is ten to forty times less.
"""

from functools import cached_property
from typing import final

import torch
from torch import Tensor

# From this many rows on it pays to look for shared queries.
MANY = 200


@final
class SharedQueries:
    """The different queries ``(Q, e)`` of M rows, and which row has which."""

    def __init__(self, query: Tensor, owner: Tensor) -> None:
        self.query, self.owner = query, owner
        order = owner.argsort(stable=True)
        count = owner.bincount(minlength=len(query))
        first = count.cumsum(0) - count
        self.slot = torch.empty_like(owner)
        self.slot[order] = torch.arange(len(owner), device=owner.device) - first[owner[order]]
        self.most = int(count.max())
        self.groups = order.split(count.tolist())

    def symmetric_products(
        self, c: Tensor, z: Tensor, Y: Tensor, sums: Tensor, basis: Tensor
    ) -> Tensor:
        """Compute ``⟨B_i, T_j⟩``, ``(M, M)``, of the nuclear norm.

            B_i = c_i z_iᵀ + z_i c_iᵀ,   T_j = (B_j Y + Y B_j) / sums (entrywise)

        It is ``2 c_iᵀ T_j z_i``: ``T_j z`` is computed for every query, not for every row.

        Args:
            c, z: ``(M, q)``; z are the queries in the basis ``(e, q)``.
            Y, sums: symmetric, ``(q, q)``.
        """
        half, T, image, left = self._room
        columns, turned = c.mT.contiguous(), z.mT.contiguous()
        torch.mul((Y @ columns).unsqueeze(1), turned, out=half)
        half.addcmul_((Y @ turned).unsqueeze(1), columns)
        torch.add(half, half.transpose(0, 1), out=T)
        T.mul_(sums.reciprocal().unsqueeze(-1))
        torch.mm(self.query @ basis, T.flatten(1), out=image)
        left[self.owner, self.slot] = 2.0 * c
        return (left @ image.unflatten(1, columns.shape))[self.owner, self.slot]

    @cached_property
    def _room(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Reserve the large arrays once: new memory costs more than the arithmetic in it."""
        (Q, q), M = self.query.shape, len(self.owner)
        half, T = self.query.new_empty(2, q, q, M)
        return half, T, self.query.new_empty(Q, q * M), self.query.new_zeros(Q, self.most, q)

    def weighted_products(self, left: Tensor, weight: Tensor) -> Tensor:
        """Compute ``Σ_ab weight_ab left_ia left_ja z_ib z_jb``, ``(M, M)``, of ℓp norms.

        Args:
            left: ``(M, d)``.
            weight: of the entries of W, ``(d, e)``.
        """
        found = left.new_empty(len(left), len(left))
        for z, group in zip(self.query, self.groups, strict=True):
            scale = (self.query * z) @ weight.mT  # (Q, d)
            found[group] = left[group] @ (left * scale[self.owner]).mT
        return found


def shared_queries(z: Tensor) -> SharedQueries | None:
    """Find the queries of one large problem, z ``(1, M, e)``; None if rows do not share them."""
    if z.shape[0] != 1 or z.shape[1] < MANY:
        return None
    query, owner = torch.unique(z[0], dim=0, return_inverse=True)
    return SharedQueries(query, owner) if 2 * len(query) <= z.shape[1] else None


def span(vectors: Tensor) -> tuple[Tensor, Tensor]:
    """Return an orthonormal basis ``(B, e, q)`` of a space with the vectors, and coordinates.

    Vectors of a single large problem that repeat count once.
    """
    large = len(vectors) == 1 and vectors.shape[-2] >= MANY
    own = torch.unique(vectors[0], dim=0).unsqueeze(0) if large else vectors
    count, e = own.shape[-2:]
    if e <= count:
        identity = torch.eye(e, dtype=vectors.dtype, device=vectors.device)
        return identity.expand(len(vectors), e, e), vectors
    basis = torch.linalg.qr(own.mT).Q
    return basis, vectors @ basis
