"""Embeddings of a vocabulary, checked, and those of the tokens of sequences."""

from torch import Tensor

from attnmargin.base.arrays import Array, broadcast, finite, floats
from attnmargin.base.errors import InputError


def embedding_table(E: Array, K: int | None = None, *, batched: bool = True) -> Tensor:
    """Check embeddings ``(*B, K, d)``, or raise InputError.

    Args:
        K: size of the vocabulary, if it is known.
        batched: whether batch dimensions are allowed.

    >>> embedding_table([[1.0, 0.0], [0.0, 1.0]], 2).shape
    torch.Size([2, 2])
    """
    table = finite("E", floats("E", E))
    other = K is not None and table.ndim > 1 and table.shape[-2] != K
    if table.ndim < 2 or 0 in table.shape[-2:] or other or (table.ndim > 2 and not batched):
        size = f"{'*B, ' if batched else ''}{'K' if K is None else K}, d"
        raise InputError("E", f"shape {tuple(table.shape)}", f"embeddings ({size})")
    return table


def embedded(table: Tensor, ids: Tensor) -> Tensor:
    """Look up ids ``(*B, n, T)`` in tables ``(*B, K, d)``: ``(*B, n, T, d)``."""
    batch = broadcast({"E": table.shape[:-2], "sequences": ids.shape[:-2]})
    index = ids.flatten(-2).expand(*batch, -1).unsqueeze(-1)
    rows = table.expand(*batch, *table.shape[-2:]).take_along_dim(index, -2)
    return rows.unflatten(-2, ids.shape[-2:])
