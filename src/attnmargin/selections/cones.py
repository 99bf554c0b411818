"""The cones of the papers: low scores above high ones, and directions near a solution."""

import torch
from torch import Tensor

from attnmargin.attention.score import barrier, high_tokens, low_tokens
from attnmargin.attention.softmax import relative_logits
from attnmargin.base.arrays import Array, floats
from attnmargin.base.errors import InputError
from attnmargin.data.attention_data import AttentionData
from attnmargin.margin.norms import Frobenius, Lp
from attnmargin.training.measures import bregman, finite_pair


def score_barrier(data: AttentionData, W: Array, selection: Array) -> Tensor:
    """Measure how far W is inside the cone of paper A, Definition 3, ``(*B,)``.

        min_i  max_{t ∈ low_i}  min_{τ ∈ high_i}  (x_it − x_iτ)ᵀ W z_i / ‖W‖_F

    In every sequence some token of lower score than the selected one stands above all tokens of
    higher score, and keeps them away. W is in ``cone_ε(selection)`` if the number is at least ε.
    It is infinite for the optimal tokens, for which the cone is everything (Lemma 5).

    Example:
        >>> import attnmargin as am
        >>> data = am.AttentionData([[[3.0, 0.0], [5.0, 1.0], [2.0, 2.0]]], [[1, 0]], [1], [0, 1])
        >>> W = [[1.0, 0.0], [0.0, 0.0]]  # logits 3, 5, 2; scores 0, 1, 2
        >>> float(am.selections.score_barrier(data, W, [1]))
        1.0
    """
    a = relative_logits(data, W)
    masks = low_tokens(data, selection), high_tokens(data, selection)
    shape = torch.broadcast_shapes(a.shape, masks[0].shape)
    inner = data.z.ndim - data.X.ndim + 2  # (n,) or (n, K)
    flat = [x.expand(shape).flatten(-inner - 1, -2) for x in (a, *masks)]
    return barrier(*flat) / Frobenius().value(floats("W", W, like=data.X))


def in_direction_cone(
    W: Array, reference: Array, mu: float, radius: float = 0.0, p: float = 2.0
) -> Tensor:
    """Decide whether W is in the cone around a reference, bool ``(*B,)``.

        D_ψ(reference/‖reference‖_p, W/‖W‖_p) ≤ μ   and   ‖W‖_p ≥ R

    Paper B, Definition 5 (where (5b) prints the norm of the reference, not of W). With p = 2
    it is ``C_{μ,R}`` of paper A, eq. (4): correlation at least 1 − μ.

    Example:
        >>> import attnmargin as am
        >>> bool(am.selections.in_direction_cone([[4.0, 3.0]], [[1.0, 0.0]], mu=0.25, radius=5.0))
        True
    """
    for name, value in (("mu", mu), ("radius", radius), ("p", p)):
        if not isinstance(value, int | float):
            raise InputError(name, repr(value), "a number")
    if not mu > 0:
        raise InputError("mu", f"{mu}", "a positive number")
    weights, target = finite_pair(W, reference)
    size = Lp(float(p)).value(weights)
    inside = torch.zeros_like(size, dtype=torch.bool)
    some = size > 0
    if bool(some.any()):
        inside[some] = bregman(target[some], weights[some], p) <= mu
    return inside & (size >= radius)
