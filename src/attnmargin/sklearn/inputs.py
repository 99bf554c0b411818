"""Arrays of a scikit-learn user, checked: tokens, queries, masks and selections."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from torch import Tensor

from attnmargin.base.arrays import Array, floats, shaped
from attnmargin.base.checks import check_whole
from attnmargin.base.errors import InputError
from attnmargin.base.places import place_words
from attnmargin.data.attention_data import AttentionData, check_tokens

QUERIES = ("first", "last", "mean")


def is_sequences(X: Array) -> bool:
    """Whether X is an array ``(n, T, d)`` or a list of arrays ``(T_i, d)``, and not a table.

    >>> is_sequences([[[1.0], [2.0]], [[3.0]]]), is_sequences([[1.0, 2.0]])
    (True, False)
    """
    X = _listed(X)
    if isinstance(X, list | tuple):
        return len(X) > 0 and _depth(X[0]) >= 2
    return getattr(X, "ndim", 0) >= 3


def _listed(X: Array) -> Array:
    """Turn an array of objects, which may hold sequences, into a list."""
    return list(X) if isinstance(X, np.ndarray) and X.dtype == object and X.ndim else X


def _depth(x: Array) -> int:
    """Count the dimensions of an array, or of nested lists of any lengths."""
    if isinstance(x, list | tuple):
        return 1 + (_depth(x[0]) if len(x) else 0)
    return getattr(x, "ndim", 0)


def unflatten(X: NDArray[Any], width: Any) -> NDArray[Any]:
    """Cut rows of T · d columns into T tokens of width d, ``(n, T, d)``.

    >>> unflatten(np.array([[1, 2, 3, 4]]), width=2).tolist()
    [[[1, 2], [3, 4]]]
    """
    n, columns = X.shape
    if width is None:
        needs = "(n, T, d), or the parameter width, which cuts rows into tokens"
        raise InputError("X", f"shape {X.shape}", needs)
    width = int(width) if isinstance(width, np.integer) else width
    check_whole(width=width)
    if columns % width:
        raise InputError("X", f"{columns} columns", f"a multiple of width = {width}")
    return X.reshape(n, columns // width, width)


def attention_data(X: Array, z: Array | None, mask: Array | None, query: str) -> AttentionData:
    """Check tokens ``(n, T, d)`` or a list of ``(T_i, d)``, and add their queries, in float64."""
    if query not in QUERIES:
        raise InputError("query", f"{query!r:.80}", "'first', 'last' or 'mean'")
    tokens, visible = check_tokens(_listed(X), mask)
    shaped("X", tokens, 3, meaning="one array (n, T, d), or a list of n arrays (T_i, d)")
    tokens = tokens.to("cpu", torch.float64)
    if visible is not None:
        shaped("mask", visible, 2, meaning="one mask per sequence, (n, T)")
        visible = _seen(visible.cpu())
    if z is None:
        return AttentionData(tokens, _own_queries(tokens, visible, query), mask=visible)
    queries = shaped("z", floats("z", z), 2, meaning="one query per sequence, (n, d)")
    return AttentionData(tokens, queries.to("cpu", torch.float64), mask=visible)


def _seen(mask: Tensor) -> Tensor:
    """Return the mask ``(n, T)``, or raise InputError if it hides a whole sequence."""
    blind = ~mask.any(-1)
    if bool(blind.any()):
        where = place_words([int(blind.nonzero()[0])], 0)
        raise InputError("mask", f"no visible token in {where}", "at least one token per sequence")
    return mask


def _own_queries(X: Tensor, mask: Tensor | None, query: str) -> Tensor:
    """Take the first or last visible token, or the mean of the visible ones, ``(n, d)``."""
    seen = (torch.ones(X.shape[:2]) if mask is None else mask).to(X.dtype)
    if query == "mean":
        return (seen.unsqueeze(-1) * X).sum(1) / seen.sum(-1, keepdim=True)
    place = seen.argmax(-1) if query == "first" else X.shape[1] - 1 - seen.flip(-1).argmax(-1)
    return X[torch.arange(len(X)), place]


def selection_of(y: Array) -> NDArray[Any]:
    """Return token positions as integers ``(n,)``, or sets of tokens as bool ``(n, T)``.

    Whole numbers stored as floats are positions too, as scikit-learn has it.
    """
    if isinstance(y, Tensor):
        y = y.detach().cpu().numpy()
    if np.asarray(y).dtype == bool:
        return np.asarray(y)
    y = column_or_1d(y, warn=True)
    assert_all_finite(y, input_name="y")
    check_classification_targets(y)
    if y.dtype.kind not in "iuf":
        raise InputError("y", f"{type(y.flat[0]).__name__} labels", "positions of tokens, from 0")
    return y.astype(np.int64)
