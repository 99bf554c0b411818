"""Measures of weights: correlation, divergence, probabilities, ranks, rates."""

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from attnmargin.attention.score import optimal_tokens
from attnmargin.attention.selection import check_selection
from attnmargin.attention.softmax import probabilities, sequences
from attnmargin.base.arrays import Array, broadcast, finite, floats, tiny
from attnmargin.base.errors import InputError
from attnmargin.base.words import counted
from attnmargin.data.attention_data import AttentionData
from attnmargin.margin.norms import mirror, power_norm

# Probabilities with a smaller relative difference count as tied.
_TIED = 1e-6


def _pair(W1: Array, W2: Array) -> tuple[Tensor, Tensor]:
    first = floats("W1", W1)
    second = floats("W2", W2, like=first)
    if first.ndim < 2 or second.ndim < 2 or first.shape[-2:] != second.shape[-2:]:
        got = f"shapes {tuple(first.shape)} and {tuple(second.shape)}"
        raise InputError("W1 and W2", got, "matrices (*B, d, e) of one shape")
    batch = broadcast({"W1": first.shape[:-2], "W2": second.shape[:-2]})
    return first.expand(*batch, *first.shape[-2:]), second.expand(*batch, *second.shape[-2:])


def finite_pair(W: Array, reference: Array) -> tuple[Tensor, Tensor]:
    """Check two finite matrices, and broadcast them to one shape ``(*B, d, e)``."""
    first, second = _pair(W, reference)
    return finite("W", first), finite("reference", second)


def correlation(W1: Array, W2: Array) -> Tensor:
    """Compute ``⟨W₁, W₂⟩ / (‖W₁‖_F ‖W₂‖_F)``, shape ``(*B)`` (paper A, Section 5.1).

    It is 0 if either matrix is zero.

    Example:
        >>> import attnmargin as am
        >>> float(am.correlation([[3.0, 0.0]], [[3.0, 4.0]]))
        0.6
    """
    first, second = _pair(W1, W2)
    norms = (power_norm(x, 2.0) for x in (first, second))
    first, second = (
        x / size.where(size > 0, 1.0) for x, size in zip((first, second), norms, strict=True)
    )
    return (first * second).sum((-2, -1))


def composed_correlation(W: Array, finite: Array, direction: Array) -> Tensor:
    """Correlate W with its best fit ``a · finite + b · direction``, shape ``(*B)``.

    Paper A, Section 6: ``W_fin + γ W̄_mm`` with the best γ, up to a factor.

    Example:
        >>> import attnmargin as am
        >>> W, finite, direction = [[3.0, 4.0, 0.0]], [[0.0, 2.0, 0.0]], [[1.0, 0.0, 0.0]]
        >>> float(am.measures.composed_correlation(W, finite, direction))
        1.0
    """
    first, second = _pair(W, direction)
    _, third = _pair(W, finite)
    basis = torch.stack((second.flatten(-2), third.expand_as(second).flatten(-2)), -1)
    sizes = torch.linalg.vector_norm(basis, dim=-2, keepdim=True)
    basis = basis / sizes.where(sizes > 0, 1.0)
    target = first.flatten(-2).unsqueeze(-1)
    fitted = basis @ (torch.linalg.pinv(basis.mT @ basis, hermitian=True) @ (basis.mT @ target))
    return correlation(fitted.mT, target.mT)


def bregman(W1: Array, W2: Array, p: float) -> Tensor:
    """Compute the directional Bregman divergence ``D_ψ(W₁/‖W₁‖_p, W₂/‖W₂‖_p)``, shape ``(*B)``.

    ``ψ = (1/p) Σ |w|^p``, ``D_ψ(a, b) = ψ(a) − ψ(b) − ⟨∇ψ(b), a − b⟩`` (paper B, Theorem 4). It is
    not symmetric. For p = 2 it is ``1 − correlation``.

    Example:
        >>> import attnmargin as am
        >>> round(float(am.bregman([[3.0, 0.0]], [[3.0, 4.0]], p=2)), 12)
        0.4
    """
    if not isinstance(p, int | float) or not 1.0 < p < float("inf"):
        raise InputError("p", f"{p}", "a finite p > 1")
    p = float(p)
    first, second = _pair(W1, W2)
    sizes = [power_norm(x, p) for x in (first, second)]
    if not all(bool((size > 0).all()) for size in sizes):
        raise InputError("W1 and W2", "a zero matrix", "matrices that have a direction")
    a, b = first / sizes[0], second / sizes[1]
    # ψ(a) = ψ(b) = 1/p, and ⟨∇ψ(b), b⟩ = 1. This form of the rest has the least cancellation.
    return (mirror(b, p) * (b - a)).sum((-2, -1))


