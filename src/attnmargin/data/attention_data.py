"""AttentionData: tokens, queries, labels and head of an attention problem."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self, final

import numpy as np
import torch
from torch import Tensor

from attnmargin.base.arrays import Array, booleans, broadcast, finite, floats, integers, shaped
from attnmargin.base.checks import check_index
from attnmargin.base.errors import InputError
from attnmargin.base.npz import read_npz, write_npz
from attnmargin.base.words import counted

_TOKENS = "tokens of shape (*B, n, T, d), or a list of n arrays of shape (T_i, d)"
_QUERIES = "one query per sequence, (*B, n, d), or several, (*B, n, K, d)"


def padded(sequences: Array) -> tuple[Array, Tensor | None]:
    """Pad a list of arrays ``(T_i, d)`` to one array ``(n, T, d)`` and its mask ``(n, T)``."""
    if not isinstance(sequences, list | tuple):
        return sequences, None
    tokens = [floats(f"X[{i}]", sequence) for i, sequence in enumerate(sequences)]
    if not tokens or any(x.ndim != 2 for x in tokens):
        shapes = {tuple(x.shape) for x in tokens}
        if len(shapes) != 1:
            raise InputError("X", f"a list of arrays of shapes {sorted(shapes)}", _TOKENS)
        return torch.stack(tokens), None
    widths = {x.shape[1] for x in tokens}
    if len(widths) > 1:
        raise InputError("X", f"sequences of width {sorted(widths)}", "one token width d")
    dtypes = sorted({str(x.dtype) for x in tokens})
    if len(dtypes) > 1:
        raise InputError("X", f"sequences of {' and '.join(dtypes)}", "one dtype")
    X = torch.nn.utils.rnn.pad_sequence(tokens, batch_first=True)
    lengths = torch.tensor([x.shape[0] for x in tokens], device=X.device)
    mask = torch.arange(X.shape[1], device=X.device) < lengths[:, None]
    return X, None if bool(mask.all()) else mask


def token_ids(sequences: Array, mask: Array | None, E: Tensor) -> tuple[Tensor, Tensor | None]:
    """Return ids ``(*B, n, T)`` of rows of E, and a mask, from an array or unequal lists."""
    if isinstance(sequences, list | tuple):
        if not all(not hasattr(row, "__len__") or len(row) for row in sequences) or not sequences:
            raise InputError("sequences", "no token", "at least one sequence of tokens")
        rows = [integers(f"sequences[{i}]", s, E) for i, s in enumerate(sequences)]
        if all(row.ndim == 1 for row in rows) and len({len(row) for row in rows}) > 1:
            if mask is not None:
                got = "a mask beside a list of unequal sequences"
                raise InputError("mask", got, "one of the two")
            columns, mask = padded([row.unsqueeze(-1) for row in rows])
            sequences = columns.squeeze(-1).to(torch.int64)
    ids = integers("sequences", sequences, E)
    if ids.ndim < 2 or 0 in ids.shape[-2:]:
        raise InputError("sequences", f"shape {tuple(ids.shape)}", "token ids (*B, n, T)")
    outside = (ids < 0) | (ids >= E.shape[-2])
    if bool(outside.any()):
        got = f"token id {int(ids[outside][0])}"
        raise InputError("sequences", got, f"ids from 0 to {E.shape[-2] - 1}")
    return ids, mask


def check_tokens(X: Array, mask: Array | None = None) -> tuple[Tensor, Tensor | None]:
    """Return tokens ``(*B, n, T, d)``, hidden ones set to zero, and the mask as a tensor.

    The mask is ``(*B, n, T)``, or ``(*B, n, K, T)`` when each query sees its own tokens.
    """
    X, ragged = padded(X)
    X = floats("X", X)
    if X.ndim < 3 or 0 in X.shape[-3:]:
        raise InputError("X", f"shape {tuple(X.shape)}", _TOKENS)
    if mask is None:
        mask = ragged
    elif ragged is not None:
        raise InputError("mask", "a mask beside a list of unequal sequences", "one of the two")
    if mask is None:
        return finite("X", X), None
    mask = booleans("mask", mask, X)
    n, T = X.shape[-3:-1]
    per_query = mask.ndim == X.ndim
    sizes = mask.shape[-3::2] if per_query else mask.shape[-2:]
    if mask.ndim not in (X.ndim - 1, X.ndim) or tuple(sizes) != (n, T):
        needs = f"(*B, {n}, {T}) or (*B, {n}, K, {T})"
        raise InputError("mask", f"shape {tuple(mask.shape)}", needs)
    visible = mask.any(-2) if per_query else mask
    return finite("X", X.masked_fill(~visible.unsqueeze(-1), 0.0)), mask


def check_queries(X: Tensor, z: Array) -> Tensor:
    """Return queries ``(*B, n, d)`` or ``(*B, n, K, d)``, checked against the tokens."""
    z = floats("z", z, like=X)
    shaped("z", z, X.ndim - 1, X.ndim, meaning=_QUERIES)
    n, d = X.shape[-3], X.shape[-1]
    if z.shape[X.ndim - 3] != n or z.shape[-1] != d or 0 in z.shape[X.ndim - 3 :]:
        raise InputError("z", f"shape {tuple(z.shape)}", f"{_QUERIES}, with n = {n} and d = {d}")
    return finite("z", z)


def plus_minus_one(y: Tensor) -> Tensor:
    """Return the labels, or raise InputError unless all are −1 or +1."""
    if not bool((y.abs() == 1).all()):
        wrong = float(y[y.abs() != 1][0])
        raise InputError("y", f"the label {wrong:g}", "labels −1 or +1")
    return y


@final
class AttentionData:
    """Data of the papers: logits of sequence i are ``X_i W z_i``; its label is ``y_i``.

    Args:
        X: tokens ``(*B, n, T, d)``, or a list of n arrays ``(T_i, d)`` (padded and masked).
        z: queries ``(*B, n, d)``, or ``(*B, n, K, d)`` for sequence and causal outputs.
        y: labels −1 or +1, ``(*B, n)`` (``(*B, n, K)`` with several queries); may be absent.
        v: head ``(*B, d)``: the score of a token is ``y · vᵀx``; may be absent.
        mask: true where a token is visible, ``(*B, n, T)`` or ``(*B, n, K, T)``.

    Numpy or torch in, torch inside; dtype and device of ``X`` are kept. ``*B`` is any number
    of leading batch dimensions; X, z, y and mask have the same number of them.

    Example:
        >>> import attnmargin as am
        >>> data = am.AttentionData([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 2.0]]], [[1, 0], [0, 1]])
        >>> data.X.shape, data.mask.tolist()
        (torch.Size([2, 2, 2]), [[True, True], [True, False]])
    """

    def __init__(
        self,
        X: Array,
        z: Array,
        y: Array | None = None,
        v: Array | None = None,
        mask: Array | None = None,
    ) -> None:
        self.X, self.mask = check_tokens(X, mask)
        self.z = check_queries(self.X, z)
        self.y = None if y is None else self._check_labels(y)
        self.v = None if v is None else self._check_head(v)
        if self.mask is not None and self.mask.ndim == self.X.ndim:
            positions = self.z.shape[-2] if self.z.ndim == self.X.ndim else 1
            if self.mask.shape[-2] != positions:
                got = f"a mask for {counted(self.mask.shape[-2], 'query', 'queries')}"
                raise InputError("mask", got, f"one for each of the {positions} queries of z")
        self.batch_shape = broadcast(self._batches())

    def _batches(self) -> dict[str, torch.Size]:
        own = {"X": (self.X, 3), "z": (self.z, 2 + (self.z.ndim == self.X.ndim))}
        if self.y is not None:
            own["y"] = (self.y, self.z.ndim - self.X.ndim + 2)
        if self.v is not None:
            own["v"] = (self.v, 1)
        if self.mask is not None:
            own["mask"] = (self.mask, 2 + (self.mask.ndim == self.X.ndim))
        return {name: tensor.shape[: tensor.ndim - k] for name, (tensor, k) in own.items()}

    def _check_labels(self, y: Array) -> Tensor:
        y = finite("y", floats("y", y, like=self.X))
        expected = self.z.shape[self.X.ndim - 3 : -1]
        if y.ndim != self.z.ndim - 1 or y.shape[self.X.ndim - 3 :] != expected:
            needs = f"one label per query, (*B, {', '.join(map(str, expected))})"
            raise InputError("y", f"shape {tuple(y.shape)}", needs)
        return plus_minus_one(y)

    def _check_head(self, v: Array) -> Tensor:
        v = finite("v", floats("v", v, like=self.X))
        if v.ndim == 0 or v.shape[-1] != self.X.shape[-1]:
            raise InputError("v", f"shape {tuple(v.shape)}", f"(*B, {self.X.shape[-1]})")
        return v

    @property
    def n(self) -> int:
        """Number of sequences."""
        return int(self.X.shape[-3])

    @property
    def T(self) -> int:
        """Number of tokens per sequence, hidden ones included."""
        return int(self.X.shape[-2])

    @property
    def d(self) -> int:
        """Token width."""
        return int(self.X.shape[-1])

    def __getitem__(self, index: Any) -> "AttentionData":
        """Return members of the batch, indexed as a tensor."""
        check_index(self.batch_shape, index)
        own = {
            name: getattr(self, name).expand(
                *self.batch_shape, *getattr(self, name).shape[len(batch) :]
            )[index]
            for name, batch in self._batches().items()
        }
        return AttentionData(**own)

    def expand(self, batch: Sequence[int]) -> "AttentionData":
        """Repeat the data over a larger batch shape, without copying them."""
        if self.batch_shape == torch.Size(batch):
            return self
        own = {
            name: getattr(self, name).expand(*batch, *getattr(self, name).shape[len(part) :])
            for name, part in self._batches().items()
        }
        return AttentionData(**own)

    def flatten(self) -> "AttentionData":
        """Return the data with one batch dimension."""
        size, own = self.batch_shape.numel(), {}
        for name, part in self._batches().items():
            tensor = getattr(self, name)
            inner = tensor.shape[len(part) :]
            own[name] = tensor.expand(*self.batch_shape, *inner).reshape(size, *inner)
        return AttentionData(**own)

    def to(self, device: torch.device | str) -> "AttentionData":
        """Move the data to a device."""
        own = {name: getattr(self, name).to(device) for name in self._batches()}
        return AttentionData(**own)

    def __repr__(self) -> str:
        batch = f"batch {tuple(self.batch_shape)}, " if self.batch_shape else ""
        return f"AttentionData({batch}n={self.n}, T={self.T}, d={self.d}, {self.X.dtype})"

    def save(self, path: str | Path, words: list[list[str]] | None = None) -> Path:
        """Write ``.npz`` with the arrays X, z, y, v, mask that are present.

        ``words`` are names of the tokens, n lists of T, which pages use.
        """
        fields = {"X": self.X, "z": self.z, "y": self.y, "v": self.v, "mask": self.mask}
        present = {name: value for name, value in fields.items() if value is not None}
        return write_npz(path, present if words is None else {**present, "words": np.array(words)})

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what :meth:`save` wrote, or any ``.npz`` with these names."""
        arrays = read_npz(path, needs=("X", "z"))
        return cls(arrays["X"], arrays["z"], *(arrays.get(name) for name in ("y", "v", "mask")))
