"""Scores of tokens and the tokens that they select."""

import torch
from torch import Tensor

from attnmargin.data import AttentionData
from attnmargin.errors import InputError


def scores(data: AttentionData) -> Tensor:
    """Token scores ``γ_it = y_i · vᵀ x_it`` (paper A, Definition 1; paper B, Definition 1).

    Returns:
        ``(*B, n, T)``, or ``(*B, n, K, T)`` with several queries; −inf at hidden tokens.

    Example:
        >>> import attnmargin as am
        >>> data = am.AttentionData([[[1.0, 0.0], [0.0, 1.0]]], [[1, 1]], [-1], [2.0, 1.0])
        >>> am.scores(data).tolist()
        [[-2.0, -1.0]]
    """
    if data.y is None or data.v is None:
        missing = "y" if data.y is None else "v"
        raise InputError(missing, "nothing", "labels y and a head v, which scores are made of")
    gamma = torch.einsum("...ntd,...d->...nt", data.X, data.v)
    visible = data.mask
    if data.z.ndim == data.X.ndim:
        gamma = gamma.unsqueeze(-2)
        if visible is not None and visible.ndim < data.X.ndim:
            visible = visible.unsqueeze(-2)
    elif visible is not None and visible.ndim == data.X.ndim:
        visible = visible.squeeze(-2)
    gamma = data.y.unsqueeze(-1) * gamma
    return gamma if visible is None else gamma.masked_fill(~visible, -torch.inf)


def optimal_tokens(data: AttentionData) -> Tensor:
    """Index of the token with the largest score, the first one on a tie (paper A, Def. 1).

    Returns:
        int64 ``(*B, n)``, or ``(*B, n, K)`` with several queries; 0 where all is hidden.

    Example:
        >>> import attnmargin as am
        >>> data = am.AttentionData([[[1.0, 0.0], [0.0, 1.0]]], [[1, 1]], [-1], [2.0, 1.0])
        >>> am.optimal_tokens(data).tolist()
        [1]
    """
    return scores(data).argmax(-1)


def tied_tokens(data: AttentionData) -> Tensor:
    """True where several visible tokens share the largest score: bool ``(*B, n)``.

    Example:
        >>> import attnmargin as am
        >>> data = am.AttentionData([[[1.0], [1.0]], [[1.0], [2.0]]], [[1], [1]], [1, 1], [1])
        >>> am.tied_tokens(data).tolist()
        [True, False]
    """
    gamma = scores(data)
    largest = gamma.amax(-1, keepdim=True)
    return ((gamma == largest) & torch.isfinite(gamma)).sum(-1) > 1