def misalignment(W: Array, solution: Array) -> Tensor:
    """Compute ``1 − correlation`` without cancellation: ``½‖W/‖W‖ − V/‖V‖‖²``, shape ``(*B)``.

    It is 1 if either matrix is zero.

    Example:
        >>> import attnmargin as am
        >>> float(am.measures.misalignment([[1.0, 0.0]], [[1.0, 1e-9]])) > 0.0
        True
    """
    first, second = _pair(W, solution)
    sizes = [power_norm(x, 2.0) for x in (first, second)]
    zero = ((sizes[0] == 0) | (sizes[1] == 0))[..., 0, 0]
    a, b = (x / size.where(size > 0, 1.0) for x, size in zip((first, second), sizes, strict=True))
    return (0.5 * (a - b).square().sum((-2, -1))).masked_fill(zero, 1.0)


def largest_probability(data: AttentionData, W: Array) -> Tensor:
    """Average the largest softmax entry over sequences, ``(*B)`` (paper A, figure 7a).

    A query that sees no token counts as 1: it has nothing to decide.

    Example:
        >>> import attnmargin as am
        >>> data = am.random_data(3, 4, 5, name="probability")
        >>> float(am.measures.largest_probability(data, [[0.0] * 5] * 5))
        0.25
    """
    s = probabilities(data, W).amax(-1)
    return s.where(s > 0, 1.0).flatten(len(data.batch_shape)).mean(-1)


def token_probability(data: AttentionData, W: Array, selection: Array | None = None) -> Tensor:
    """Average the probability of chosen tokens, by default the optimal ones, ``(*B)``.

    The average is over sequences. A query that sees no token counts as 1: it has nothing to decide.

    Example:
        >>> import attnmargin as am
        >>> data = am.random_data(3, 4, 5, name="probability")
        >>> float(am.measures.token_probability(data, [[0.0] * 5] * 5))
        0.25
    """
    s = probabilities(data, W)
    if selection is None:
        chosen = optimal_tokens(data).expand(s.shape[:-1])
    else:
        chosen = check_selection(data, selection, data.batch_shape)
    found = s.gather(-1, chosen.unsqueeze(-1))[..., 0].where(s.amax(-1) > 0, 1.0)
    return found.flatten(len(data.batch_shape)).mean(-1)


def decided(data: AttentionData, W: Array) -> Tensor:
    """Check whether one token of every sequence is more likely than all others, bool ``(*B)``.

    Zero weights select nothing: all tokens are equally likely. Ties that no W can break do not
    count: ties between equal tokens, and ties of a zero query.

    Example:
        >>> import attnmargin as am
        >>> from attnmargin.training.measures import decided
        >>> data = am.random_data(3, 4, 5, name="probability")
        >>> bool(decided(data, [[0.0] * 5] * 5)), bool(decided(data, am.predict(data).direction))
        (False, True)
    """
    flat = sequences(data)
    s = probabilities(data, W).reshape(flat.X.shape[:-1])
    best, top = s.max(-1, keepdim=True)
    first = flat.X.gather(-2, top.unsqueeze(-1).expand(*top.shape, data.d))
    other = torch.ne(flat.X, first).any(-1)
    tied = ((s >= (1.0 - _TIED) * best) & other).any(-1)
    if flat.still is not None:
        tied &= ~flat.still.squeeze(-1)
    return ~tied.any(-1).reshape(data.batch_shape)


