"""Softmax attention and its gradients, exact in direction however far the softmax saturates.

For sequence i with logits ``a_i = X_i W z_i``, probabilities ``s_i`` and output ``o_i = X_iᵀ s_i``

    −∇L(W) = (1/n) Σ_i κ_i Σ_t s_it (g_it − ḡ_i) x_it z_iᵀ,   ḡ_i = Σ_t s_it g_it,

with the scores ``g_it = ⟨direction_i, x_it⟩`` of the head and the slope ``κ_i`` of the loss (paper
A, (17); for a linear head ``g`` is the token score γ). Sums are over differences to the most
likely token, and a common factor of a trial is kept as a logarithm: probabilities of 1 − 1e-300
lose no digit of the direction.

The terms of a sequence sum to zero over its tokens, so logits and gradients depend on differences
of tokens alone. What the tokens share is subtracted first, where that is exact: an offset of 1e10
common to all tokens costs no digit either.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import final

import torch
from torch import Tensor

from attnmargin.attention.heads import Head, HeadLike, ScoreHead, as_head
from attnmargin.attention.losses import Log, Loss, Squared, as_loss
from attnmargin.attention.score import scores, token_values
from attnmargin.base.arrays import Array, finite, floats, tiny
from attnmargin.base.errors import InputError
from attnmargin.data.attention_data import AttentionData


def shared_offset(low: Tensor, high: Tensor) -> Tensor:
    """Find what numbers between low and high have in common; zero if that is nothing.

    It is the one of least size if all have one sign and differ by at most a factor of two. Then the
    differences to it are floating-point numbers themselves.
    """
    alike = (low > 0) & (high <= 2 * low) | (high < 0) & (low >= 2 * high)
    return torch.where(low > 0, low, high).where(alike, 0.0)


@final
@dataclass
class Sequences:
    """Data with one batch dimension B and one query per sequence."""

    X: Tensor  # (B, N, T, d); zero where a token is hidden
    z: Tensor  # (B, N, e)
    hidden: Tensor | None  # bool (B, N, T)
    y: Tensor | None  # (B, N)
    batch: torch.Size
    queries: torch.Size  # (n,) or (n, K)
    blind: Tensor | None = None  # bool (B, N): what sees nothing, written as one zero token

    @cached_property
    def shared(self) -> Tensor | None:
        """What the visible tokens of a sequence have in common, ``(B, N, 1, d)``; None if nothing.

        See :func:`shared_offset`, column by column.
        """
        shared = shared_offset(self._least(self.X), -self._least(-self.X))
        return shared if bool(shared.any()) else None

    def _least(self, X: Tensor) -> Tensor:
        if self.hidden is not None:
            X = X.masked_fill(self.hidden.unsqueeze(-1), torch.inf)
        return X.amin(-2, keepdim=True)

    @cached_property
    def relative(self) -> Tensor:
        """Tokens without what they share, ``(B, N, T, d)``, for all that differences decide."""
        if self.shared is None:
            return self.X
        relative = self.X - self.shared
        if self.hidden is not None:
            relative.masked_fill_(self.hidden.unsqueeze(-1), 0.0)
        return relative

    def rise(self, gamma: Tensor, v: Tensor) -> Tensor:
        """Compute scores ``y_i v·x_it`` up to a constant per sequence, for heads ``(B, d)``.

        Where tokens share nothing they are the scores themselves, gamma.
        """
        if self.shared is None:
            return gamma
        assert self.y is not None
        rise = self.y.unsqueeze(-1) * token_values(self.relative, v)
        return self.averaged(rise).where(self.shared.any(-1), gamma)

    def logits(self, W: Tensor) -> Tensor:
        """Compute ``X W z`` up to a constant per sequence, ``(B, N, T)``, for W ``(B, d, e)``.

        Hidden tokens have −inf.
        """
        return self.seen((self.relative @ (self.z @ W.mT).unsqueeze(-1)).squeeze(-1))

    def seen(self, logits: Tensor) -> Tensor:
        return logits if self.hidden is None else logits.masked_fill(self.hidden, -torch.inf)

    def unseen(self) -> Tensor:
        """Which tokens are hidden, bool ``(B, N, T)``, as a dense array."""
        if self.hidden is None:
            return torch.zeros(self.X.shape[:-1], dtype=torch.bool, device=self.X.device)
        return self.hidden.contiguous()

    @cached_property
    def still(self) -> Tensor | None:
        """Which queries are zero and weigh all tokens alike, bool ``(B, N, 1)``; None if none."""
        zero = (self.z == 0).all(-1, keepdim=True)
        return zero if bool(zero.any()) else None

    def averaged(self, gamma: Tensor) -> Tensor:
        """Scores ``(B, N, T)``: zero if nothing is seen, the mean for all tokens of a zero query.

        The output of a zero query is that mean, and it pulls nowhere; but its attention never
        saturates, and would set the scale below which the pull of others is lost.
        """
        if self.blind is not None:
            gamma = gamma.masked_fill(self.blind.unsqueeze(-1), 0.0)
        if self.still is None:
            return gamma
        seen = ~self.unseen()
        return torch.where(self.still, (gamma * seen).sum(-1, True) / seen.sum(-1, True), gamma)

    def dense(self) -> tuple[Tensor, Tensor]:
        """Return tokens, without what they share, and queries as dense arrays."""
        return self.relative.contiguous(), self.z.contiguous()

    def shaped(self, rows: Tensor) -> Tensor:
        """Reshape ``(B, N, …)`` to the data, ``(*B, n, …)`` or ``(*B, n, K, …)``."""
        return rows.reshape(*self.batch, *self.queries, *rows.shape[2:])


def sequences(data: AttentionData) -> Sequences:
    """Write several queries of a sequence as several sequences."""
    batch, T, d = data.batch_shape, data.T, data.d
    several = data.z.ndim == data.X.ndim
    queries = data.z.shape[-3:-1] if several else data.z.shape[-2:-1]
    X = data.X.unsqueeze(-3) if several else data.X
    B, N = batch.numel(), queries.numel()
    X = X.expand(*batch, *queries, T, d).reshape(B, N, T, d)
    z = data.z.expand(*batch, *queries, d).reshape(B, N, d)
    y = None if data.y is None else data.y.expand(*batch, *queries).reshape(B, N)
    hidden = None
    if data.mask is not None:
        mask = data.mask
        if several and mask.ndim < data.X.ndim:
            mask = mask.unsqueeze(-2)
        elif not several and mask.ndim == data.X.ndim:
            mask = mask.squeeze(-2)
        hidden = ~mask.expand(*batch, *queries, T).reshape(B, N, T)
        if bool((blind := hidden.all(-1)).any()):
            return _without_blind(Sequences(X, z, hidden, y, batch, queries), blind)
    return Sequences(X, z, hidden, y, batch, queries)


def _without_blind(flat: Sequences, blind: Tensor) -> Sequences:
    """Queries that see nothing as ones that see a single zero: they have a loss, and no pull."""
    first = torch.arange(flat.X.shape[-2], device=blind.device) == 0
    hidden = flat.unseen() & ~(blind.unsqueeze(-1) & first)
    X = flat.X.masked_fill(blind[..., None, None], 0.0)
    return replace(flat, X=X, hidden=hidden, blind=blind)


def flat_weights(data: AttentionData, W: Array) -> Tensor:
    """Check weights ``(*B, d, d)``, or ``(d, d)`` for all, and return them as ``(B, d, d)``."""
    W = finite("W", floats("W", W, like=data.X))
    full = (*data.batch_shape, data.d, data.d)
    if W.ndim < 2 or W.shape[-2:] != full[-2:]:
        raise InputError("W", f"shape {tuple(W.shape)}", f"{full}, or {full[-2:]} for all")
    if W.shape[:-2] not in (torch.Size(), data.batch_shape):
        raise InputError("W", f"shape {tuple(W.shape)}", f"{full}, or {full[-2:]} for all")
    return W.expand(full).reshape(data.batch_shape.numel(), data.d, data.d)


def logits(data: AttentionData, W: Array) -> Tensor:
    """Compute ``X_i W z_i``, ``(*B, n, T)`` or ``(*B, n, K, T)``; −inf at hidden tokens.

    Example:
        >>> import attnmargin as am
        >>> data = am.AttentionData([[[1.0, 0.0], [0.0, 1.0]]], [[1.0, 2.0]])
        >>> am.logits(data, [[1.0, 0.0], [0.0, 1.0]]).tolist()
        [[1.0, 2.0]]
    """
    flat = sequences(data)
    image = flat.z @ flat_weights(data, W).mT
    return _unblind(flat, flat.seen((flat.X @ image.unsqueeze(-1)).squeeze(-1)))


def relative_logits(data: AttentionData, W: Array) -> Tensor:
    """Compute :func:`logits` up to a constant per query, for their differences."""
    flat = sequences(data)
    return _unblind(flat, flat.logits(flat_weights(data, W)))


def _unblind(flat: Sequences, logits: Tensor) -> Tensor:
    """Shape logits ``(B, N, T)`` as the data; −inf where nothing is seen."""
    if flat.blind is not None:
        logits = logits.masked_fill(flat.blind.unsqueeze(-1), -torch.inf)
    return flat.shaped(logits)


def probabilities(data: AttentionData, W: Array) -> Tensor:
    """Compute ``softmax(X_i W z_i)``, shaped as :func:`logits`; zero at hidden tokens.

    Example:
        >>> import attnmargin as am
        >>> data = am.AttentionData([[[1.0, 0.0], [0.0, 1.0]]], [[1.0, 2.0]])
        >>> am.probabilities(data, [[1.0, 0.0], [0.0, 1.0]]).round(decimals=3).tolist()
        [[0.269, 0.731]]
    """
    return torch.softmax(relative_logits(data, W), -1).nan_to_num(nan=0.0)


@final
@dataclass
class Slope:
    """The negative gradient in the logits: ``e^{log_scale} c``, and what came with it."""

    c: Tensor  # (B, N, T); sums to zero over tokens; the largest terms are about one
    log_scale: Tensor  # (B, 1, 1)
    loss: Tensor  # (B,), mean over sequences
    log_s: Tensor  # (B, N, T) logarithms of the probabilities
    s: Tensor  # (B, N, T)
    top: Tensor  # int (B, N, 1) most likely token
    log_slope: Tensor  # (B, N), log κ
    lift: Tensor  # (B, N, T), scores relative to that of the most likely token
    mean: Tensor  # (B, N, 1), the mean of the lift
    falls: Tensor | None = None  # (B, N), −1 where the loss of a linear head rises; None if nowhere


@final
class Objective:
    """The loss of a head on sequences.

    Linear heads have scores ``gamma``, and ``rise``, the same up to a constant per sequence, whose
    differences are those of the scores without their rounding.
    """

    def __init__(
        self,
        flat: Sequences,
        head: Head | None,
        loss: Loss,
        gamma: Tensor | None,
        rise: Tensor | None = None,
    ) -> None:
        self.flat, self.head, self.loss, self.gamma = flat, head, loss, gamma
        self.rise = gamma if rise is None else rise

    def use_head(self, v: Tensor) -> None:
        """Take the scores ``y_i v·x_it`` of linear heads ``(B, d)``."""
        if self.flat.y is None:
            raise InputError("y", "nothing", "labels, which the loss needs")
        gamma = (self.flat.X @ v[:, None, :, None]).squeeze(-1)
        self.gamma = self.flat.averaged(self.flat.y.unsqueeze(-1) * gamma)
        self.rise = self.flat.rise(self.gamma, v)

    def slope(self, logits: Tensor) -> Slope:
        """Compute the slope at logits ``(B, N, T)``."""
        log_s = torch.log_softmax(logits, -1)
        s = log_s.exp()
        top = logits.argmax(-1, keepdim=True)
        if self.gamma is not None and self.rise is not None:
            best = self.gamma.gather(-1, top)
            lift = self.rise - self.rise.gather(-1, top)
            mean = (s * lift).sum(-1, keepdim=True)
            u = (best + mean).squeeze(-1)
            loss, log_slope, falls = self._loss(u, best, lift, log_s)
            pulled = lift if falls is None else lift * falls.unsqueeze(-1)
        else:
            assert self.head is not None
            o = (s.unsqueeze(-2) @ self.flat.X).squeeze(-2)
            pull = self.head.pull(o, self.flat.y, self.loss)
            g = (self.flat.relative @ pull.direction.unsqueeze(-1)).squeeze(-1)
            lift = g - g.gather(-1, top)
            still = self.flat.still
            pulled = lift if still is None else lift.masked_fill(still, 0.0)
            mean = (s * lift).sum(-1, keepdim=True)
            loss, log_slope, falls = pull.loss, pull.log_slope, None
        c, log_scale = _coefficients(log_s, s, pulled, log_slope)
        return Slope(c, log_scale, loss.mean(-1), log_s, s, top, log_slope, lift, mean, falls)

    def _loss(
        self, u: Tensor, best: Tensor, lift: Tensor, log_s: Tensor
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Compute the loss, the logarithm of its slope, and where it falls, ``(B, N)`` each."""
        if isinstance(self.loss, Squared):
            sign, log_rest = _rest(best, lift, log_s)
            return (2.0 * log_rest).exp(), math.log(2.0) + log_rest, sign
        if not isinstance(self.loss, Log):
            falls = None if self.loss.always_falls else self.loss.falls(u)
            return self.loss.value(u), self.loss.log_slope(u), falls
        # Where tokens with a score have hardly any attention, u underflows, and log u does not.
        assert self.gamma is not None
        tail = torch.logsumexp(log_s + self.gamma.log(), -1)
        log_u = u.clamp_min(tiny(u)).log().where(u > 0.5, tail)
        return -log_u, -log_u, None


