"""Heads of the text classifier of paper B."""

from collections.abc import Sequence
from typing import Any

import torch

from attnmargin.base.errors import InputError
from attnmargin.models.head import Head
from attnmargin.text.classifier.transformer import TextClassifier


@torch.no_grad()
def classifier_heads(
    model: TextClassifier, ids: Any, words: list[list[str]] | None = None
) -> list[Head]:
    """Read the heads of a :class:`attnmargin.text.TextClassifier` on some texts.

    Args:
        ids: token ids ``(n, T)``, padded; or a list of unequal rows.
        words: the tokens as strings.

    Returns:
        All heads, by layer. In the last layer only the first position is a query: the classifier
        reads no other.

    Example:
        >>> import attnmargin as am, torch
        >>> shape = am.text.Shape(vocabulary=50, layers=2, heads=2, width=16, hidden=32, length=8)
        >>> own = am.models.classifier_heads(am.text.TextClassifier(shape), [[2, 7, 8, 3], [2, 3]])
        >>> len(own), own[0].hidden.shape, own[3].visible(0).any(-1).tolist()
        (4, torch.Size([2, 4, 16]), [True, False, False, False])
    """
    rows = [torch.as_tensor(row) for row in ids]
    if not rows or any(row.ndim != 1 or not len(row) for row in rows):
        raise InputError("ids", "no text, or an empty one", "rows of token ids")
    device = next(model.parameters()).device
    padded = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=model.padding)
    training = model.training
    model.eval()
    x, seen = model.embed(padded.to(device))
    inside = seen[:, 0, 0]
    blocks: Sequence[Any] = list(model.blocks)
    found = []
    for layer, block in enumerate(blocks):
        mask = inside if layer < len(blocks) - 1 else _first_alone(inside)
        found += _of_layer(block.attention, x, mask, layer, words)
        x = block(x, block.attention(x, x, seen))
    model.train(training)
    return found


def _first_alone(inside: torch.Tensor) -> torch.Tensor:
    """Let only the first position see the tokens, ``(n, T, T)``."""
    mask = inside.new_zeros(*inside.shape, inside.shape[-1])
    mask[:, 0] = inside
    return mask


def _of_layer(
    own: Any, x: torch.Tensor, mask: torch.Tensor, layer: int, words: list[list[str]] | None
) -> list[Head]:
    weights = {name: W.detach().unflatten(0, (own.heads, -1)).clone()
               for name, W in own.projections().items()}  # fmt: skip
    lengths = mask.any(1).sum(-1) if mask.ndim == 3 else mask.sum(-1)
    names = words or [[str(t) for t in range(int(length))] for length in lengths]
    return [
        Head(weights["W_Q"][h], weights["W_K"][h], x, mask, layer=layer, index=h, words=names)
        for h in range(own.heads)
    ]
