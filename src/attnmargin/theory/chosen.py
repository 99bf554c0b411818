"""A chosen selection, and the cones around its direction in which papers A and B prove their ends.

The words of the proofs: δ is half the distance of the nearest non-support token to the margin,
``A = max ‖x_it z_iᵀ‖ ‖W_mm‖``, Γ the largest difference of two scores, γ_gap the least distance of
a selected score to those of its support tokens, and L̄ bounds ``Σ|ℓ'_i| / min|ℓ'_i|``.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import final

import torch
from torch import Tensor

from attnmargin.attention.losses import Loss
from attnmargin.attention.score import (
    barrier,
    high_tokens,
    low_tokens,
    score_spread,
    scores,
)
from attnmargin.attention.softmax import gradient
from attnmargin.base.arrays import tiny
from attnmargin.data.attention_data import AttentionData
from attnmargin.margin.norms import Frobenius, Lp, Norm, Nuclear
from attnmargin.margin.solution import Solution
from attnmargin.selections.local_optimality import Locality, locality
from attnmargin.training.measures import bregman

# Share of μ that ε of paper A's proof, eq. (79), takes: any below one half.
_EPSILON = 0.25
# Share of μ that π of paper B's Lemma 17 takes: any below one third.
_PI = 0.25
# Share of the barrier of W_mm that ε of Theorem 9 takes, so that W_mm is inside of its cone.
_INSIDE = 0.5


def cone(delta: Tensor, value: Tensor, A: Tensor, ratio: Tensor) -> tuple[Tensor, Tensor]:
    """Compute μ and R of the cone of paper A, Theorem 7, eqs. (67) and (74), ``(*B,)`` each.

    Args:
        delta: half the distance of the nearest non-support token to the margin.
        value: ``‖W_mm‖``.
        A: the largest ``‖x_it z_iᵀ‖ ‖W_mm‖``.
        ratio: T times the range of the scores over their least gap to support tokens.
    """
    mu = 0.125 * (delta.clamp_max(0.5) / A) ** 2
    far = torch.maximum(torch.full_like(delta, 2.0), 1.0 / delta)
    return mu, far * value * (64.0 * A * ratio).log()


def largest_pair(data: AttentionData, q: float = 2.0) -> Tensor:
    """Compute ``max ‖x_it z_iᵀ‖_{q,q}``, ``(*B,)``: the product of the two vector norms."""
    tokens = torch.linalg.vector_norm(data.X, q, dim=-1).amax(-1)
    query = torch.linalg.vector_norm(data.z, q, dim=-1)
    sizes = (tokens.unsqueeze(-1) if data.z.ndim == data.X.ndim else tokens) * query
    return sizes.flatten(len(data.batch_shape)).amax(-1)


def choose(data: AttentionData, selection: Tensor, norm: Norm, p: float, loss: Loss) -> "Chosen":
    """Solve the SVM of selections int ``(*S, n)``; ``*S`` is the batch of the data, or any."""
    return Chosen(data, selection, locality(data, selection, norm), p, loss)


@final
@dataclass(eq=False)
class Chosen:
    """One selection per instance, or many of one instance; every number has their shape ``*S``."""

    data: AttentionData
    selection: Tensor  # int (*S, n), or (*S, n, K)
    found: Locality
    p: float
    loss: Loss

    @property
    def solution(self) -> Solution:
        """The SVM of the selection."""
        return self.found.solution

    @property
    def value(self) -> Tensor:
        """``‖W_mm‖`` in the norm of the problem."""
        return self.solution.value

    def inner(self, x: Tensor) -> tuple[int, ...]:
        """The dimensions of x after those of the selections."""
        return tuple(range(len(self.solution.problem.batch_shape), x.ndim))

    @cached_property
    def gamma(self) -> Tensor:
        """Scores of all tokens, ``(*S, n, T)``."""
        return scores(self.data).expand(*self.selection.shape, self.data.T)

    @cached_property
    def own(self) -> Tensor:
        """Scores of the selected tokens, ``(*S, n)``."""
        return self.gamma.gather(-1, self.selection.unsqueeze(-1))[..., 0]

    @cached_property
    def slack(self) -> Tensor:
        """δ: half the distance of the nearest non-support token to the margin."""
        problem, tight = self.solution.problem, self.solution.support
        beyond = (problem.apply(self.solution.W) - 1.0).where(problem.mask & ~tight, torch.inf)
        return 0.5 * beyond.amin(-1) if problem.M else torch.full_like(self.value, torch.inf)

    @cached_property
    def gap(self) -> Tensor:
        """γ_gap: the least distance of a selected score to its support tokens'."""
        guards = self.gamma.where(self.found.support, -torch.inf).amax(-1)
        gaps = (self.own - guards).where(torch.isfinite(guards), torch.inf)
        return gaps.amin(self.inner(gaps))

    @cached_property
    def far_gap(self) -> Tensor:
        """The largest distance of a selected score to one of its support tokens'."""
        guards = self.gamma.where(self.found.support, torch.inf).amin(-1)
        gaps = (self.own - guards).where(torch.isfinite(guards), 0.0)
        return gaps.amax(self.inner(gaps))

    @cached_property
    def lower_gap(self) -> Tensor:
        """c of paper A, eq. (87): the least distance of a selected score to a lower one."""
        low = low_tokens(self.data, self.selection)
        lower = self.gamma.where(low, -torch.inf).amax(-1)
        gaps = (self.own - lower).nan_to_num(nan=torch.inf, posinf=torch.inf)
        return gaps.amin(self.inner(gaps))

    @cached_property
    def _interval(self) -> tuple[Tensor, Tensor]:
        seen = torch.isfinite(self.gamma)
        low = self.gamma.where(seen, torch.inf)
        return low.amin(self.inner(low)), self.gamma.amax(self.inner(low))

    @cached_property
    def score_range(self) -> Tensor:
        """Γ: the largest difference of two scores of a sequence."""
        spread = score_spread(self.gamma)
        return spread.amax(self.inner(spread))

    @cached_property
    def slope_ratio(self) -> Tensor:
        """L̄, a bound of ``Σ|ℓ'_i| / min|ℓ'_i|``: ``n e^{b w}``, ``|ℓ''/ℓ'| ≤ b``, width w."""
        low, high = self._interval
        queries = math.prod(self.selection.shape[len(self.solution.problem.batch_shape) :])
        return queries * (self.loss.bend(low, high) * (high - low)).exp()

    # --- the cone of paper A --------------------------------------------------------------------

    @cached_property
    def _cone_a(self) -> tuple[Tensor, Tensor]:
        A = largest_pair(self.data) * self.value
        return cone(self.slack, self.value, A, self.data.T * self.score_range / self.gap)

    @property
    def mu(self) -> Tensor:
        """μ of paper A, eq. (67)."""
        return self._cone_a[0]

    @property
    def no_rest(self) -> Tensor:
        """R_μ of paper A, eq. (74): in the cone beyond this norm is no stationary point."""
        return self._cone_a[1].clamp_min(0.0)

    @property
    def grows(self) -> Tensor:
        """R_ε of paper A, eq. (79): beyond it ``⟨−∇L, W_mm⟩`` has the share 1 − ε of all.

        ``R_ε = ‖W_mm‖ / min(π/2, δ, ½) · log(128 T² Γ A L̄ / (π γ_gap))``, ``1 + π = 1/(1 − ε)``,
        from summing over the sequences before comparing them: Lemma 14 compares each on its own.
        """
        epsilon = _EPSILON * self.mu
        pi = epsilon / (1.0 - epsilon)
        A = largest_pair(self.data) * self.value
        size = 128.0 * self.data.T**2 * self.score_range * A * self.slope_ratio / (pi * self.gap)
        rate = torch.minimum(pi / 2.0, self.slack.clamp_max(0.5))
        return (self.value * size.log() / rate).clamp_min(0.0)

    @cached_property
    def radius_a(self) -> Tensor:
        """R of paper A, eq. (80): the largest of R_μ, R_ε and one half."""
        return torch.maximum(self.no_rest, self.grows).clamp_min(0.5)

    def step(self, W: Tensor) -> Tensor:
        """Compute ζ(μ) of paper A, Theorem 7, at W: steps up to it stay in the cone.

        ``ζ = (μ − ε) / (1 − μ) · ρ / ‖∇L(W)‖²``, ``ρ = ⟨−∇L(W), W_mm/‖W_mm‖⟩ / (1 − ε)``; zero
        where W_mm is no direction of descent.
        """
        G, log_scale = gradient(self.data, W, "linear", self.loss)
        epsilon = _EPSILON * self.mu
        toward = -(G * self.solution.W).sum((-2, -1)) / (self.value * (1.0 - epsilon))
        square = G.square().sum((-2, -1))
        ratio = toward.clamp_min(0.0) / square.clamp_min(tiny(square))
        longest = (self.mu - epsilon) / (1.0 - self.mu) * ratio * (-log_scale).exp()
        return longest.where(ratio != 0, 0.0)

    # --- the cone of paper B --------------------------------------------------------------------

    @property
    def _delta_b(self) -> Tensor:
        return self.slack.clamp_max(0.25)

    @cached_property
    def _A_b(self) -> Tensor:
        """A of paper B, eq. (8), in the dual norm that the proof of Lemma 9 uses."""
        pairs = largest_pair(self.data, self.p / (self.p - 1.0))
        return (pairs * Lp(self.p).value(self.solution.W)).clamp_min(1.0)

    @cached_property
    def mu_0(self) -> Tensor:
        """μ₀ of paper B, eq. (9): the cone in which its lemmas hold."""
        p, delta = self.p, self._delta_b
        if p >= 2.0:
            return (delta / (8.0 * self._A_b)) ** p / p
        return (delta * (p - 1.0) / (4.0 * self._A_b * self.data.d ** (2.0 / p - 1.0))) ** 2 / p

    @cached_property
    def R_delta(self) -> Tensor:
        """R_δ of paper B, Lemma 10: in the cone beyond it every V in the cone descends.

        ``R_δ = ‖W_mm‖/δ · log(2 Γ L̄ A T² (T + 1) / (γ_gap (1 − δ/2)))``.
        """
        T, delta = self.data.T, self._delta_b
        size = 2.0 * self.score_range * self.slope_ratio * self._A_b * T**2 * (T + 1)
        return (self.value / delta * (size / (self.gap * (1.0 - delta / 2.0))).log()).clamp_min(0.0)

    def R_pi(self, pi: Tensor) -> Tensor:
        """Compute R_π of paper B, Lemma 11.

        ``‖W_mm‖ / min(π, 3δ/2) · log((½ δ γ̄_gap T² + 6 Γ A T² (T + 1)) L̄ / (π γ_gap))``.
        """
        T, delta = self.data.T, self._delta_b
        rest = 6.0 * self.score_range * self._A_b * T**2 * (T + 1)
        size = (0.5 * delta * self.far_gap * T**2 + rest) * self.slope_ratio / (pi * self.gap)
        return (self.value * size.log() / torch.minimum(pi, 1.5 * delta)).clamp_min(0.0)

    @cached_property
    def R_mu(self) -> Tensor:
        """R_μ of paper B, Lemma 17, for μ = μ₀ and steps η ≤ 1: R_π, and ``(3 ΔL / μ)^{1/p}``."""
        low, high = self._interval
        fall = (self.loss.value(low) - self.loss.value(high)).abs()
        return torch.maximum(self.R_pi(_PI * self.mu_0), (3.0 * fall / self.mu_0) ** (1.0 / self.p))

    @cached_property
    def radius_b(self) -> Tensor:
        """R of paper B's theorems: the largest of R_δ and R_μ."""
        return torch.maximum(self.R_delta, self.R_mu)

    # --- a start --------------------------------------------------------------------------------

    def divergence(self, W: Tensor) -> Tensor:
        """Compute ``D_ψ(W_mm/‖W_mm‖_p, W/‖W‖_p)``, one minus the correlation for p = 2.

        It is infinite for W = 0, and NaN where W_mm has no direction.
        """
        target = self.solution.W
        W = W.expand_as(target)
        directed = torch.isfinite(self.value) & (self.value > 0)
        usable = (W != 0).flatten(-2).any(-1) & directed
        answer = torch.full_like(self.value, torch.inf)
        if bool(usable.any()):
            answer[usable] = bregman(target[usable], W[usable], self.p)
        return answer.where(directed, torch.nan)

    # --- the cone of local paths ----------------------------------------------------------------

    def _wall(self, W: Tensor) -> Tensor:
        """Measure how far W ``(*S, d, d)`` is inside the cone of Definition 3; NaN for zero."""
        data = self.data
        X, queries = data.X - data.X[..., :1, :], "nk" if data.z.ndim == data.X.ndim else "n"
        keys = torch.einsum(f"...de,...{queries}e->...{queries}d", W, data.z)
        logits = torch.einsum(f"...ntd,...{queries}d->...{queries}t", X, keys)
        low, high = (f(data, self.selection) for f in (low_tokens, high_tokens))
        first = len(self.solution.problem.batch_shape)
        flat = [x.expand_as(low).flatten(first, -2) for x in (logits, low, high)]
        size = Frobenius().value(W)
        return barrier(*flat) / size.where(size > 0, torch.nan)

    @cached_property
    def barrier(self) -> Tensor:
        """ε of paper A, Definition 3: half of how far W_mm is inside the cone of its selection."""
        return _INSIDE * self._wall(self.solution.W)

    @cached_property
    def R_0(self) -> Tensor:
        """R₀ of paper A, Theorem 10: ``log(4 B T / c) / (c_⋄ ε)``, zero for the optimal tokens.

        ``B = ‖v‖ max ‖x_it − x_iτ‖`` and ``c_⋄ = min ‖W‖_F / ‖W‖_⋄``; by (98), 4 B where step 1
        of the proof has B. NaN where W_mm is not inside of its cone.
        """
        data = self.data
        assert data.v is not None
        apart = torch.cdist(data.X, data.X).flatten(len(data.batch_shape)).amax(-1)
        B = torch.linalg.vector_norm(data.v, dim=-1) * apart
        size = (4.0 * B * data.T / self.lower_gap).log().clamp_min(0.0)
        reach = size / (self._norm_share * self.barrier)
        return reach.where(self.barrier > 0, torch.nan)

    @property
    def _norm_share(self) -> float:
        """``c_⋄``, the least ‖W‖_F of a W of norm one."""
        d, norm = self.data.d, self.solution.norm
        if isinstance(norm, Frobenius):
            return 1.0
        if isinstance(norm, Nuclear):
            return 1.0 / math.sqrt(d)
        return float(d) ** min(0.0, 1.0 - 2.0 / self.p)

    def in_local_cone(self, W: Tensor) -> Tensor:
        """Decide whether W is in ``cone_ε(α)`` with ``‖W‖_⋄ ≥ R₀``, bool."""
        size = self.solution.norm.value(W)
        return (self._wall(W) >= self.barrier) & (size >= self.R_0)
