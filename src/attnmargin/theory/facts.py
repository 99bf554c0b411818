"""Facts: what the checks need to know about the data, each computed once, on first use."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, final

import numpy as np
import torch
from torch import Tensor

from attnmargin.attention.losses import Loss
from attnmargin.attention.score import (
    optimal_tokens,
    score_gaps,
    score_rounding,
    score_spread,
    scores,
    tied_tokens,
)
from attnmargin.attention.selection import check_selection
from attnmargin.attention.softmax import Objective, gradient, objective, sequences
from attnmargin.base.arrays import Array
from attnmargin.base.progress import Progress
from attnmargin.data.attention_data import AttentionData
from attnmargin.data.copies import merge_copies
from attnmargin.margin.builders import token_problem
from attnmargin.margin.implied import check_parameter, implied_norm
from attnmargin.margin.norms import Frobenius, Norm, Nuclear
from attnmargin.margin.problem import margin_problem
from attnmargin.margin.solution import Solution
from attnmargin.selections.local_optimality import support_of
from attnmargin.selections.search import Search, local_selections
from attnmargin.solvers.entry import solve
from attnmargin.theory.chosen import Chosen, choose
from attnmargin.theory.start import Start, read_start
from attnmargin.theory.staying import staying_step

# Units in the last place, per term, by which a row value of the first direction may be off.
_ROUNDING = 4
# The parameterisations that a prediction is about: (v, W) has no fixed scores.
PREDICTED = ("W", "KQ")


@final
@dataclass(eq=False)
class Facts:
    """Data with a linear head, and what follows from them; tensors have the batch shape first."""

    data: AttentionData
    parameter: str = "W"
    p: float = 2.0
    loss: str | Loss = "logistic"
    limit: int | None = None
    progress: Progress | None = None
    selection: Array | None = None  # what the local theorems are asked about
    init: Any = None  # W(0), or the pair (K, Q)
    width: int | None = None  # m, the columns of K and Q
    norm: Norm = field(init=False)
    start: Start = field(init=False)

    def __post_init__(self) -> None:
        check_parameter(self.parameter, PREDICTED)
        self.norm = implied_norm(self.parameter, self.p)
        self.start = read_start(self.data, self.init, self.width, self.parameter)
        if self.selection is not None:
            self.selection = check_selection(self.data, self.selection, self.data.batch_shape)

    @property
    def on_W(self) -> bool:
        """Whether this is gradient descent on W, the case of paper A's descent theorems."""
        return isinstance(self.norm, Frobenius)

    @property
    def of_A(self) -> bool:
        """Whether the norm is one of paper A: Frobenius or nuclear."""
        return isinstance(self.norm, Frobenius | Nuclear)

    @cached_property
    def queries(self) -> int:
        """Number of queries of one instance."""
        return int(self.data.z.shape[self.data.X.ndim - 3 : -1].numel())

    def inner(self, x: Tensor) -> tuple[int, ...]:
        """The dimensions of x after the batch."""
        return tuple(range(len(self.data.batch_shape), x.ndim))

    @cached_property
    def gamma(self) -> Tensor:
        """Scores ``(*B, n, T)``."""
        return scores(self.data)

    @cached_property
    def best(self) -> Tensor:
        """The optimal tokens."""
        return optimal_tokens(self.data)

    @cached_property
    def unique(self) -> Tensor:
        """Whether every sequence has one best token, bool ``(*B,)``."""
        tied = tied_tokens(self.data)
        return ~tied.any(self.inner(tied)) if self.inner(tied) else ~tied

    @cached_property
    def gap(self) -> Tensor:
        """The smallest distance between the best and the second best score, ``(*B,)``."""
        gaps = score_gaps(self.data)
        return gaps.amin(self.inner(gaps))

    @cached_property
    def spread(self) -> Tensor:
        """The largest distance between two scores below the best, in one sequence, ``(*B,)``."""
        others = self.gamma.scatter(-1, self.best.unsqueeze(-1), -torch.inf)
        high = others.amax(-1)
        low = others.where(torch.isfinite(others), torch.inf).amin(-1)
        spread = (high - low).where(torch.isfinite(high), 0.0)
        return spread.amax(self.inner(spread))

    @cached_property
    def rounding(self) -> Tensor:
        """The distance within which rounding hides whether two scores are equal, ``(*B,)``."""
        return score_rounding(self.data).flatten(len(self.data.batch_shape)).amax(-1)

    @cached_property
    def solution(self) -> Solution:
        """The SVM of the optimal tokens."""
        data = self.data
        return solve(token_problem(data.X, data.z, self.best, data.mask), self.norm)

    @cached_property
    def chosen(self) -> Chosen:
        """The selection that the local theorems are about.

        It is the given one. Without it, the optimal tokens where they are locally optimal, else
        the locally optimal selection of largest margin that the search finds, if possible one
        with a cone of Definition 3; from a start, the one whose cone W(0) is deepest in, or
        nearest to.
        """
        selection = self.selection
        if selection is None:
            members = [self._choose(k, index) for k, index in enumerate(self.members)]
            selection = torch.stack(members).reshape(self.best.shape) if members else self.best
        assert isinstance(selection, Tensor)
        return choose(self.data, selection, self.norm, self.p, self.goal.loss)

    @cached_property
    def members(self) -> list[tuple[int, ...]]:
        """The index of every instance of the batch, in order."""
        return list(np.ndindex(*self.data.batch_shape))

    def _choose(self, k: int, index: tuple[int, ...]) -> Tensor:
        """Choose a selection of one instance; the optimal tokens if none is locally optimal."""
        usual = bool((self.unique & self.feasible)[index])
        if usual and self.start.W is None:
            return self._best_of(k)
        data = self.data[index] if index else self.data
        found = self.searches[k].selections
        if len(found) == 0:
            return self._best_of(k)
        tried = choose(data, found, self.norm, self.p, self.goal.loss)
        # By margin; those without low tokens that shield them (errata.md, Lemma 5) come last.
        order = -torch.arange(len(found)).double() - len(found) * ~(tried.barrier > 0)
        if self.start.W is not None:
            radius = tried.mu if self.on_W else tried.mu_0
            away = tried.divergence(self.start.W[index]).double()
            order = -(away / radius).where(away <= radius, 1.0 + away)
        # Where a sequence repeats a token, the search counts it once; Definition 2 does not.
        order = order.where(tried.found.local, -torch.inf).nan_to_num(nan=-torch.inf)
        return found[int(order.argmax())]

    @property
    def surveyed(self) -> Tensor:
        """Whether the chosen selection is given, or was chosen among all, bool ``(*B,)``."""
        return torch.ones_like(self.unique) if self.selection is not None else self.complete

    @property
    def none_local(self) -> Tensor:
        """Whether it is proved that no selection, or not the given one, is locally optimal."""
        refuted = ~self.chosen.found.local & ~self.chosen.found.undecided
        if self.selection is not None:
            return refuted
        # Instances with a locally optimal selection need no search.
        open_ones = [not bool(x) or self.searches[k].complete
                     for k, x in enumerate(refuted.flatten())]  # fmt: skip
        return refuted & torch.tensor(open_ones, dtype=torch.bool).reshape(refuted.shape)

    @cached_property
    def seen(self) -> Tensor:
        """The most tokens that a query sees, int ``(*B,)``."""
        count = torch.isfinite(self.gamma).sum(-1)
        return count.amax(self.inner(count))

    @property
    def choice(self) -> Tensor:
        """Whether some query sees two tokens, bool ``(*B,)``: without it W_mm and ∇L are zero."""
        return self.seen > 1

    @property
    def varies(self) -> Tensor:
        """Whether some sequence has tokens of different scores, bool ``(*B,)``."""
        return self.score_range > self.rounding

    @property
    def constant(self) -> Tensor:
        """Whether none has, bool ``(*B,)``: then the loss is the same for all W."""
        return self.score_range == 0

    @cached_property
    def feasible(self) -> Tensor:
        """Whether some W separates the optimal tokens, bool ``(*B,)``."""
        return self.solution.feasible

    @cached_property
    def settled(self) -> Tensor:
        """Whether it is known that some W separates them, or that none does, bool ``(*B,)``."""
        return self.feasible | self.solution.infeasible

    @cached_property
    def support(self) -> Tensor:
        """Support tokens of the optimal ones, bool ``(*B, n, T)``."""
        return support_of(self.data, self.solution)

    @cached_property
    def margins(self) -> Tensor:
        """Row values of the solution, ``(*B, M)``; NaN where there is no row."""
        problem = self.solution.problem
        return problem.apply(self.solution.W).where(problem.mask, torch.nan)

    @cached_property
    def goal(self) -> Objective:
        """The loss of the data."""
        return objective(self.data, "linear", self.loss)

    @cached_property
    def interval(self) -> tuple[Tensor, Tensor]:
        """Least and largest score, ``(*B,)`` each: the loss is evaluated between them."""
        seen = torch.isfinite(self.gamma)
        low = self.gamma.where(seen, torch.inf)
        return low.amin(self.inner(low)), self.gamma.amax(self.inner(low))

    @cached_property
    def first_direction(self) -> Tensor:
        """``−∇L(0)/‖∇L(0)‖_F``, ``(*B, d, d)``: where gradient descent from zero goes first."""
        zero = torch.zeros(self.data.d, self.data.d, dtype=self.data.X.dtype)
        G, _ = gradient(self.data, zero.to(self.data.X.device), "linear", self.loss)
        size = Frobenius().value(G)[..., None, None]
        return -G / size.where(size > 0, 1.0)

    @cached_property
    def _first_rows(self) -> Tensor:
        """Row values of the first direction, ``(*B, M)``; infinite where there is no row."""
        problem = self.solution.problem
        return problem.apply(self.first_direction).where(problem.mask, torch.inf)

    @cached_property
    def _first_noise(self) -> Tensor:
        """What rounding can make of these values, ``(*B, M)``; the direction has length one."""
        eps = torch.finfo(self.data.X.dtype).eps
        return _ROUNDING * self.queries * self.data.T * eps * self.solution.problem.lengths()

    def _least(self, rows: Tensor) -> Tensor:
        return rows.amin(-1) if rows.shape[-1] else torch.full_like(self.gap, torch.inf)

    @property
    def first_separates(self) -> Tensor:
        """Whether the first direction puts the optimal tokens above all others, ``(*B,)``."""
        return self._least(self._first_rows - self._first_noise) > 0

    @property
    def first_known(self) -> Tensor:
        """Whether more than rounding decides that, bool ``(*B,)``."""
        return self.first_separates | (self._least(self._first_rows + self._first_noise) < 0)

    @property
    def first_margin(self) -> Tensor:
        """Least margin of the first direction, as a share of the best one, ``(*B,)``."""
        return self._least(self._first_rows) * self.solution.value

    @cached_property
    def first_step(self) -> Tensor:
        """Length of a first step after which no descent leaves the optimal tokens, ``(*B,)``."""
        usable = self.feasible & self.unique & self.first_separates
        flat = sequences(self.data)
        direction = self.first_direction.reshape(-1, self.data.d, self.data.d)
        q = (self.gap / (4.0 * self.score_range * self.reach)).clamp_max(0.5)
        length = staying_step(self.goal, flat.logits(direction), usable.flatten(), q.flatten())
        return length.reshape(self.data.batch_shape)

    @cached_property
    def score_range(self) -> Tensor:
        """Γ, the largest difference of two scores in a sequence, ``(*B,)``."""
        spread = score_spread(self.gamma)
        return spread.amax(self.inner(spread))

    @cached_property
    def reach(self) -> Tensor:
        """A of paper A, (53): the largest logit, or difference of two, that ‖W_mm‖ allows."""
        flat = sequences(self.data)
        between = torch.cdist(flat.relative, flat.relative).amax((-2, -1))
        longest = torch.linalg.vector_norm(flat.X, dim=-1).amax(-1)
        pairs = torch.maximum(between, longest) * torch.linalg.vector_norm(flat.z, dim=-1)
        return pairs.amax(-1).reshape(self.data.batch_shape) * self.solution.value

    @property
    def one_sided(self) -> Tensor:
        """Whether some u has ``y_i uᵀz_i > 0`` for all i, bool ``(*B,)``.

        Along ``v uᵀ`` the loss then falls wherever scores under the softmax vary at all, since
        ``⟨∇L(W), v uᵀ⟩ = (1/n) Σ ℓ'_i Var_{s_i}(γ_i) y_i uᵀz_i``: no W is a stationary point.
        """
        return self._side.feasible.reshape(self.data.batch_shape)

    @property
    def side_known(self) -> Tensor:
        """Whether more than rounding decides that, bool ``(*B,)``."""
        known = self._side.feasible | self._side.infeasible
        return known.reshape(self.data.batch_shape)

    @cached_property
    def _side(self) -> Solution:
        flat = sequences(self.data)
        assert flat.y is not None
        ones = flat.z.new_ones(len(flat.z), 1, 1)
        return solve(margin_problem(flat.y.unsqueeze(-1) * flat.z, ones))

    @cached_property
    def searches(self) -> list[Search]:
        """The locally optimal selections of every instance of the batch, in order."""
        return [
            local_selections(
                self.data[index] if index else self.data,
                self.norm,
                limit=self.limit,
                progress=self._part(k, len(self.members)),
            )
            for k, index in enumerate(self.members)
        ]

    def _part(self, k: int, count: int) -> Progress | None:
        """Report the progress of one search as a part of all."""
        tell = self.progress
        if tell is None:
            return None
        return lambda done, total: tell(k * total + done, count * total)

    def of_searches(self, name: str) -> Tensor:
        """Collect an attribute of every search in a tensor ``(*B,)`` of numbers."""
        values: list[Any] = [getattr(search, name) for search in self.searches]
        return torch.tensor(values, dtype=torch.float64).reshape(self.data.batch_shape)

    @cached_property
    def complete(self) -> Tensor:
        """Whether every selection was decided, bool ``(*B,)``."""
        return self.of_searches("complete") > 0

    @cached_property
    def local_count(self) -> Tensor:
        """Number of locally optimal selections that were found, ``(*B,)``."""
        counts = [len(search.selections) for search in self.searches]
        return torch.tensor(counts, dtype=torch.float64).reshape(self.data.batch_shape)

    @property
    def several(self) -> Tensor:
        """Whether more than one selection is locally optimal, bool ``(*B,)``."""
        return self.local_count > 1

    @cached_property
    def distinct(self) -> Tensor:
        """Whether no two tokens of a sequence have the same score, bool ``(*B,)``.

        Tokens of equal score, such as a word that occurs twice, can share the attention for ever:
        then training can end in mixtures, which no search over single tokens finds.
        """
        ordered = self.gamma.sort(-1, descending=True).values
        seen = torch.isfinite(ordered[..., 1:])
        near = (ordered[..., :-1] - ordered[..., 1:] <= score_rounding(self.data)) & seen
        return ~near.any(self.inner(near)) if self.data.T > 1 else self.unique

    @cached_property
    def copied(self) -> Tensor:
        """Whether a query sees a token twice, bool ``(*B,)``."""
        found = merge_copies(self.data).any
        return found.any(self.inner(found)) if self.inner(found) else found

    @cached_property
    def alone(self) -> Tensor:
        """Whether it is proved that only the optimal tokens are locally optimal, ``(*B,)``."""
        listed = [self._best_of(k) in search for k, search in enumerate(self.searches)]
        own = torch.tensor(listed, dtype=torch.bool).reshape(self.data.batch_shape)
        marginal = [len(search.marginal) for search in self.searches]
        none = torch.tensor(marginal, dtype=torch.int64).reshape(self.data.batch_shape) == 0
        return self.complete & self.distinct & own & none & (self.local_count == 1)

    def _best_of(self, k: int) -> Tensor:
        inner = self.best.shape[len(self.data.batch_shape) :]
        return self.best.reshape(-1, *inner)[k]
