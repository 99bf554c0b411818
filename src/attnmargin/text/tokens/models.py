"""The models of paper D with all parameters trained: one attention layer (1), and two (36)."""

from typing import final

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attnmargin.base.errors import InputError

# Lengths of p and v at the start: short enough for LayerNorm, or as the paper prints them.
SHORT, PAPER = "short", "paper"


def check_model(layers: int, affine: bool, start: str) -> None:
    """Raise InputError unless a token model can have these options."""
    if layers not in (1, 2):
        raise InputError("layers", repr(layers), "1 or 2")
    if not isinstance(affine, bool):
        raise InputError("affine", repr(affine), "True or False")
    if affine and layers == 1:
        raise InputError("affine", "True with one layer", "two layers, which have a LayerNorm")
    if start not in (SHORT, PAPER):
        raise InputError("start", repr(start), f"{SHORT!r} or {PAPER!r}")


@final
class TokenModel(nn.Module):
    """``f = softmax(E_X p)ᵀ E_X v``, preceded by a self-attention layer if ``layers`` is 2.

        E′_X = LayerNorm(softmax(E_X E_Xᵀ) E_X + E_X),   f = softmax(E′_X p)ᵀ E′_X v

    Token ids are below ``vocabulary``; the id ``vocabulary`` itself is padding. Initialisation
    follows the paper: ``E_s, p ~ N(0, I/d)``, v of length one. LayerNorm scales every E′_s to
    length √d, so with two layers p and v start shorter by √d: the products start equally small.

    Args:
        affine: train a scale and a shift in LayerNorm, as ``torch.nn.LayerNorm`` does. They start
            at one and zero.
        start: "short", as above, or "paper": p and v as long as with one layer.

    The order of tokens does not matter. A token that occurs c times acts as one token with log c
    added to its scores, so ``f`` needs only the distinct tokens and their ``counts``.

    Example:
        >>> import torch
        >>> from attnmargin.text.tokens.models import TokenModel
        >>> model = TokenModel(vocabulary=5, d=8, layers=2)
        >>> f = model(torch.tensor([[0, 1, 0], [2, 5, 5]]))
        >>> g = model(torch.tensor([[0, 1], [2, 5]]), counts=torch.tensor([[2, 1], [1, 0]]))
        >>> torch.allclose(f, g)
        True
    """

    def __init__(
        self, vocabulary: int, d: int, layers: int = 1, *, affine: bool = False, start: str = SHORT
    ) -> None:
        super().__init__()
        check_model(layers, affine, start)
        self.vocabulary, self.layers = vocabulary, layers
        length = d**-0.5 if layers == 2 and start == SHORT else 1.0  # of p and v
        self.E = nn.Parameter(torch.randn(vocabulary, d) / d**0.5)
        self.p = nn.Parameter(torch.randn(d) / d**0.5 * length)
        self.v = nn.Parameter(F.normalize(torch.randn(d), dim=0) * length)
        self.scale = nn.Parameter(torch.ones(d)) if affine else None
        self.shift = nn.Parameter(torch.zeros(d)) if affine else None

    def forward(self, ids: Tensor, counts: Tensor | None = None) -> Tensor:
        """Compute ``f`` for sequences ``(B, T)`` with ``counts``, which are ignored at padding."""
        times = (ids < self.vocabulary).to(self.E.dtype)
        if counts is not None:
            if counts.shape != ids.shape:
                got = f"shape {tuple(counts.shape)}"
                raise InputError("counts", got, f"that of the ids, {tuple(ids.shape)}")
            times = times * counts
        log_counts = times.log()  # −∞ for padding, which gets no attention
        a, b = self._scores(ids.clamp_max(self.vocabulary - 1), log_counts)
        return (torch.softmax(a + log_counts, -1) * b).sum(-1)

    def _scores(self, ids: Tensor, log_counts: Tensor) -> tuple[Tensor, Tensor]:
        """Compute the products with p and v at every position, ``(B, T)``."""
        if self.layers == 1:  # look up products per vocabulary entry: no vector is gathered
            return (self.E @ self.p)[ids], (self.E @ self.v)[ids]
        return self._read(F.embedding(ids, self.E), log_counts)

    def _read(self, x: Tensor, log_counts: Tensor) -> tuple[Tensor, Tensor]:
        """Compute the products with p and v of embedded tokens ``(B, T, d)``."""
        if self.layers == 1:
            return x @ self.p, x @ self.v
        # No row is −∞ throughout, so the plain softmax is safe, and quicker than torch's attention.
        mixed = torch.softmax(torch.baddbmm(log_counts[:, None, :], x, x.mT), -1) @ x
        x = F.layer_norm(mixed + x, x.shape[-1:], self.scale, self.shift)
        return x @ self.p, x @ self.v

    def attributions(self, ids: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
        """Compute the attention that tokens get, and the gradient of ``f`` times their embedding.

        Both are ``(B, T)`` for distinct tokens with their ``counts``, as in :meth:`forward`; zero
        at padding.
        """
        log_counts = ((ids < self.vocabulary) * counts).to(self.E.dtype).log()
        x = F.embedding(ids.clamp_max(self.vocabulary - 1), self.E.detach()).requires_grad_()
        a, b = self._read(x, log_counts)
        weights = torch.softmax(a + log_counts, -1)
        (slope,) = torch.autograd.grad((weights * b).sum(), x)
        return weights.detach(), (slope * x.detach()).sum(-1)

    @torch.no_grad()
    def products(self) -> tuple[Tensor, Tensor]:
        """Compute ``⟨E_s, p⟩`` and ``⟨E_s, v⟩`` for the vocabulary, ``(S,)`` each."""
        return self.E @ self.p, self.E @ self.v
