"""Attention with trained embeddings (paper D): gradients, first step, selections, flow of p.

    f(X) = Σ_i q_i E_{x_i}ᵀ v,    q = softmax(E_X p),    L = mean log(1 + e^{−y f(X)})

E ``(S, d)`` embeds the vocabulary, p ``(d,)`` embeds ⟨cls⟩, and v ``(d,)`` is the head.
"""

from copy import copy
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from torch import Tensor

from attnmargin.attention.softmax import shared_offset
from attnmargin.base.arrays import Array, finite, floats
from attnmargin.base.display import Summarised, range_words
from attnmargin.base.errors import InputError
from attnmargin.data.attention_data import AttentionData, check_tokens, plus_minus_one, token_ids
from attnmargin.data.embeddings import embedding_table
from attnmargin.embeddings.statistics import TokenStatistics, count_tokens
from attnmargin.margin.builders import embedding_problem
from attnmargin.margin.certificate import Status
from attnmargin.margin.solution import Solution
from attnmargin.solvers.entry import solve
from attnmargin.training import Trajectory, gradient_flow

# Logits this close to the largest count as ties, as a fraction of the spread of all logits.
_TIED = 1e-9
# Largest relative gap of a norm that is given as known, in float64.
_KNOWN = 1e-9


@final
class EmbeddingModel:
    """Sequences with labels, and the embeddings of model (1) of paper D.

    Args:
        E: embeddings ``(S, d)``; p: embedding of ⟨cls⟩, ``(d,)``; v: head, ``(d,)``.
        sequences: token ids ``(n, T)``, or a list of n lists.
        y: labels −1 or +1, ``(n,)``.

    Example:
        >>> import attnmargin as am
        >>> E, p, v = [[1.0, 0.0], [0.0, 1.0]], [0.0, 0.0], [1.0, 0.0]
        >>> model = am.embeddings.EmbeddingModel(E, p, v, [[0, 1]], [1])
        >>> model.output.tolist(), [round(x, 4) for x in model.gradients()[1].tolist()]
        ([0.5], [-0.0944, 0.0944])
    """

    def __init__(self, E: Array, p: Array, v: Array, sequences: Array, y: Array) -> None:
        self.E = embedding_table(E, batched=False)
        self.p, self.v = (self._vector(name, value) for name, value in (("p", p), ("v", v)))
        self.ids, self.mask = token_ids(sequences, None, self.E)
        if self.ids.ndim != 2:
            raise InputError("sequences", f"shape {tuple(self.ids.shape)}", "token ids (n, T)")
        labels = finite("y", floats("y", y, like=self.E))
        if labels.shape != self.ids.shape[:1]:
            needs = f"one label per sequence, ({len(self.ids)},)"
            raise InputError("y", f"shape {tuple(labels.shape)}", needs)
        self.y = plus_minus_one(labels)

    def _vector(self, name: str, value: Array) -> Tensor:
        x = finite(name, floats(name, value, like=self.E))
        if x.shape != self.E.shape[1:]:
            raise InputError(name, f"shape {tuple(x.shape)}", f"({self.E.shape[1]},)")
        return x

    def at(self, E: Tensor, p: Tensor) -> "EmbeddingModel":
        """Return the model with the same data and other embeddings."""
        other = copy(self)
        other.E, other.p = E, p
        return other

    @property
    def visible(self) -> Tensor:
        """Which positions hold a token, bool ``(n, T)``."""
        return torch.ones_like(self.ids, dtype=torch.bool) if self.mask is None else self.mask

    @property
    def alpha(self) -> Tensor:
        """Average signed frequency (eq. 3), ``(S,)``; every sequence has the same weight."""
        seen = self.visible.to(self.E)
        return self._per_token(self.y.unsqueeze(-1) * seen / seen.sum(-1, keepdim=True)) / len(seen)

    def statistics(self) -> TokenStatistics:
        """Count the occurrences of every token by label."""
        seen = self.visible
        signs = self.y.unsqueeze(-1).expand_as(self.ids)[seen]
        return count_tokens(self.ids[seen].cpu().numpy(), signs.cpu().numpy(), len(self.E))

    @property
    def logits(self) -> Tensor:
        """``E_{x_i}ᵀ p``, ``(n, T)``; −inf at padding."""
        return (self.E @ self.p)[self.ids].masked_fill(~self.visible, -torch.inf)

    @property
    def _differences(self) -> Tensor:
        """Logits up to a constant, which attention does not see."""
        return (self._relative @ self.p)[self.ids].masked_fill(~self.visible, -torch.inf)

    @property
    def _relative(self) -> Tensor:
        """E without the offset that its rows may share, in which sums over tokens would drown."""
        return self.E - self._shared

    @property
    def _shared(self) -> Tensor:
        return shared_offset(self.E.amin(0), self.E.amax(0))

    @property
    def attention(self) -> Tensor:
        """q, ``(n, T)``."""
        return torch.softmax(self._differences, -1)

    @property
    def output(self) -> Tensor:
        """f, ``(n,)``."""
        return (self.attention * (self.E @ self.v)[self.ids]).sum(-1)

    @property
    def loss(self) -> Tensor:
        """The mean logistic loss."""
        return torch.nn.functional.softplus(-self.y * self.output).mean()

    def gradients(self) -> tuple[Tensor, Tensor]:
        """Compute ``∇_E L (S, d)`` and ``∇_p L (d,)`` (Lemma 7).

        With ``γ_i = E_{x_i}ᵀ v``, ``g = σ(−y f)`` and ``Σ_j q_j (γ_i − γ_j) = γ_i − f``:

            ∇_{E_s} = −mean y g Σ_{i: x_i = s} q_i ((γ_i − f) p + v)
            ∇_p     = −mean y g Σ_i q_i (γ_i − f) E_{x_i}
        """
        E = self._relative
        q, gamma = self.attention, (E @ self.v)[self.ids]
        top = gamma.gather(-1, q.argmax(-1, keepdim=True))
        lift = gamma - top  # no rounding where tokens are equal
        rise = (q * lift).sum(-1, keepdim=True)
        output = (top + rise)[:, 0] + self._shared @ self.v
        weight = (self.y * torch.sigmoid(-self.y * output)).unsqueeze(-1) * q / len(q)
        of_logits, of_values = self._per_token(weight * (lift - rise)), self._per_token(weight)
        of_E = -(of_logits.unsqueeze(-1) * self.p + of_values.unsqueeze(-1) * self.v)
        return of_E, -(of_logits @ E)

    def _per_token(self, rows: Tensor) -> Tensor:
        """Sum over the positions of every token of the vocabulary, ``(S,)``."""
        return rows.new_zeros(len(self.E)).index_add(0, self.ids.flatten(), rows.flatten())

    def selected(self, tolerance: float = _TIED) -> Tensor:
        """Mark ``S_X(p)``: positions with the largest ``E_sᵀ p`` (eq. 8), bool ``(n, T)``."""
        return self._largest(self.visible, tolerance)

    def second(self, tolerance: float = _TIED) -> Tensor:
        """Mark ``S²_X(p)``: positions in second place (Definition 15), bool ``(n, T)``.

        All other visible positions are ``S^<_X(p)``. A sequence with all tokens selected has none.

        Example:
            >>> import attnmargin as am
            >>> E, v = [[2.0, 0.0], [1.0, 1.0], [0.0, 2.0]], [1.0, 0.0]
            >>> model = am.embeddings.EmbeddingModel(E, [1.0, 0.0], v, [[0, 1, 2, 1]], [1])
            >>> model.second().tolist()
            [[False, True, False, True]]
        """
        return self._largest(self.visible & ~self.selected(tolerance), tolerance)

    def _largest(self, among: Tensor, tolerance: float) -> Tensor:
        """Mark the largest logits of each sequence among some positions, bool ``(n, T)``."""
        a = self._differences
        spread = (a.amax() - a.where(self.visible, torch.inf).amin()).clamp_min(0.0)
        top = a.masked_fill(~among, -torch.inf).amax(-1, keepdim=True)
        return among & (a >= top - tolerance * spread)

    def local_margin(self, tolerance: float = _TIED) -> Tensor:
        """Compute the largest μ for which p is locally optimal (Definition 16).

            μ = min_X min_{j ∈ S²_X(p)} Σ_{i ∈ S_X(p)} (γ_i − γ_j),   γ_i = y E_{x_i}ᵀ v

        p is locally optimal if ``μ > 0``; μ is infinite if every token is selected.

        Example:
            >>> import attnmargin as am
            >>> E, v = [[2.0, 0.0], [1.0, 1.0], [0.0, 2.0]], [1.0, 0.0]
            >>> model = am.embeddings.EmbeddingModel(E, [1.0, 0.0], v, [[0, 1, 2, 1]], [1])
            >>> float(model.local_margin())
            1.0
        """
        first, second = self.selected(tolerance).to(self.E), self.second(tolerance)
        gamma = self.y.unsqueeze(-1) * (self._relative @ self.v)[self.ids]
        total = (first * gamma).sum(-1, keepdim=True)
        lead = total - first.sum(-1, keepdim=True) * gamma
        return lead.masked_fill(~second, torch.inf).amin()

    def data(self) -> AttentionData:
        """Build attention data: tokens ``E_{x_i}``, labels, head; p uses no query, so z = 0."""
        X, mask = check_tokens(self.E[self.ids], self.mask)
        return AttentionData(X, torch.zeros_like(X[:, 0]), self.y, self.v, mask)

    def max_margin(self, selection: Array) -> Solution:
        """Find the shortest p̂ that selects these positions by a margin of one (eq. 9)."""
        return solve(embedding_problem(self.E, self.ids, selection, self.mask))

    def flow(self, length: float, record: int = 10, tolerance: float = 1e-6) -> Trajectory:
        """Follow the gradient flow of p alone (eq. 7) by arc length; the path is ``(R, d, 1)``."""
        return gradient_flow(
            self.data(), length, "p", init=self.p, record=record, tolerance=tolerance
        )