def _rest(best: Tensor, lift: Tensor, log_s: Tensor) -> tuple[Tensor, Tensor]:
    """Compute ``1 − u = (1 − γ) − Σ_t s_t l_t`` by its sign and logarithm, ``(B, N)`` each.

    γ ``(B, N, 1)`` is the score of the most likely token. If it is one, all of 1 − u is what the
    other tokens lift, however small their probabilities are.
    """
    terms = torch.cat((1.0 - best, -lift), -1)
    logs = torch.cat((torch.zeros_like(best), log_s), -1) + terms.abs().log()
    largest = logs.amax(-1, keepdim=True)
    largest = largest.where(torch.isfinite(largest), 0.0)
    total = (terms.sign() * (logs - largest).exp()).sum(-1)
    return torch.where(total < 0, -1.0, 1.0).to(total), largest[..., 0] + total.abs().log()


def _coefficients(
    log_s: Tensor, s: Tensor, lift: Tensor, log_slope: Tensor
) -> tuple[Tensor, Tensor]:
    """Write ``κ s (g − ḡ) / n`` as ``e^{log_scale} c``.

    With the lift ``l`` of a score over that of the most likely token it is ``κ s l − s Σ κ s l``.
    Tokens without lift (the most likely one, and those that tie with it) are moved by the second
    term alone, so the scale is that of the others, however small they are.
    """
    weight = (log_s + log_slope.unsqueeze(-1)).masked_fill(lift == 0, -torch.inf)
    largest = weight.amax((-2, -1), keepdim=True)
    largest = largest.where(torch.isfinite(largest), 0.0)
    c = (weight - largest).exp() * lift
    c -= s * c.sum(-1, keepdim=True)
    return c, largest - math.log(log_s.shape[-2])


