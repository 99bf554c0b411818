"""What the checks of paper C need to know about next-token data."""

from functools import cached_property
from typing import Any, final

import numpy as np
import torch
from torch import Tensor

from attnmargin.attention.losses import Log, Loss, as_loss
from attnmargin.base.arrays import Array, finite, floats
from attnmargin.base.checks import check_number
from attnmargin.base.errors import InputError
from attnmargin.data.embeddings import embedding_table
from attnmargin.graphs import TokenGraphs, cyclic_correction, graph_problem, token_graphs
from attnmargin.graphs.composition import Composition, composition
from attnmargin.graphs.cyclic import choices
from attnmargin.graphs.samples import Samples, as_samples
from attnmargin.margin.solution import Solution
from attnmargin.solvers.entry import solve
from attnmargin.training.rates import log_lipschitz

# Relative excess over 1/L that rounding explains.
_RATE = 1e-12
_NEEDS = "a positive number, or 'auto' for 1/L"


@final
class NextTokenFacts:
    """What the checks need to know about next-token data; computed once."""

    def __init__(
        self,
        E: Array,
        sequences: Any,
        labels: Any,
        C: Array | None,
        loss: str | Loss,
        lr: float | str = "auto",
    ) -> None:
        self.sequences, self.labels, self.loss = sequences, labels, as_loss(loss)
        self.lr = lr if isinstance(lr, str) else check_number("lr", lr, _NEEDS)
        if self.lr != "auto" and (isinstance(self.lr, str) or not 0.0 < self.lr < float("inf")):
            raise InputError("lr", repr(lr), _NEEDS)
        table = embedding_table(E, batched=False)
        self.graphs: TokenGraphs = token_graphs(sequences, labels, table.shape[0])
        self.E = table.cpu().double()
        self.C = None if C is None else finite("C", floats("C", C)).cpu().double()
        if self.C is not None and self.C.shape != self.E.shape:
            needs = f"a classifier of shape {tuple(self.E.shape)}"
            raise InputError("C", f"shape {tuple(self.C.shape)}", needs)

    @cached_property
    def solution(self) -> Solution:
        """``W_mm``."""
        return solve(graph_problem(self.E, self.graphs))

    @property
    def ordered(self) -> bool:
        """Whether some token dominates another: W_mm is not zero."""
        return len(self.graphs.dominance[0]) > 0

    @cached_property
    def correction(self) -> Tensor | None:
        """``W_cyc`` of the log-loss; None where labels are not realisable."""
        if not self.graphs.realisable:
            return None
        return cyclic_correction(self.E, self.sequences, self.labels, self.graphs)

    @cached_property
    def composed(self) -> Composition:
        """Whether the loss, with C Eᵀ = I and free logits, has a finite ``W_cyc`` (Theorem 2)."""
        if self.graphs.acyclic or isinstance(self.loss, Log):
            return Composition(True, None)
        if not self.graphs.realisable:
            return Composition(None, None)
        given, nodes = choices(self.samples, self.graphs)
        return composition(given, self.graphs.component[nodes], self.loss)

    @cached_property
    def gaps(self) -> Tensor:
        """``c_yᵀ e_y − max_k c_yᵀ e_k`` over k ≠ y, ``(K,)``."""
        assert self.C is not None
        scores = self.C @ self.E.mT
        own = scores.diagonal()
        return own - scores.masked_fill(torch.eye(len(own), dtype=torch.bool), -torch.inf).amax(-1)

    @cached_property
    def samples(self) -> Samples:
        """The sequences, concatenated."""
        return as_samples(self.sequences, self.labels, self.graphs.vocabulary)

    @cached_property
    def rate(self) -> float:
        """``1/L`` with ``L = 2 √T_max ‖E‖⁴`` (23), the largest step of Lemma 5."""
        longest = float(np.diff(self.samples.start).max())
        return float(log_lipschitz(self.E, longest).reciprocal())

    @property
    def small_steps(self) -> bool:
        """Whether the step size obeys ``η ≤ 1/L``."""
        return isinstance(self.lr, str) or self.lr <= self.rate * (1.0 + _RATE)

    def _logits(self, W: Tensor) -> Tensor:
        """``x_itᵀ W x̄_i`` of all tokens, one sequence after the other."""
        query = (self.E @ W.mT)[torch.from_numpy(self.samples.last)]
        return (self.E[torch.from_numpy(self.samples.tokens)] * query[self._owner]).sum(-1)

    @cached_property
    def _owner(self) -> Tensor:
        return torch.from_numpy(self.samples.owner)

    def _mean(self, W: Tensor, values: Tensor) -> Tensor:
        """Average over tokens, weighted by the attention of W, ``(n,)``."""
        a, n = self._logits(W), self.samples.n
        top = a.new_full((n,), -torch.inf).scatter_reduce(0, self._owner, a, "amax")
        weight = (a - top[self._owner]).exp()
        total, sums = (
            a.new_zeros(n).index_add(0, self._owner, x) for x in (weight, weight * values)
        )
        return sums / total

    @cached_property
    def best(self) -> Tensor:
        """``c_yᵀ e_y`` of every sequence, ``(n,)``."""
        y = torch.from_numpy(self.samples.labels)
        return torch.ones(len(y)).double() if self.C is None else (self.C * self.E).sum(-1)[y]

    def excess(self, W: Tensor) -> Tensor:
        """``L(W) − L⋆`` with ``L⋆ = (1/n) Σ ℓ(c_yᵀ e_y)``, without cancellation (Lemma 1)."""
        y, tokens = (torch.from_numpy(x) for x in (self.samples.labels, self.samples.tokens))
        own = y[self._owner]
        score = (
            (own == tokens).double() if self.C is None else (self.C[own] * self.E[tokens]).sum(-1)
        )
        drop = self._mean(W, self.best[self._owner] - score)
        return self.loss.rise(self.best, drop).mean()

    def pull(self, W: Tensor) -> Tensor:
        """``−⟨∇L(0), W⟩`` of the log-loss, by (19)."""
        a, y = self._logits(W), torch.from_numpy(self.samples.labels)
        own = self._owner[torch.from_numpy(self.samples.tokens) == y[self._owner]]
        at_label = torch.zeros(self.samples.n).double()
        at_label[own] = a[torch.from_numpy(self.samples.tokens) == y[self._owner]]
        return (at_label - self._mean(torch.zeros_like(W), a)).mean()
