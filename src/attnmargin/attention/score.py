"""Scores of tokens, the tokens that they select, and the tokens around a selection."""

import torch
from torch import Tensor

from attnmargin.attention.selection import check_selection
from attnmargin.base.arrays import Array
from attnmargin.base.checks import check_kind
from attnmargin.base.errors import InputError
from attnmargin.base.places import place_words
from attnmargin.base.sums import accurate_dot
from attnmargin.data.attention_data import AttentionData
from attnmargin.data.gaps import best_gap


def scores(data: AttentionData) -> Tensor:
    """Compute token scores ``γ_it = y_i · vᵀ x_it`` (papers A and B, Definition 1).

    Scores of a sequence that are nearly equal are rounded only once, so that equal ones stay so.

    Returns:
        ``(*B, n, T)``, or ``(*B, n, K, T)`` with several queries; −inf at hidden tokens.

    Example:
        >>> import attnmargin as am
        >>> data = am.AttentionData([[[1.0, 0.0], [0.0, 1.0]]], [[1, 1]], [-1], [2.0, 1.0])
        >>> am.scores(data).tolist()
        [[-2.0, -1.0]]
    """
    check_kind("data", data, AttentionData)
    if data.y is None or data.v is None:
        missing = "y" if data.y is None else "v"
        raise InputError(missing, "nothing", "labels y and a head v, which scores are made of")
    gamma = token_values(data.X, data.v)
    gamma = data.y.unsqueeze(-1) * (gamma.unsqueeze(-2) if data.z.ndim == data.X.ndim else gamma)
    visible = _visible(data)
    return gamma if visible is None else gamma.masked_fill(~visible, -torch.inf)


def token_values(X: Tensor, v: Tensor) -> Tensor:
    """Compute ``vᵀ x_it``, in higher precision where rounding could part equal scores."""
    gamma = torch.einsum("...ntd,...d->...nt", X, v)
    near = gamma.sort(-1).values.diff(dim=-1) <= value_rounding(X, v).amax(-1, keepdim=True)
    if not bool(near.any()):
        return gamma
    return accurate_dot(X, v[..., None, None, :]).where(near.any(-1, keepdim=True), gamma)


def _visible(data: AttentionData) -> Tensor | None:
    """Return the mask with a dimension for queries if there are several, and only then."""
    mask = data.mask
    if mask is None or (mask.ndim == data.X.ndim) == (data.z.ndim == data.X.ndim):
        return mask
    return mask.unsqueeze(-2) if data.z.ndim == data.X.ndim else mask.squeeze(-2)


