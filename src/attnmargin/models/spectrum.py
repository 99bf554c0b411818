"""The shape of a head's matrices: singular values, rank, balance of keys and queries."""

from dataclasses import dataclass
from typing import final

import torch

from attnmargin.models.head import Head

# Singular values above this share of the largest count for the rank.
_RANK = 1e-6


@final
@dataclass(frozen=True)
class Spectrum:
    """Norms of W, or of W at distance 0 if positions are rotary."""

    singular: list[float]  # over the largest, at most m
    rank: int
    effective: float  # exp of the entropy of the singular values, as shares
    nuclear: float  # ‖W‖_* / ‖W‖_F: 1 for rank one, √rank if all singular values are equal
    frobenius: float
    balance: float  # (‖W_K‖ − ‖W_Q‖) / (‖W_K‖ + ‖W_Q‖), Frobenius norms, without biases


def spectrum(head: Head) -> Spectrum:
    """Compute norms of a head.

    Weight decay on W_K and W_Q drives them to equal length: their *balance* goes to 0. Few large
    singular values say that a product of two matrices was trained, which the nuclear norm rules.
    """
    if head.rotary is None:
        singular = head.singular_values()
    else:
        singular = torch.linalg.svdvals(head.W_at(0).double())[: head.m]
    total = singular.sum().clamp_min(torch.finfo(singular.dtype).tiny)
    shares = singular / total
    length = torch.linalg.vector_norm(singular)
    keys, queries = (float(torch.linalg.matrix_norm(W.double())) for W in (head.W_K, head.W_Q))
    largest = float(singular.max()) or 1.0
    return Spectrum(
        [float(s) / largest for s in singular],
        int((singular > _RANK * largest).sum()),
        float(torch.special.entr(shares).sum().exp()),
        float(total / length) if float(length) else 0.0,
        float(length),
        (keys - queries) / (keys + queries) if keys + queries else 0.0,
    )
