"""The models of paper D with all parameters trained: one attention layer (1), and two (36)."""

from typing import final

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attnmargin.errors import InputError


@final
class TokenModel(nn.Module):
    """``f = softmax(E_X p)ᵀ E_X v``, with a layer of self-attention before it if ``layers`` is 2.

        E′_X = LayerNorm(softmax(E_X E_Xᵀ) E_X + E_X),   f = softmax(E′_X p)ᵀ E′_X v

    Ids of tokens are below ``vocabulary``, which itself stands for padding. Starts as in the paper:
    ``E_s, p ~ N(0, I/d)``, v of length one.

    Example:
        >>> import torch
        >>> from attnmargin.token_models import TokenModel
        >>> model = TokenModel(vocabulary=5, d=8, layers=2)
        >>> model(torch.tensor([[0, 1, 4], [2, 5, 5]])).shape
        torch.Size([2])
    """

    def __init__(self, vocabulary: int, d: int, layers: int = 1) -> None:
        super().__init__()
        if layers not in (1, 2):
            raise InputError("layers", repr(layers), "1 or 2")
        self.vocabulary, self.layers = vocabulary, layers
        self.E = nn.Parameter(torch.randn(vocabulary, d) / d**0.5)
        self.p = nn.Parameter(torch.randn(d) / d**0.5)
        self.v = nn.Parameter(F.normalize(torch.randn(d), dim=0))

    def forward(self, ids: Tensor) -> Tensor:
        seen = ids < self.vocabulary
        places = ids.clamp_max(self.vocabulary - 1)
        a, b = self._scores(places, seen)
        q = torch.softmax(a.masked_fill(~seen, -torch.inf), -1)
        return (q * b).sum(-1)

    def _scores(self, places: Tensor, seen: Tensor) -> tuple[Tensor, Tensor]:
        """Products with p and v of every place, ``(B, T)``."""
        if self.layers == 1:  # those of the vocabulary are enough: no vector is gathered
            return (self.E @ self.p)[places], (self.E @ self.v)[places]
        x = F.embedding(places, self.E)
        mixed = F.scaled_dot_product_attention(x, x, x, seen[:, None, :], scale=1.0)
        x = F.layer_norm(mixed + x, x.shape[-1:])
        return x @ self.p, x @ self.v

    @torch.no_grad()
    def products(self) -> tuple[Tensor, Tensor]:
        """``⟨E_s, p⟩`` and ``⟨E_s, v⟩`` of the vocabulary, ``(S,)`` each."""
        return self.E @ self.p, self.E @ self.v