def rank_profile(W: Array) -> Tensor:
    """Divide the singular values by the largest, ``(*B, min(d, e))``, to show how low the rank is.

    Example:
        >>> import attnmargin as am
        >>> am.measures.rank_profile([[4.0, 0.0], [0.0, 1.0]]).tolist()
        [1.0, 0.25]
    """
    given = finite("W", floats("W", W))
    if given.ndim < 2:
        raise InputError("W", f"shape {tuple(given.shape)}", "matrices (*B, d, e)")
    values = torch.linalg.svdvals(given)
    return values / values[..., :1].clamp_min(tiny(values))


def imbalance(K: Array, Q: Array) -> Tensor:
    """Compute ``‖KᵀK − QᵀQ‖_F``, shape ``(*B)``: zero where both factors carry as much.

    It is zero wherever descent on ``L(K Qᵀ) + λ (‖K‖² + ‖Q‖²)`` can rest (2410.23819).

    Args:
        K, Q: factors ``(*B, d, m)`` and ``(*B, e, m)``.

    Example:
        >>> import attnmargin as am
        >>> float(am.measures.imbalance([[2.0]], [[1.0]]))
        3.0
    """
    first, second = _factors(K, Q)
    return torch.linalg.matrix_norm(first.mT @ first - second.mT @ second)


def nuclear_excess(K: Array, Q: Array) -> Tensor:
    """Compute ``½ (‖K‖² + ‖Q‖²) − ‖K Qᵀ‖_*``, shape ``(*B)``: never negative.

    It is zero where the factors are balanced, see :func:`imbalance`: there, decay of the factors
    is a penalty on the nuclear norm of their product (2410.23819).

    Example:
        >>> import attnmargin as am
        >>> float(am.measures.nuclear_excess([[2.0]], [[1.0]]))
        0.5
    """
    first, second = _factors(K, Q)
    sizes = first.square().sum((-2, -1)) + second.square().sum((-2, -1))
    return 0.5 * sizes - torch.linalg.svdvals(first @ second.mT).sum(-1)


def _factors(K: Array, Q: Array) -> tuple[Tensor, Tensor]:
    first = finite("K", floats("K", K))
    second = finite("Q", floats("Q", Q, like=first))
    if first.ndim < 2 or second.ndim < 2 or first.shape[-1] != second.shape[-1]:
        got = f"shapes {tuple(first.shape)} and {tuple(second.shape)}"
        raise InputError("K and Q", got, "factors (*B, d, m) and (*B, e, m)")
    broadcast({"K": first.shape[:-2], "Q": second.shape[:-2]})
    return first, second


@final
@dataclass(frozen=True)
class Fit:
    """A straight line through points, with standard errors."""

    slope: float
    intercept: float
    slope_error: float
    intercept_error: float


def fit_rate(x: Array, y: Array) -> Fit:
    """Fit ``log y = intercept + slope · log x`` by least squares; the slope is the power of decay.

    Points with ``x ≤ 0`` or ``y ≤ 0`` are left out. For rates in ``log k``, pass ``log k`` as x.

    Example:
        >>> import attnmargin as am, numpy as np
        >>> k = np.arange(1, 100)
        >>> fit = am.measures.fit_rate(k, 3.0 / k**0.5)
        >>> round(fit.slope, 9), round(fit.slope_error, 9)
        (-0.5, 0.0)
    """
    first = floats("x", x).to(torch.float64).flatten()
    second = floats("y", y).to(torch.float64).flatten()
    if first.shape != second.shape:
        raise InputError("y", counted(len(second), "number"), f"as many as x has, {len(first)}")
    keep = (first > 0) & (second > 0)
    a, b = first[keep].log(), second[keep].log()
    if len(a) < 3 or float(a.max() - a.min()) == 0.0:
        raise InputError(
            "x and y", counted(len(a), "usable point"), "at least 3 with different x > 0"
        )
    centre, spread = a.mean(), (a - a.mean()).square().sum()
    slope = ((a - centre) * (b - b.mean())).sum() / spread
    intercept = b.mean() - slope * centre
    noise = (b - intercept - slope * a).square().sum() / (len(a) - 2)
    error = (noise / spread).sqrt()
    own = (noise * (1.0 / len(a) + centre**2 / spread)).sqrt()
    return Fit(float(slope), float(intercept), float(error), float(own))
