"""All selections of an instance in the Frobenius norm: those that must be looked at exactly."""

import math
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attnmargin.attention.score import high_tokens, optimal_tokens
from attnmargin.attention.softmax import sequences
from attnmargin.base.compiled import in_threads
from attnmargin.base.progress import Progress
from attnmargin.data.attention_data import AttentionData

# Beginnings that are walked one by one, and what each may leave to the exact solvers.
_BEGINNINGS, _FOUND = 64, 4096
# How often progress is told, in beginnings.
_TOLD = 16


@final
@dataclass(frozen=True, eq=False)
class Walked:
    """What a walk over all selections found; counts are of those that are clear and not local."""

    begun: Tensor  # int (·, N): beginnings and selections to be decided exactly; −1 where open
    searched: int
    feasible: int
    no_support: int
    not_all_support: int
    outside: int


def walk(
    data: AttentionData, visible: list[Tensor], level: float, progress: Progress | None = None
) -> Walked:
    """Visit all selections of one instance.

    Args:
        data: one instance, without equal tokens.
        visible: the tokens that each query can select.
        level: share of the margin by which a low token stands above high ones, inside of a cone.
        progress: called with the number of selections visited and their total.
    """
    from attnmargin.selections.walk_kernel import FULL, walk_selections

    tokens, begun = _arrays(data, level), _beginnings(visible)
    counts = np.zeros((len(begun), 7), np.int64)
    found = np.empty((len(begun), _FOUND, len(visible)), np.int64)
    total = math.prod(len(x) for x in visible)
    for k in range(0, len(begun), _TOLD):
        part = [x[k : k + _TOLD] for x in (begun, counts, found)]
        in_threads(lambda *own: walk_selections(*tokens, *own), part, len(part[0]), least=1)
        if progress is not None:
            progress(total * min(k + _TOLD, len(begun)) // len(begun), total)
    # A beginning that left too much to the exact solvers is left to them as a whole.
    over = counts[:, FULL] > 0
    counts[over] = 0
    left = [found[b, : counts[b, 5]] for b in np.flatnonzero(~over)]
    whole = np.full((int(over.sum()), len(visible)), -1)
    whole[:, : begun.shape[1]] = begun[over]
    rows = torch.from_numpy(np.concatenate((*left, whole)))
    return Walked(rows, *(int(x) for x in counts[:, :5].sum(0)))


def _beginnings(visible: list[Tensor]) -> NDArray[np.int64]:
    """List selections of the first sequences, enough to share among threads, ``(B, k)``."""
    k, size = 0, 1
    while k < len(visible) and size < _BEGINNINGS:
        size *= len(visible[k])
        k += 1
    grid = torch.cartesian_prod(*visible[:k]) if k > 1 else visible[0].unsqueeze(-1)
    return np.asarray(grid)


def _arrays(data: AttentionData, level: float) -> tuple[object, ...]:
    """Prepare the arrays of the kernel: rows of a sequence are scaled to about length one."""
    flat = sequences(data)
    X, z = flat.relative[0].double(), flat.z[0].double()
    N, T, d = X.shape
    apart = torch.cdist(X, X, compute_mode="donot_use_mm_for_euclid_dist").amax((-2, -1))
    size = apart * z.norm(dim=-1)
    scale = torch.where(size > 0, 1.0 / size, 1.0)
    width = apart.where(apart > 0, 1.0)[:, None, None]
    scaled = (X / width).reshape(-1, d)
    unit = z / z.norm(dim=-1, keepdim=True).clamp_min(1e-300)
    gram = (scaled @ scaled.mT) * (unit @ unit.mT).repeat_interleave(T, 0).repeat_interleave(T, 1)
    inner = data.z.shape[:-1]
    every = torch.arange(T).reshape(T, *[1] * len(inner)).expand(T, *inner)
    seen = ~flat.unseen()[0]
    allowed = every.where(seen.mT.reshape(every.shape), optimal_tokens(data))
    high = high_tokens(data, allowed).reshape(T, N, T).transpose(0, 1)
    best = optimal_tokens(data).flatten()
    arrays = (gram, scale, seen, high, best)
    return (*(x.contiguous().numpy() for x in arrays), level)
