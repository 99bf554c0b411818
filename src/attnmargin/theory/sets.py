"""Checks for heads that make attention mix several tokens (paper A, Section 6)."""

import torch
from torch import Tensor

from attnmargin.attention.heads import Head, MarginHead, QuadraticHead
from attnmargin.attention.softmax import sequences
from attnmargin.data.attention_data import AttentionData
from attnmargin.margin.solution import Solution
from attnmargin.selections.composition import curvature, head_scores, unique_composition
from attnmargin.theory.check import Check, Outcome, outcome
from attnmargin.theory.elsewhere import other_papers

# How far the Gram matrix of tokens may be from the identity to count as orthonormal.
_ORTHONORMAL = 1e-9


def set_checks(
    data: AttentionData, head: Head, share: Tensor, solution: Solution, finite: Solution
) -> list[Check]:
    """Check what is known about a selection of sets, with shares ``(*B, n, T)``."""
    return [
        _separable(solution, "(Gen-SVM) is feasible", _SEPARATED),
        _separable(finite, "The finite part exists", _SHARED),
        _unique(data, share),
        assumption_e(data, head),
        lemma_6(data, head, share),
        *other_papers(),
    ]


_SEPARATED = "Some weights keep the mixed tokens level and all others below."
_SHARED = "Some weights share the attention among the mixed tokens as the head wants it."


def _separable(solution: Solution, name: str, meaning: str) -> Check:
    known = solution.feasible | solution.infeasible
    return Check("A", name, meaning, outcome(solution.feasible, known), {"norm": solution.value})


def _unique(data: AttentionData, share: Tensor) -> Check:
    return Check(
        "A",
        "The mixture is unique",
        "No other shares of the tokens give the same output.",
        outcome(unique_composition(data, share)),
        {},
        "it is where the tokens of a sequence are affinely independent",
    )


def _batch(data: AttentionData, x: Tensor) -> Tensor:
    """Reduce ``(B, N)`` to the worst over sequences, ``(*B,)``."""
    return x.amin(-1).reshape(data.batch_shape)


def assumption_e(data: AttentionData, head: Head) -> Check:
    """Check that a head preserves the top score; decided if ``y h`` is convex or concave.

    For a convex ``y h`` the c of eq. (87) serves. For a concave one the slope at the top token
    towards each other token decides: it must be negative, and c is its least size.
    """
    known = curvature(data, head)
    gamma = sequences_of(data, head_scores(data, head))
    best = gamma.argmax(-1, keepdim=True)
    others = gamma.scatter(-1, best, -torch.inf).amax(-1)
    c = torch.where(known.convex, gamma.amax(-1) - others, -_steepest(data, head, best))
    decided = (known.convex | known.concave).all(-1).reshape(data.batch_shape)
    least = _batch(data, c)
    return Check(
        "A",
        "Assumption E",
        "No mixture of worse tokens scores as high as the best one.",
        outcome(least > 0, decided),
        {"c, least loss of score per share": least},
    )


def sequences_of(data: AttentionData, x: Tensor) -> Tensor:
    """Reshape ``(*B, n, T)`` or ``(*B, n, K, T)`` to ``(B, N, T)``."""
    flat = sequences(data)
    return x.reshape(*flat.X.shape[:2], data.T)


def _steepest(data: AttentionData, head: Head, best: Tensor) -> Tensor:
    """Find the largest slope of ``y h`` from the best token towards another, ``(B, N)``."""
    flat = sequences(data)
    assert isinstance(head, MarginHead)
    assert flat.y is not None
    top = flat.X.take_along_dim(best.unsqueeze(-1), -2).squeeze(-2)
    pull = flat.y.unsqueeze(-1) * head.gradient(top)
    slope = ((flat.X - top.unsqueeze(-2)) @ pull.unsqueeze(-1)).squeeze(-1)
    return flat.seen(slope).scatter(-1, best, -torch.inf).amax(-1)


def lemma_6(data: AttentionData, head: Head, share: Tensor) -> Check:
    """Check that between 2 and τ orthonormal tokens are mixed, for a λ between the gaps."""
    counts = (share > 0).sum(-1).flatten(len(data.batch_shape))
    numbers = {
        "fewest tokens in a mixture": counts.amin(-1).to(torch.float64),
        "most tokens in a mixture": counts.amax(-1).to(torch.float64),
    }
    if not isinstance(head, QuadraticHead):
        return Check("A", "Lemma 6", _MIXED, Outcome.UNDECIDABLE, numbers, "about another head")
    return Check("A", "Lemma 6", _MIXED, outcome(_between(data, head)), numbers, _LEMMA_6)


_MIXED = "Attention mixes at least two tokens, and not too many."
_LEMMA_6 = (
    "it needs orthonormal tokens, labels 1, and τ with τ γ_τ/2 > λ > γ_1 for the score gaps γ"
)


def _between(data: AttentionData, head: QuadraticHead) -> Tensor:
    """Test the hypotheses of Lemma 6, bool ``(*B,)``."""
    flat = sequences(data)
    assert flat.y is not None
    if data.T == 1 or not len(flat.X):
        return torch.zeros(data.batch_shape, dtype=torch.bool)
    T, weight = data.T, head.weight.to(flat.X).reshape(-1, 1, 1)
    gram = flat.X @ flat.X.mT
    off = (gram - torch.eye(T, dtype=gram.dtype, device=gram.device)).abs().amax((-2, -1))
    v = head.v.to(flat.X).reshape(-1, 1, 1, data.d)
    gaps = -(flat.X * v).sum(-1).sort(-1, descending=True).values.diff(dim=-1)
    tau = torch.arange(1, T, dtype=gaps.dtype, device=gaps.device)
    above = (0.5 * tau * gaps > weight)[..., 1:].any(-1)
    inside = above & (weight[..., 0] > gaps[..., 0]) & (off < _ORTHONORMAL) & (flat.y == 1)
    return inside.all(-1).reshape(data.batch_shape)
