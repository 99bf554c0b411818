"""The span of ``(e_z − e_z′) h_jᵀ`` over words that follow one context: where W stays finite."""

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from attnmargin.decoders.contexts import NextWords

# A direction depends on the others if its eigenvalue in the Gram matrix is below this share of
# the largest.
_RANK = 1e-12


@final
@dataclass(frozen=True, eq=False)
class Inside:
    """An orthonormal basis of the span, for a batch ``(B, …)``; missing directions are zero."""

    basis: Tensor  # (B, V d, r)
    exists: Tensor  # bool (B, r)
    logits: Tensor  # (B, m V, r): h_jᵀ of each basis matrix

    def coordinates(self, W: Tensor) -> Tensor:
        """Compute the coordinates ``(…, B, r)`` of the part of W inside the span."""
        return (self.basis.mT @ W.flatten(-2).unsqueeze(-1))[..., 0]

    def matrix(self, coordinates: Tensor, shape: tuple[int, int]) -> Tensor:
        """Build the matrices ``(…, B, *shape)`` of coordinates."""
        return (self.basis @ coordinates.unsqueeze(-1))[..., 0].unflatten(-1, shape)

    def part(self, W: Tensor) -> Tensor:
        """Project W ``(…, B, V, d)`` onto the span."""
        return self.matrix(self.coordinates(W), (W.shape[-2], W.shape[-1]))


def inside(data: NextWords) -> Inside:
    """Find the basis, for data of one batch dimension."""
    follows, h = data.follows, data.contexts
    B, m, V = follows.shape
    most = int(follows.sum(-1).max())
    order = follows.to(torch.uint8).argsort(dim=-1, descending=True, stable=True)[..., :most]
    there = follows.gather(-1, order)
    unit = torch.eye(V, dtype=h.dtype)
    left = (unit[order[..., :1]] - unit[order[..., 1:]]) * there[..., 1:].unsqueeze(-1)
    left = left.flatten(-3, -2)  # (B, m (S − 1), V)
    right = h.repeat_interleave(most - 1, dim=-2)
    if not left.shape[-2]:
        none = h.new_zeros(B, V * h.shape[-1], 0)
        return Inside(none, torch.zeros(B, 0, dtype=torch.bool), h.new_zeros(B, m * V, 0))
    values, vectors = torch.linalg.eigh((left @ left.mT) * (right @ right.mT))
    exists = values > _RANK * values[..., -1:].clamp_min(torch.finfo(h.dtype).tiny)
    scaled = vectors * (values.where(exists, 1.0).rsqrt() * exists).unsqueeze(-2)
    basis = torch.einsum("bnv,bnd,bnr->bvdr", left, right, scaled)
    logits = torch.einsum("bvdr,bmd->bmvr", basis, h)
    return Inside(basis.flatten(1, 2), exists, logits.flatten(1, 2))
