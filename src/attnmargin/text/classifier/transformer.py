"""The transformer classifier of paper B: post-norm, no biases, read-out at the first position."""

from dataclasses import asdict, dataclass
from typing import Any, final

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attnmargin.base.checks import check_whole
from attnmargin.base.errors import InputError


@final
@dataclass(frozen=True)
class Shape:
    """Sizes of a classifier; paper B uses layers = heads = 3, 4 or 6."""

    vocabulary: int
    layers: int = 3
    heads: int = 3
    width: int = 384
    hidden: int = 1536
    length: int = 512
    dropout: float = 0.2
    classes: int = 2

    def __post_init__(self) -> None:
        check_whole(**{name: value for name, value in asdict(self).items() if name != "dropout"})
        if self.width % self.heads:
            got = f"{self.heads} heads for width {self.width}"
            raise InputError("heads", got, "a number that divides the width")
        if not isinstance(self.dropout, int | float) or not 0.0 <= self.dropout < 1.0:
            raise InputError("dropout", repr(self.dropout), "a number from 0 to below 1")


@final
class Attention(nn.Module):
    """Multi-head softmax attention; ``W_Q``, ``W_K`` and ``W_V`` are thirds of one matrix."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads, self.dropout = shape.heads, shape.dropout
        self.inner = nn.Linear(shape.width, 3 * shape.width, bias=False)
        self.outer = nn.Linear(shape.width, shape.width, bias=False)

    def parts(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Compute queries, keys and values, ``(B, heads, T, width / heads)``."""
        split = self.inner(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        return split[0], split[1], split[2]

    def forward(self, x: Tensor, seen: Tensor | None) -> Tensor:
        q, k, v = self.parts(x)
        dropped = self.dropout if self.training else 0.0
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=seen, dropout_p=dropped)
        out: Tensor = self.outer(mixed.transpose(1, 2).flatten(-2))
        return out

    def weights(self, x: Tensor, seen: Tensor | None) -> Tensor:
        """Compute the attention of every position, ``(B, heads, T, T)``."""
        q, k, _ = self.parts(x)
        logits = q @ k.mT / q.shape[-1] ** 0.5
        if seen is not None:
            logits = logits.masked_fill(~seen, -torch.inf)
        return torch.softmax(logits, -1)

    def projections(self) -> dict[str, Tensor]:
        """Return ``W_Q``, ``W_K`` and ``W_V`` by name, ``(width, width)`` each."""
        parts = self.inner.weight.chunk(3)
        return dict(zip(("W_Q", "W_K", "W_V"), parts, strict=True))


@final
class Block(nn.Module):
    """Attention and a hidden layer, each with a residual connection and then LayerNorm.

    Dropout acts on attention weights, hidden units and residual branches, as in PyTorch's layer.
    """

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.attention = Attention(shape)
        self.up = nn.Linear(shape.width, shape.hidden, bias=False)
        self.down = nn.Linear(shape.hidden, shape.width, bias=False)
        self.first = nn.LayerNorm(shape.width, bias=False)
        self.second = nn.LayerNorm(shape.width, bias=False)
        self.dropout = nn.Dropout(shape.dropout)

    def forward(self, x: Tensor, seen: Tensor | None) -> Tensor:
        x = self.first(x + self.dropout(self.attention(x, seen)))
        hidden = self.dropout(F.relu(self.up(x)))
        out: Tensor = self.second(x + self.dropout(self.down(hidden)))
        return out


@final
class TextClassifier(nn.Module):
    """A classifier from token ids ``(B, T)`` to logits ``(B, classes)`` (paper B, Section 4).

    Example:
        >>> import torch
        >>> from attnmargin.text.classifier.transformer import Shape, TextClassifier
        >>> model = TextClassifier(Shape(vocabulary=50, layers=2, heads=2, width=16, hidden=32))
        >>> model(torch.tensor([[2, 7, 8, 3], [2, 9, 3, 0]])).shape
        torch.Size([2, 2])
    """

    def __init__(self, shape: Shape, padding: int = 0) -> None:
        super().__init__()
        self.shape, self.padding = shape, padding
        self.tokens = nn.Embedding(shape.vocabulary, shape.width)
        self.positions = nn.Embedding(shape.length, shape.width)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.head = nn.Linear(shape.width, shape.classes, bias=False)

    def embed(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """Compute embeddings ``(B, T, width)``, and mark non-padding tokens, ``(B, 1, 1, T)``."""
        x = self.tokens(ids) + self.positions.weight[: ids.shape[1]]
        return x, (ids != self.padding)[:, None, None, :]

    def forward(self, ids: Tensor) -> Tensor:
        x, seen = self.embed(ids)
        for block in self.blocks:
            x = block(x, seen)
        logits: Tensor = self.head(x[:, 0])
        return logits

    @torch.no_grad()
    def attention(self, ids: Tensor) -> Tensor:
        """Compute attention of the first position, averaged over heads, ``(B, layers, T)``."""
        x, seen = self.embed(ids)
        found = []
        for block in self.blocks:
            found.append(block.attention.weights(x, seen)[:, :, 0].mean(1))  # type: ignore[union-attr, operator]
            x = block(x, seen)
        return torch.stack(found, 1)

    def projections(self) -> dict[str, Tensor]:
        """Flatten the entries of all ``W_Q``, all ``W_K`` and all ``W_V`` into one vector each."""
        blocks: Any = self.blocks
        parts = [block.attention.projections() for block in blocks]
        return {name: torch.cat([p[name].flatten() for p in parts]) for name in parts[0]}
