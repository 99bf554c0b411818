"""The finite part of a decoder: the best shares among the words that follow, by Newton."""

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from attnmargin.decoders.contexts import NextWords
from attnmargin.decoders.subspace import Inside, inside

_MOST, _HALVINGS = 200, 40
# Rounding hides a smaller decrease of the value, relative to one; then the gradient decides.
_HIDDEN = 1e-9


@final
@dataclass(frozen=True, eq=False)
class FinitePart:
    """The minimiser inside the span, and how far from the exact one it can be at most."""

    W: Tensor  # (*B, V, d)
    excess: Tensor  # (*B,): value less the entropy; zero where the data are compatible
    gradient: Tensor  # (*B,): norm of the gradient inside the span
    error: Tensor  # (*B,): bound on the distance to the exact minimiser, in the Frobenius norm


@final
class _Shares:
    """Cross-entropy among the words that follow, as a function of coordinates ``(B, r)``."""

    def __init__(self, data: NextWords, span: Inside) -> None:
        self.J, self.exists = span.logits, span.exists
        self.p, self.weight, self.follows = data.probabilities, data.weight, data.follows

    def shares(self, theta: Tensor) -> tuple[Tensor, Tensor]:
        """Compute the logarithms of the shares and the shares, ``(B, m, V)``."""
        a = (self.J @ theta.unsqueeze(-1)).reshape(self.p.shape)
        logs = torch.log_softmax(a.masked_fill(~self.follows, -torch.inf), -1)
        return logs.where(self.follows, 0.0), logs.exp()

    def excess(self, theta: Tensor) -> Tensor:
        """Compute ``Σ_j weight_j KL(p_j ‖ shares)``, ``(B,)``."""
        logs, _ = self.shares(theta)
        own = self.p.log().where(self.follows, 0.0)
        return (self.weight * (self.p * (own - logs)).sum(-1)).sum(-1)

    def slope(self, theta: Tensor) -> tuple[Tensor, Tensor]:
        """Compute gradient ``(B, r)`` and Hessian ``(B, r, r)``; one where no direction exists."""
        s = self.shares(theta)[1]
        pull = self.weight.unsqueeze(-1) * (s - self.p)
        H = spread(self.J, s, self.weight) + torch.diag_embed((~self.exists).to(s))
        return (self.J.mT @ pull.flatten(-2).unsqueeze(-1))[..., 0], H


def spread(J: Tensor, share: Tensor, weight: Tensor) -> Tensor:
    """Compute ``Σ_j weight_j Cov_j`` of the rows of J ``(B, m V, r)`` under shares."""
    own = J.unflatten(1, share.shape[1:])
    mean = share.unsqueeze(-2) @ own  # (B, m, 1, r)
    size = (weight.unsqueeze(-1) * share).sqrt().unsqueeze(-1)
    rows = (size * (own - mean)).flatten(1, 2)
    return rows.mT @ rows


def finite_part(data: NextWords) -> FinitePart:
    """Find the finite part of training: the best shares among words that follow a context.

        W_fin = argmin over F of  Σ_j weight_j KL(p_j ‖ softmax of W h_j over words that follow)

    F is the span of ``(e_z − e_z′) h_jᵀ``, z and z′ following j. The function is strictly convex
    there, and has a minimum, since every word that follows has a positive probability. It is zero
    at the minimum exactly where the data are compatible; then W_fin is the W⋆ of 2402.18551.

    Damped Newton runs until only rounding is left in the gradient g. The third derivative is at
    most ``R = √2 max ‖h‖`` times the second, so with the least eigenvalue μ of the Hessian the
    exact minimiser is within ``−log(1 − R ‖g‖/μ)/R``.

    Example:
        >>> import attnmargin as am
        >>> data = am.decoders.random_next_words(4, 6, 8, 3)
        >>> found = am.decoders.finite_part(data)
        >>> exact = am.solve(data.equations).W
        >>> bool((found.W - exact).norm() < 1e-9), bool(found.error < 1e-9)
        (True, True)
    """
    batch, flat = data.batch_shape, flattened(data)
    span = inside(flat)
    theta = minimum(flat, span)
    shares = _Shares(flat, span)
    g, H = shares.slope(theta)
    size, least = g.norm(dim=-1), torch.linalg.eigvalsh(H)[..., 0] if g.shape[-1] else 1.0
    R = 2.0**0.5 * flat.contexts.norm(dim=-1).amax(-1).clamp_min(torch.finfo(g.dtype).tiny)
    reach = R * size / least
    error = (-torch.log1p(-reach.clamp_max(1.0)) / R).where(reach < 1.0, torch.inf)
    W = span.matrix(theta, (flat.V, flat.contexts.shape[-1]))
    parts = (W, shares.excess(theta), size, error)
    return FinitePart(*(x.reshape((*batch, *x.shape[1:])) for x in parts))


def flattened(data: NextWords) -> NextWords:
    """Give the data one batch dimension."""
    parts = (data.contexts, data.probabilities, data.weight)
    h, p, weight = (x.reshape((-1, *x.shape[len(data.batch_shape) :])) for x in parts)
    return NextWords(h, p, weight, data.words, data.names)


def minimum(data: NextWords, span: Inside) -> Tensor:
    """Minimise over coordinates ``(B, r)``: damped Newton, all members at once."""
    shares = _Shares(data, span)
    theta = data.contexts.new_zeros(span.exists.shape)
    g, H = shares.slope(theta)
    value = shares.excess(theta)
    done = torch.zeros_like(value, dtype=torch.bool)
    for _ in range(_MOST if theta.shape[-1] else 0):
        step = -torch.linalg.solve(H, g.unsqueeze(-1))[..., 0]
        drop = -(g * step).sum(-1)
        near = drop <= _HIDDEN * (1.0 + value)
        length = _length(shares, theta, step, value, drop).where(~near, 1.0)
        new = theta + length.unsqueeze(-1) * step
        g_new, H_new = shares.slope(new)
        done |= near & (g_new.norm(dim=-1) >= 0.5 * g.norm(dim=-1))
        if bool(done.all()):
            break
        keep = done.unsqueeze(-1)
        theta, g = theta.where(keep, new), g.where(keep, g_new)
        H = H.where(keep.unsqueeze(-1), H_new)
        value = shares.excess(theta)
    return theta


def _length(shares: _Shares, theta: Tensor, step: Tensor, value: Tensor, drop: Tensor) -> Tensor:
    """Halve the steps until the Armijo condition holds for every member."""
    length = torch.ones_like(value)
    for _ in range(_HALVINGS):
        bad = shares.excess(theta + length.unsqueeze(-1) * step) > value - 1e-4 * length * drop
        if not bool(bad.any()):
            break
        length = length.where(~bad, 0.5 * length)
    return length