def optimal_tokens(data: AttentionData) -> Tensor:
    """Find the token with the largest score, the first one on a tie (paper A, Def. 1).

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
    """Find where visible tokens share the largest score, up to rounding: bool ``(*B, n)``.

    Example:
        >>> import attnmargin as am
        >>> data = am.AttentionData([[[1.0], [1.0]], [[1.0], [2.0]]], [[1], [1]], [1, 1], [1])
        >>> am.selections.tied_tokens(data).tolist()
        [True, False]
    """
    return best_tokens(data).sum(-1) > 1


def best_tokens(data: AttentionData) -> Tensor:
    """Find all visible tokens with the largest score, up to rounding: bool ``(*B, n, T)``."""
    gamma = scores(data)
    near = gamma >= gamma.amax(-1, keepdim=True) - score_rounding(data)
    return near & torch.isfinite(gamma)


def refuse_ties(data: AttentionData, argument: str, needs: str) -> None:
    """Raise InputError where several tokens of a sequence share its best score."""
    tied = tied_tokens(data)
    if not bool(tied.any()):
        return
    place = tied.nonzero()[0].tolist()
    best = float(scores(data)[tuple(place)].amax())
    tokens = best_tokens(data)[tuple(place)].nonzero().flatten().tolist()
    where = place_words(place, len(data.batch_shape))
    got = f"tokens {tokens} with the same best score {best:g} in {where}"
    raise InputError(argument, got, needs)


# Units in the last place of Σ |x_c v_c| within which scores count as equal.
_ROUNDING = 16


def score_rounding(data: AttentionData) -> Tensor:
    """Compute within which distance scores of a sequence count as equal.

    Returns:
        ``(*B, n, 1)``, or ``(*B, n, K, 1)`` with several queries: units in the last place of the
        largest ``Σ_c |x_c v_c|`` of a visible token.
    """
    if data.v is None:
        raise InputError("v", "nothing", "a head v, which scores are made of")
    size = value_rounding(data.X, data.v)
    size = size if data.z.ndim < data.X.ndim else size.unsqueeze(-2)
    seen = _visible(data)
    size = size if seen is None else size.where(seen, 0.0)
    return size.amax(-1, keepdim=True)


def value_rounding(X: Tensor, v: Tensor) -> Tensor:
    """Compute units in the last place of ``Σ_c |x_c v_c|``, ``(*B, n, T)``."""
    size = torch.einsum("...ntd,...d->...nt", X.abs(), v.abs())
    return _ROUNDING * torch.finfo(size.dtype).eps * size


def score_gaps(data: AttentionData) -> Tensor:
    """Compute the best score minus the second best, ``(*B, n)``; infinite with one token.

    Example:
        >>> import attnmargin as am
        >>> data = am.AttentionData([[[1.0], [3.0], [2.5]]], [[1.0]], [1], [2.0])
        >>> am.selections.score_gaps(data).tolist()
        [1.0]
    """
    return best_gap(scores(data)).nan_to_num(nan=torch.inf, posinf=torch.inf)


def _scores_and_places(data: AttentionData, selection: Array) -> tuple[Tensor, Tensor]:
    """Broadcast scores ``(*S, n, T)`` and chosen positions ``(*S, n, 1)``."""
    gamma, index = scores(data), check_selection(data, selection)
    shape = torch.broadcast_shapes(gamma.shape[:-1], index.shape)
    return gamma.expand(*shape, data.T), index.expand(shape).unsqueeze(-1)


def low_tokens(data: AttentionData, selection: Array) -> Tensor:
    """Mark tokens that score lower than the selected one, ``(*B, n, T)`` (paper A, Def. 3).

    Scores that differ by rounding count as equal, here and in :func:`high_tokens`.

    Example:
        >>> import attnmargin as am
        >>> data = am.AttentionData([[[1.0], [3.0], [2.0]]], [[1.0]], [1], [1.0])
        >>> am.selections.low_tokens(data, [2]).tolist()
        [[True, False, False]]
    """
    gamma, index = _scores_and_places(data, selection)
    lower = gamma < gamma.gather(-1, index) - score_rounding(data)
    return lower & torch.isfinite(gamma)


def high_tokens(data: AttentionData, selection: Array) -> Tensor:
    """Mark other tokens of higher or equal score, bool ``(*B, n, T)`` (paper A, Def. 3).

    Example:
        >>> import attnmargin as am
        >>> data = am.AttentionData([[[1.0], [3.0], [2.0]]], [[1.0]], [1], [1.0])
        >>> am.selections.high_tokens(data, [2]).tolist()
        [[False, True, False]]
    """
    gamma, index = _scores_and_places(data, selection)
    high = (gamma >= gamma.gather(-1, index) - score_rounding(data)) & torch.isfinite(gamma)
    return high.scatter(-1, index, False)


def barrier(logits: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """Compute ``min_i max_{t low} min_{τ high} (a_it − a_iτ)`` of logits ``a``, ``(*B,)``.

    Logits and the masks of low and high tokens are ``(*B, N, T)``. It is infinite where no token
    is high.
    """
    best_low = logits.where(low, -torch.inf).amax(-1)
    best_high = logits.where(high, -torch.inf).amax(-1)
    return (best_low - best_high).where(high.any(-1), torch.inf).amin(-1)


def score_spread(gamma: Tensor) -> Tensor:
    """Compute the range of scores ``(…, T)`` of each sequence; hidden tokens have −∞."""
    low = gamma.where(torch.isfinite(gamma), torch.inf).amin(-1)
    return (gamma.amax(-1) - low).nan_to_num(nan=0.0, neginf=0.0)
