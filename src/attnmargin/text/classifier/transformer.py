"""The transformer classifier of paper B: post-norm, no biases, read-out at the first position."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, final

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attnmargin.base.checks import check_whole
from attnmargin.base.errors import InputError
from attnmargin.text.batches import Packed


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


Pair = tuple[Tensor, Tensor]


def _each(q: Tensor, k: Tensor, v: Tensor, starts: Pair) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Cut texts apart."""
    ends = (pairwise(own.tolist()) for own in starts)
    for (a, b), (c, d) in zip(*ends, strict=True):
        yield q[a:b], k[c:d], v[c:d]


@final
class Attention(nn.Module):
    """Multi-head softmax attention; ``W_Q``, ``W_K`` and ``W_V`` are thirds of one matrix."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads, self.dropout = shape.heads, shape.dropout
        self.inner = nn.Linear(shape.width, 3 * shape.width, bias=False)
        self.outer = nn.Linear(shape.width, shape.width, bias=False)

    def parts(self, asking: Tensor, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Compute queries ``(…, heads, width / heads)`` of some tokens, keys and values of all."""
        if asking is x:
            q, k, v = self.inner(x).unflatten(-1, (3, self.heads, -1)).unbind(-3)
            return q, k, v
        first, others = self.inner.weight.split((len(self.outer.weight), 2 * x.shape[-1]))
        k, v = F.linear(x, others).unflatten(-1, (2, self.heads, -1)).unbind(-3)
        return F.linear(asking, first).unflatten(-1, (self.heads, -1)), k, v

    @property
    def _dropped(self) -> float:
        return self.dropout if self.training else 0.0

    def forward(self, asking: Tensor, x: Tensor, seen: Tensor | None) -> Tensor:
        """Mix tokens ``x`` for ``asking`` ones; seen: bool, which of them are not padding."""
        q, k, v = (part.transpose(1, 2) for part in self.parts(asking, x))
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=seen, dropout_p=self._dropped)
        out: Tensor = self.outer(mixed.transpose(1, 2).flatten(-2))
        return out

    def packed(self, asking: Tensor, x: Tensor, starts: Pair, sizes: tuple[int, int]) -> Tensor:
        """Mix tokens of texts that follow each other.

        Args:
            asking, x: tokens ``(N, width)``.
            starts: int32, where the texts begin among both, and the end; tokens after it are
                filler.
            sizes: lengths that no text exceeds.
        """
        q, k, v = self.parts(asking, x)
        # The kernel leaves the gradients of keys and values after the end as they are in memory.
        inside = (torch.arange(len(x), device=x.device) < starts[1][-1])[:, None, None]
        k, v = (part.where(inside, 0.0) for part in (k, v))
        if q.device.type == "cuda":
            mixed = torch.ops.aten._flash_attention_forward(
                q, k, v, *starts, *sizes, self._dropped, False, False
            )[0]
        else:
            mixed = torch.cat([self._mixed(*text) for text in _each(q, k, v, starts)])
        out: Tensor = self.outer(mixed.flatten(-2))
        return out

    def _mixed(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Mix the tokens of one text, ``(T, heads, width / heads)``."""
        q, k, v = (part.transpose(0, 1) for part in (q, k, v))
        return F.scaled_dot_product_attention(q, k, v, dropout_p=self._dropped).transpose(0, 1)

    def weights(self, x: Tensor, seen: Tensor | None) -> Tensor:
        """Compute the attention of every position, ``(B, heads, T, T)``."""
        q, k, _ = (part.transpose(1, 2) for part in self.parts(x, x))
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

    Dropout acts on attention weights, and on what attention and the hidden layer add.
    """

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.attention = Attention(shape)
        self.up = nn.Linear(shape.width, shape.hidden, bias=False)
        self.down = nn.Linear(shape.hidden, shape.width, bias=False)
        self.first = nn.LayerNorm(shape.width, bias=False)
        self.second = nn.LayerNorm(shape.width, bias=False)
        self.dropout = nn.Dropout(shape.dropout)

    def forward(self, x: Tensor, mixed: Tensor) -> Tensor:
        """Add what attention returns for the tokens x, then the hidden layer."""
        x = self.first(x + self.dropout(mixed))
        hidden = self.down(F.gelu(self.up(x)))
        out: Tensor = self.second(x + self.dropout(hidden))
        return out


@final
class TextClassifier(nn.Module):
    """A classifier from token ids ``(B, T)`` to logits ``(B, classes)`` (paper B, Section 4).

    Two classes have one sigmoid output: their logits are 0 and that.

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
        outputs = 1 if shape.classes == 2 else shape.classes
        self.head = nn.Linear(shape.width, outputs, bias=False)

    def embed(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """Compute embeddings ``(B, T, width)``, and mark non-padding tokens, ``(B, 1, 1, T)``."""
        x = self.tokens(ids) + self.positions.weight[: ids.shape[1]]
        return x, (ids != self.padding)[:, None, None, :]

    def forward(self, ids: Tensor) -> Tensor:
        x, seen = self.embed(ids)
        blocks: Any = self.blocks
        for block in blocks[:-1]:
            x = block(x, block.attention(x, x, seen))
        first, last = x[:, :1], blocks[-1]  # the first position alone is read
        return self._logits(last(first, last.attention(first, x, seen))[:, 0])

    def packed(self, batch: Packed) -> Tensor:
        """Classify texts that follow each other without padding; on a GPU, in half precision."""
        x = self.tokens(batch.ids) + self.positions(batch.positions)
        blocks: Any = self.blocks
        starts, long = batch.starts, (batch.longest, batch.longest)
        for block in blocks[:-1]:
            x = block(x, block.attention.packed(x, x, (starts, starts), long))
        own, last = starts[: batch.texts + 1], blocks[-1]
        first = x[own[:-1].long()]
        single = torch.arange(batch.texts + 1, dtype=starts.dtype, device=starts.device)
        mixed = last.attention.packed(first, x, (single, own), (1, batch.longest))
        return self._logits(last(first, mixed))

    def _logits(self, x: Tensor) -> Tensor:
        out: Tensor = self.head(x)
        return F.pad(out, (1, 0)) if self.shape.classes == 2 else out

    @torch.no_grad()
    def attention(self, ids: Tensor) -> Tensor:
        """Compute attention of the first position, averaged over heads, ``(B, layers, T)``."""
        x, seen = self.embed(ids)
        found: list[Tensor] = []
        blocks: Any = self.blocks
        for block in blocks:
            found.append(block.attention.weights(x, seen)[:, :, 0].mean(1))
            x = block(x, block.attention(x, x, seen))
        return torch.stack(found, 1)

    def projections(self) -> dict[str, Tensor]:
        """Flatten the entries of all ``W_Q``, all ``W_K`` and all ``W_V`` into one vector each."""
        blocks: Any = self.blocks
        parts = [block.attention.projections() for block in blocks]
        return {name: torch.cat([p[name].flatten() for p in parts]) for name in parts[0]}

    def factors(self) -> tuple[Tensor, Tensor]:
        """Return K and Q of every head, ``(layers, heads, width, width / heads)`` each.

        The logits of a head are ``xᵀ Q Kᵀ x′``, over the square root of the width of the head.
        """
        blocks: Any = self.blocks
        parts = [block.attention.projections() for block in blocks]
        K, Q = (
            torch.stack([own[name] for own in parts]).unflatten(1, (self.shape.heads, -1)).mT
            for name in ("W_K", "W_Q")
        )
        return K, Q

    @torch.no_grad()
    def shrink_factors(self, factor: float) -> None:
        """Multiply ``W_K`` and ``W_Q`` of every head by a factor, in place."""
        blocks: Any = self.blocks
        for block in blocks:
            W_Q, W_K, _ = block.attention.inner.weight.chunk(3)
            W_Q.mul_(factor)
            W_K.mul_(factor)
