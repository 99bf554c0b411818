"""Head: one attention head on some sequences, from plain tensors."""

from typing import final

import torch
from torch import Tensor
from torch.nn import functional as F

from attnmargin.base.arrays import Array, booleans, finite, floats
from attnmargin.base.checks import check_number, check_whole
from attnmargin.base.display import Summarised
from attnmargin.base.errors import InputError
from attnmargin.data.attention_data import padded
from attnmargin.models.rotary import Rotary

_HIDDEN = "tokens of shape (n, T, d) or (T, d), or a list of arrays of shape (T_i, d)"


@final
class Head(Summarised):
    """One head on n sequences: query t attends to token s with logit ``x_sᵀ W z_t``.

        W = W_Kᵀ [W_Q, b_Q] / √m,   z_t = [x_t; 1]

    Appending 1 to the queries takes in their bias. The bias of the keys adds the same number to all
    logits of a query and cancels. With rotary positions, W depends on the distance s − t, the
    bias of the keys counts, and tokens get a 1 as well: see :meth:`W_at`.

    Args:
        W_Q, W_K: ``(m, d)``, so that a query is ``W_Q x + b_Q`` and a key ``W_K x + b_K``.
        hidden: what the layer reads, ``(n, T, d)`` or ``(T, d)``, or a list of n arrays
            ``(T_i, d)``.
        mask: which tokens are not padding, ``(n, T)``; or what each query sees, ``(n, T, T)``,
            queries first.
        biases: ``(b_Q, b_K)``, each ``(m,)`` or None.
        causal: whether a query sees only tokens up to its own position.
        scale: the factor of all logits; by default ``1/√m``.
        rotary: turns of keys and queries.
        layer, index: where the head stands in its model.
        words: the tokens of each sequence as strings.

    Numpy or torch in, torch inside; dtype and device of ``hidden`` are kept.

    Example:
        >>> import attnmargin as am
        >>> head = am.models.Head([[1.0, 0.0]], [[0.0, 2.0]], [[1.0, 0.0], [0.0, 1.0]])
        >>> head.W.tolist(), [round(float(s), 3) for s in head.attention[0, 0]]
        ([[0.0, 0.0], [2.0, 0.0]], [0.119, 0.881])
    """

    def __init__(
        self,
        W_Q: Array,
        W_K: Array,
        hidden: Array,
        mask: Array | None = None,
        *,
        biases: tuple[Array | None, Array | None] = (None, None),
        causal: bool = False,
        scale: float | None = None,
        rotary: Rotary | None = None,
        layer: int = 0,
        index: int = 0,
        words: list[list[str]] | None = None,
    ) -> None:
        self.hidden, ragged = _tokens(hidden)
        self.W_Q, self.W_K = (self._matrix(*pair) for pair in (("W_Q", W_Q), ("W_K", W_K)))
        if self.W_Q.shape != self.W_K.shape:
            got = f"shape {tuple(self.W_K.shape)}"
            raise InputError("W_K", got, f"{tuple(self.W_Q.shape)}, the shape of W_Q")
        self.b_Q, self.b_K = (self._bias(bias) for bias in biases)
        self.causal, self.rotary = causal, rotary
        self.scale = self.m**-0.5 if scale is None else check_number("scale", scale, "a number")
        if mask is not None and ragged is not None:
            raise InputError("mask", "a mask beside a list of unequal sequences", "one of the two")
        self.mask = ragged if mask is None else self._mask(mask)
        if rotary is not None and rotary.length < self.T:
            got = f"turns of {rotary.length} positions"
            raise InputError("rotary", got, f"one for each of the {self.T} tokens")
        check_whole(0, layer=layer, index=index)
        self.layer, self.index = layer, index
        self.words = self._names(words)

    def _matrix(self, name: str, W: Array) -> Tensor:
        W = finite(name, floats(name, W, like=self.hidden))
        if W.ndim != 2 or W.shape[-1] != self.d or not len(W):
            raise InputError(name, f"shape {tuple(W.shape)}", f"(m, {self.d}) for these tokens")
        return W

    def _bias(self, bias: Array | None) -> Tensor | None:
        if bias is None:
            return None
        bias = finite("biases", floats("biases", bias, like=self.hidden))
        if bias.shape != (self.m,):
            raise InputError("biases", f"shape {tuple(bias.shape)}", f"({self.m},)")
        return bias

    def _mask(self, mask: Array) -> Tensor:
        mask = booleans("mask", mask, self.hidden)
        mask = mask.unsqueeze(0) if mask.ndim == 1 else mask
        if mask.shape not in ((self.n, self.T), (self.n, self.T, self.T)):
            needs = f"({self.n}, {self.T}) or ({self.n}, {self.T}, {self.T})"
            raise InputError("mask", f"shape {tuple(mask.shape)}", needs)
        return mask

    def _names(self, words: list[list[str]] | None) -> list[list[str]]:
        """Check the words; without any, number the tokens."""
        if words is None:
            return [[str(t) for t in range(self.T)] for _ in range(self.n)]
        if len(words) != self.n or any(len(row) > self.T for row in words):
            got = f"{len(words)} lists of up to {max(map(len, words), default=0)} words"
            raise InputError("words", got, f"{self.n} lists of at most {self.T}")
        return words

    @property
    def n(self) -> int:
        """Number of sequences."""
        return int(self.hidden.shape[0])

    @property
    def T(self) -> int:
        """Number of tokens of the longest sequence."""
        return int(self.hidden.shape[1])

    @property
    def d(self) -> int:
        """Width of the tokens."""
        return int(self.hidden.shape[2])

    @property
    def m(self) -> int:
        """Width of keys and queries."""
        return int(self.W_Q.shape[0])

    def summary(self) -> dict[str, str]:
        """Return place and sizes, by name."""
        kind = ("causal, " if self.causal else "") + ("rotary" if self.rotary else "one W")
        return {
            "place": f"layer {self.layer}, head {self.index}",
            "sizes": f"{self.n} sequences of up to {self.T} tokens, d = {self.d}, m = {self.m}",
            "kind": kind,
        }

    @property
    def W(self) -> Tensor:
        """The matrix of the head: ``(d, d + 1)`` with a bias of the queries, else ``(d, d)``."""
        if self.rotary is not None:
            raise self._many()
        return self._product(self._asking, self.W_K.double())

    def _many(self) -> InputError:
        got = f"layer {self.layer}, head {self.index}, whose positions are rotary"
        return InputError("head", got, "W_at(distance), because W depends on the distance")

    def W_at(self, distance: int) -> Tensor:
        """Return W for a token at ``distance = s − t`` from its query.

        The logit is ``[x_s; 1]ᵀ W(s − t) [x_t; 1]`` with rotary positions and biases; without
        rotary positions, the same W for every distance. A 1 is appended only where there is a
        bias.
        """
        if isinstance(distance, bool) or not isinstance(distance, int):
            raise InputError("distance", repr(distance), "a whole number s − t")
        if self.rotary is None:
            return self.W
        keys = self.W_K.double()
        if self.b_K is not None:
            keys = torch.cat((keys, self.b_K.double().unsqueeze(-1)), -1)
        return self._product(self.rotary.between(self._asking, distance), keys)

    @property
    def _asking(self) -> Tensor:
        """``[W_Q, b_Q]`` in float64."""
        W = self.W_Q.double()
        return W if self.b_Q is None else torch.cat((W, self.b_Q.double().unsqueeze(-1)), -1)

    def _product(self, queries: Tensor, keys: Tensor) -> Tensor:
        return (self.scale * keys.mT @ queries).to(self.hidden)

    def projected(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """Compute queries and keys ``(…, T, m)`` of tokens, in their dtype, turned by position."""
        pairs = ((self.W_Q, self.b_Q), (self.W_K, self.b_K))
        q, k = (F.linear(hidden, W.to(hidden), _like(b, hidden)) for W, b in pairs)
        if self.rotary is not None:
            q, k = self.rotary.turned(q), self.rotary.turned(k)
        return q, k

    def visible(self, i: int) -> Tensor:
        """Which tokens each query of sequence i sees, bool ``(T, T)``, queries first.

        Padding sees nothing.
        """
        T = self.T
        seen = torch.ones(T, T, dtype=torch.bool, device=self.hidden.device)
        if self.causal:
            seen = seen.tril()
        if self.mask is None:
            return seen
        own = self.mask[i]
        return seen & (own if own.ndim == 2 else own & own.unsqueeze(-1))

    @property
    def inside(self) -> Tensor:
        """Which tokens are not padding, bool ``(n, T)``."""
        if self.mask is None:
            return self.hidden.new_ones(self.n, self.T, dtype=torch.bool)
        return self.mask if self.mask.ndim == 2 else self.mask.any(1)

    def singular_values(self) -> Tensor:
        """Compute the m largest singular values of W in float64, from its factors, ``(m,)``."""
        if self.rotary is not None:
            raise self._many()
        upper = [torch.linalg.qr(own.mT).R for own in (self._asking, self.W_K.double())]
        return abs(self.scale) * torch.linalg.svdvals(upper[1] @ upper[0].mT)

    def logits(self, i: int) -> Tensor:
        """Compute ``x_sᵀ W z_t`` of sequence i in float64, ``(T, T)``, queries first.

        Up to a number per query; minus infinity where a query does not see a token.
        """
        q, k = self.projected(self.hidden[i].double())
        return (q @ k.mT * self.scale).masked_fill(~self.visible(i), -torch.inf)

    @property
    def attention(self) -> Tensor:
        """The attention of all queries, ``(n, T, T)``, queries first; rows of padding are zero.

        In the dtype of the tokens and in the order in which a model computes it.
        """
        return torch.stack([self.attention_of(i) for i in range(self.n)])

    def attention_of(self, i: int) -> Tensor:
        """Compute the attention of sequence i, ``(T, T)``."""
        seen = self.visible(i)
        own = seen.any(0).nonzero().flatten()
        T = int(own[-1]) + 1 if len(own) else 0  # without padding at the end, as a model runs
        q, k = self.projected(self.hidden[i, :T])
        logits = (q @ k.mT * self.scale).masked_fill(~seen[:T, :T], -torch.inf)
        shares = torch.softmax(logits, -1).masked_fill(~seen[:T, :T], 0.0)  # NaN if nothing is seen
        return F.pad(shares, (0, self.T - T, 0, self.T - T))


def _tokens(hidden: Array) -> tuple[Tensor, Tensor | None]:
    """Return tokens ``(n, T, d)`` and the mask of a list of unequal sequences."""
    try:
        given, mask = padded(hidden)
        X = finite("hidden", floats("hidden", given))
    except InputError as error:
        raise InputError("hidden", error.got, error.needs) from error
    X = X.unsqueeze(0) if X.ndim == 2 else X
    if X.ndim != 3 or 0 in X.shape:
        raise InputError("hidden", f"shape {tuple(X.shape)}", _HIDDEN)
    return X, mask


def _like(bias: Tensor | None, x: Tensor) -> Tensor | None:
    return None if bias is None else bias.to(x)