@final
@dataclass(frozen=True, eq=False, repr=False)
class FirstStep(Summarised):
    """One step of gradient descent on E and p, compared with the prediction of Lemma 2."""

    model: EmbeddingModel  # after the step
    error_E: Tensor  # (S,): ‖E¹_s − E⁰_s − (η/2) α_s v‖
    error_p: Tensor  # ‖p¹ − p⁰‖
    bound: float  # 11 η d^{−1/4}

    def summary(self) -> dict[str, str]:
        """Return the errors and the bound of Lemma 2, by name."""
        return {
            "error of embeddings": range_words(self.error_E),
            "error of p": range_words(self.error_p),
            "bound": f"{self.bound:.6g}",
            "within": "yes" if self.within else "no",
        }

    @property
    def within(self) -> bool:
        """Whether the bound of Lemma 2 holds."""
        return bool(max(self.error_E.max(), self.error_p) <= self.bound)


def first_step(model: EmbeddingModel, lr: float) -> FirstStep:
    """Take one step: ``E¹_s = E⁰_s + (η/2) α_s v + err_s``, ``p¹ = p⁰ + err_p`` (Lemma 2).

    Example:
        >>> import attnmargin as am
        >>> tokens = am.embeddings.important_tokens(6, 4, seed=0)
        >>> model = am.embeddings.random_embeddings(tokens, d=64, seed=0)
        >>> step = am.embeddings.first_step(model, lr=1.0)
        >>> step.within, round(step.bound, 3)
        (True, 3.889)
    """
    if not isinstance(lr, int | float) or not 0.0 < lr < float("inf"):
        raise InputError("lr", repr(lr), "a positive number")
    of_E, of_p = model.gradients()
    after = model.at(model.E - lr * of_E, model.p - lr * of_p)
    moved = 0.5 * lr * model.alpha.unsqueeze(-1) * model.v
    error_E = torch.linalg.vector_norm(after.E - model.E - moved, dim=-1)
    error_p = torch.linalg.vector_norm(after.p - model.p)
    return FirstStep(after, error_E, error_p, 11.0 * lr * model.E.shape[1] ** -0.25)


