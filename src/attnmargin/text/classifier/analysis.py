"""Analysis of a trained classifier: how sparse its weights are, and what it attends to."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from attnmargin.text.classifier.transformer import TextClassifier
from attnmargin.text.pieces import Pieces

# Entries of at least this size count as large (paper B, figure 8).
LARGE = 0.06


def sparsity(model: TextClassifier, edges: NDArray[Any]) -> dict[str, dict[str, Any]]:
    """Compute histograms of ``|W_K|``, ``|W_Q|`` and ``|W_V|`` over all layers (paper B, figure 8).

    Returns:
        For each matrix, the counts between ``edges``, the number of entries of at least 0.06, the
        number of all entries, and the largest entry.
    """
    found = {}
    for name, entries in model.projections().items():
        sizes = entries.detach().abs().float().cpu().numpy()
        found[name] = {
            "counts": np.histogram(sizes, edges)[0].tolist(),
            "large": int((sizes >= LARGE).sum()),
            "all": int(sizes.size),
            "largest": float(sizes.max()),
        }
    return found


def attention_shares(model: TextClassifier, pieces: Pieces) -> list[NDArray[np.float64]]:
    """Compute the attention of the first position, mean over heads and layers, one array per text.

    [CLS] and [SEP] are excluded; the other shares sum to one.
    """
    model.eval()
    device = next(model.parameters()).device
    found = []
    for i in range(len(pieces)):
        ids = pieces.row(i).astype(np.int64)
        s = model.attention(torch.from_numpy(ids)[None].to(device))[0].mean(0)
        inner = s[1:-1].double().cpu().numpy()
        found.append(inner / inner.sum())
    return found


def pivotal_shares(
    shares: Sequence[NDArray[np.float64]], words: Sequence[Sequence[str]], pivotal: Sequence[str]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Find the share of the pivotal word of every text, and its rank among the words, from 1."""
    share, rank = [], []
    for s, text, word in zip(shares, words, pivotal, strict=True):
        own = np.array([token == word for token in text])
        share.append(float(s[own].max()))
        rank.append(1 + int((s > s[own].max()).sum()))
    return np.array(share), np.array(rank)