def objective(
    data: AttentionData,
    head: HeadLike = "linear",
    loss: str | Loss = "logistic",
) -> Objective:
    """Build the loss of data under a head; the linear head is ``data.v``."""
    chosen, flat = as_head(head), sequences(data)
    gamma = rise = None
    if isinstance(head, ScoreHead):
        gamma = flat.averaged(head.of(flat.X))
    elif chosen is None:
        gamma = scores(data).expand(*flat.batch, *flat.queries, data.T)
        gamma = gamma.reshape(flat.X.shape[:-1])
        gamma = flat.averaged(gamma.nan_to_num(neginf=0.0))
        assert data.v is not None
        rise = flat.rise(gamma, data.v.expand(*flat.batch, data.d).reshape(-1, data.d))
    if gamma is not None and isinstance(as_loss(loss), Log) and not bool((gamma >= 0).all()):
        needs = "scores that are not negative: their mean is the u of −log u"
        raise InputError("loss", f"'log' with the score {float(gamma.min()):g}", needs)
    return Objective(flat, chosen, as_loss(loss), gamma, rise)


def gradient(
    data: AttentionData,
    W: Array,
    head: HeadLike = "linear",
    loss: str | Loss = "logistic",
) -> tuple[Tensor, Tensor]:
    """Compute the gradient of the mean loss in W; a positive factor per trial is separate.

    Returns:
        ``(G, log_scale)``, ``(*B, d, d)`` and ``(*B,)``: the gradient is ``e^{log_scale} G``, and
        G has entries of ordinary size even where the gradient itself would underflow.

    Example:
        >>> import attnmargin as am, torch
        >>> data = am.random_data(2, 3, 4, name="gradient")
        >>> W = 1e4 * am.solve(am.token_problem(data.X, data.z, am.optimal_tokens(data))).W
        >>> G, log_scale = am.gradient(data, W)
        >>> bool(log_scale < -9e3), bool(G.abs().max() > 1e-3)
        (True, True)
    """
    goal = objective(data, head, loss)
    flat = goal.flat
    slope = goal.slope(flat.logits(flat_weights(data, W)))
    keys = (slope.c.unsqueeze(-2) @ flat.relative).squeeze(-2)
    G = -(keys.mT @ flat.z)
    return G.reshape(*flat.batch, data.d, data.d), slope.log_scale.reshape(flat.batch)