def other_selections(model: EmbeddingModel, important: Array, most: int = 4096) -> float:
    """Find the least ``‖p̂′‖`` of selections with more than the important positions (Lemma 19).

    The search is exhaustive: in every sequence, the important positions plus any set of others.
    It skips infeasible selections, and the selection of all positions, which p̂′ = 0 makes and
    Lemma 6 excludes. The result is infinity if no selection is left, NaN if one is undecided.

    Args:
        important: bool ``(n, T)``.
        most: raise InputError if there are more selections than this.

    Example:
        >>> import attnmargin as am
        >>> E = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
        >>> p, v, sequences = [0.0] * 3, [1.0, -1.0, 0.0], [[0, 2], [1, 2]]
        >>> model = am.embeddings.EmbeddingModel(E, p, v, sequences, [1, -1])
        >>> important = [[True, False], [True, False]]
        >>> round(float(model.max_margin(important).value), 4)
        0.8165
        >>> round(am.embeddings.other_selections(model, important), 4)
        0.8165
    """
    chosen = torch.as_tensor(important, dtype=torch.bool, device=model.E.device)
    if chosen.shape != model.ids.shape:
        needs = f"bool {tuple(model.ids.shape)}"
        raise InputError("important", f"shape {tuple(chosen.shape)}", needs)
    same = model.ids.unsqueeze(-1) == model.ids.unsqueeze(-2)
    chosen = (same & chosen.unsqueeze(-2)).any(-1) & model.visible
    free = (~chosen & model.visible).nonzero()
    if 2 ** min(len(free), 60) - 1 > most:
        got = f"2^{len(free)} − 1 other selections"
        raise InputError("important", got, f"at most {most}")
    count = 2 ** len(free) - 1
    if count == 0:
        return float("inf")
    numbers = torch.arange(1, count + 1, device=model.E.device).unsqueeze(-1)
    bits = (numbers >> torch.arange(len(free), device=model.E.device)) & 1
    stack = chosen.expand(count, *chosen.shape).clone()
    stack[:, free[:, 0], free[:, 1]] |= bits.bool()
    shape = (count, *model.E.shape)
    ids = model.ids.expand(count, *model.ids.shape)
    mask = None if model.mask is None else model.mask.expand(count, *model.mask.shape)
    solution = solve(embedding_problem(model.E.expand(shape), ids, stack, mask))
    if bool((np.asarray(solution.status) == Status.INACCURATE).any()):
        return float("nan")
    good = torch.as_tensor(solution.optimal) & (solution.value > 0.0)
    if not bool(good.any()):
        return float("inf")
    value, gap = solution.value[good], solution.certificate.gap[good]
    least = float(value.min())
    rivals = value * (1.0 - gap) <= least
    known = max(_KNOWN, solution.certificate.tolerance)
    return least if bool((gap[rivals] <= known).all()) else float("nan")
