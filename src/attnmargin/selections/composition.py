"""The composition of tokens that minimises the loss of a head, sequence by sequence."""

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from attnmargin.attention.heads import Head, MarginHead, QuadraticHead, ReLUHead
from attnmargin.attention.score import scores
from attnmargin.attention.softmax import Sequences, sequences
from attnmargin.base.errors import InputError
from attnmargin.data.attention_data import AttentionData
from attnmargin.margin.problem import margin_problem
from attnmargin.solvers.entry import solve

# Shares below this are zero: they are multipliers of rows that do not touch.
_NOTHING = 1e-12


@final
@dataclass(frozen=True)
class Curvature:
    """Where ``x ↦ y h(x)`` is convex or concave on the tokens, bool ``(B, N)``; linear is both."""

    convex: Tensor
    concave: Tensor


def curvature(data: AttentionData, head: Head | None) -> Curvature:
    """Return what is known about the curvature of a head; None is the linear one."""
    flat = sequences(data)
    shape = flat.X.shape[:2]
    yes = torch.ones(shape, dtype=torch.bool, device=flat.X.device)
    if head is None:
        return Curvature(yes, yes)
    y = _labels(flat)
    if isinstance(head, QuadraticHead):
        bend = -y * head.weight.to(y).reshape(-1, 1)
        return Curvature(bend >= 0, bend <= 0)
    if isinstance(head, ReLUHead):
        return Curvature(y > 0, y < 0)
    return Curvature(~yes, ~yes)


def _labels(flat: Sequences) -> Tensor:
    if flat.y is None:
        raise InputError("data", "no labels", "labels y, which scores are made of")
    return flat.y


def head_scores(data: AttentionData, head: Head | None) -> Tensor:
    """Compute ``γ_it = y_i h(x_it)``, shaped as :func:`attnmargin.scores`; −inf if hidden."""
    if head is None:
        return scores(data)
    if not isinstance(head, MarginHead):
        raise InputError("head", type(head).__name__, "a head with one number per output")
    flat = sequences(data)
    B, N, T, d = flat.X.shape
    value = head.value(flat.X.reshape(B, N * T, d)).reshape(B, N, T)
    return flat.shaped(flat.seen(_labels(flat).unsqueeze(-1) * value))


def optimal_composition(data: AttentionData, head: Head | None = None) -> Tensor:
    """Find shares ``s`` that maximise ``y_i h(X_iᵀ s)`` over the simplex, ``(*B, n, T)``.

    A strictly decreasing loss wants this composition (paper A, Section 6). Where ``y h`` is
    convex it is a single token, the one of largest score (Lemma 2). For
    ``h(x) = vᵀx − λ‖x‖²`` with ``yλ > 0`` it is the point of the tokens' convex hull nearest to
    ``v / 2λ`` (Lemma 6), and its shares are the multipliers of a margin problem: the rows
    ``(x_t − v/2λ)ᵀ w ≥ 1`` have the solution ``w = o/‖o‖²`` with ``o = Σ s_t (x_t − v/2λ)``, or,
    if ``v/2λ`` lies in the hull, a contradiction with these weights. The output is unique, the
    shares are where no token is a mixture of others (see :func:`unique_composition`).

    Example:
        >>> import attnmargin as am
        >>> data = am.AttentionData([[[1.0, 0.0], [0.0, 1.0]]], [[1.0, 1.0]], [1.0], [1.0, 0.5])
        >>> head = am.heads.QuadraticHead(data.v, 1.0)
        >>> am.selections.optimal_composition(data, head).round(decimals=6).tolist()
        [[0.625, 0.375]]
    """
    gamma = head_scores(data, head)
    best = gamma.argmax(-1, keepdim=True)
    single = torch.zeros_like(gamma).scatter(-1, best, 1.0)
    known = curvature(data, head)
    if bool(known.convex.all()):
        return single
    if not isinstance(head, QuadraticHead):
        needs = "a linear or quadratic head, whose best composition can be computed"
        raise InputError("head", type(head).__name__, needs)
    flat = sequences(data)
    mixed = _nearest(flat, head)
    share = mixed.where(~known.convex.unsqueeze(-1), single.reshape(mixed.shape))
    return flat.shaped(share)


def unique_composition(data: AttentionData, share: Tensor) -> Tensor:
    """Decide whether no other shares give the same outputs, bool ``(*B,)``.

    They are unique if the visible tokens of every sequence are affinely independent, or if single
    tokens are selected that are no mixture of others of the same score.
    """
    flat = sequences(data)
    ones = torch.cat((flat.X, torch.ones_like(flat.X[..., :1])), -1)
    if flat.hidden is not None:
        ones = ones.masked_fill(flat.hidden.unsqueeze(-1), 0.0)
    count = torch.full(flat.X.shape[:2], data.T, device=flat.X.device)
    if flat.hidden is not None:
        count = (~flat.hidden).sum(-1)
    independent = torch.linalg.matrix_rank(ones) == count
    single = (share > 0).sum(-1).reshape(independent.shape) == 1
    return (independent | single).all(-1).reshape(data.batch_shape)


def _nearest(flat: Sequences, head: QuadraticHead) -> Tensor:
    """Find the shares of the point of each hull nearest to ``v / 2λ``, ``(B, N, T)``."""
    B, N, _, d = flat.X.shape
    v = head.v.to(flat.X).reshape(-1, d).expand(B, d)
    weight = head.weight.to(flat.X).reshape(-1, 1).expand(B, 1)
    centre = v / (2.0 * weight.where(weight != 0, 1.0))
    left = flat.X - centre[:, None, None, :]
    mask = None if flat.hidden is None else ~flat.hidden
    solution = solve(margin_problem(left, flat.X.new_ones(B, N, 1, 1), mask=mask))
    dual = solution.dual.clamp_min(0.0)
    share = dual / dual.sum(-1, keepdim=True)
    share = share.where(share > _NOTHING, 0.0)
    return share / share.sum(-1, keepdim=True)
