"""What a run of attention will end in, how sure that is, and why."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import one_hot

from attnmargin.attention.heads import Head, QuadraticHead
from attnmargin.attention.losses import Loss
from attnmargin.attention.softmax import probabilities
from attnmargin.base.display import Summarised, few_words, range_words, tally_words
from attnmargin.base.errors import InputError
from attnmargin.base.progress import Progress
from attnmargin.data.attention_data import AttentionData
from attnmargin.margin.norms import Norm
from attnmargin.margin.solution import Solution
from attnmargin.prediction.course import Course
from attnmargin.prediction.ending import Ending
from attnmargin.prediction.sentences import verdict_sentence
from attnmargin.prediction.starts import Starts
from attnmargin.prediction.verdict import Verdict
from attnmargin.prediction.words import token_numbers
from attnmargin.selections.local_optimality import support_of
from attnmargin.selections.search import Search
from attnmargin.theory.check import Check, Outcome
from attnmargin.theory.facts import Facts
from attnmargin.theory.table import Grounds, all_checks

# Steps for which a run is observed that no theorem covers.
_OBSERVED = 2000


@final
@dataclass(frozen=True, eq=False, repr=False)
class Prediction(Summarised):
    """The prediction of what a run will learn from data; see :func:`attnmargin.predict`."""

    data: AttentionData  # batch *B, that of data, rates and starts together
    head: Head | None
    norm: Norm
    course: Course  # the run
    best: Tensor  # int (*B, n): the tokens of largest score, or the selection where that is sets
    selection: Tensor  # int (*B, n), of equal tokens the first; or bool sets (*B, n, T), where the
    # head mixes tokens, or tokens that tie for the best score are selected together
    solution: Solution  # direction, margin, support and certificate of the selection
    finite: Solution | None  # the finite part, where sets are selected
    verdict: Any  # a Verdict; an array of them, of the shape of the batch, for a batch
    ending: Ending | None  # where the run was left; None where sets are selected
    of_sets: list[Check] | None = None  # of a head that mixes tokens; empty for other methods
    limit: int | None = None  # selections that a search for alternatives may solve
    progress: Progress | None = None  # told about that search
    random_starts: Any = None  # Starts, or an array of them; None if not asked for

    def summary(self) -> dict[str, str]:
        """Return the verdict, what is selected, and by what margin, by name."""
        single = not self.data.batch_shape
        chosen = few_words(token_numbers(self.selection)) if single else "see .selection"
        return {
            "verdict": tally_words(self.verdict),
            "selection": chosen,
            "run": f"{self.parameter}, {self.course.words()}",
            "since step": "–" if self.ending is None else range_words(self.since.double()),
            "margin": range_words(self.margin),
            "trained": f"{self._method_words()}, {self.norm.name} norm",
            "data": repr(self.data),
        }

    def _method_words(self) -> str:
        settings = self.course.settings
        return f"p = {self.p:g}" if settings is None else repr(settings)

    @property
    def parameter(self) -> str:
        """What is trained: "W" or "KQ"."""
        return self.course.parameter

    @property
    def p(self) -> float:
        """The power of mirror descent."""
        return self.course.p

    @property
    def loss(self) -> str | Loss:
        """The loss."""
        return self.course.loss

    @property
    def since(self) -> Tensor:
        """The step from which the guarantee holds, int ``(*B,)``; −1 where there is none."""
        if self.ending is None:
            return torch.full(self.data.batch_shape, -1, dtype=torch.int64)
        everywhere = np.asarray(self.verdict == Verdict.GUARANTEED)
        return self.ending.since.masked_fill(torch.as_tensor(everywhere), 0)

    @property
    def longest(self) -> Tensor:
        """The longest step for which the guarantee holds, ``(*B,)``; 0 where there is none."""
        return self._of_guarantee("longest")

    @property
    def share(self) -> Tensor:
        """The least attention of a selected token, or set, for ever, ``(*B,)``; 0 if not proved."""
        return self._of_guarantee("share").clamp_min(0.0)

    def _of_guarantee(self, name: str) -> Tensor:
        found = None if self.ending is None else self.ending.proof
        if self.ending is None or found is None:
            return torch.zeros(self.data.batch_shape, dtype=torch.float64)
        value: Tensor = getattr(found, name)
        return value.where(self.ending.proved | self.ending.together, 0.0)

    def correlation(self, norm: float | Tensor) -> Tensor:
        """Bound the correlation of W with its limit from below where ``‖W‖_F`` is this large.

        Returns:
            ``(*B,)``; −1 where nothing is proved.
        """
        nothing = torch.full(self.data.batch_shape, -1.0, dtype=torch.float64)
        if self.ending is None or self.ending.proof is None:
            return nothing
        return self.ending.proof.correlation(norm).where(self.ending.proved, nothing)

    @property
    def chosen(self) -> Tensor:
        """The selection as sets, bool ``(*B, n, T)``."""
        if self.selection.dtype == torch.bool:
            return self.selection
        return one_hot(self.selection, self.data.T).bool()

    @property
    def direction(self) -> Tensor:
        """``W_mm``, ``(*B, d, d)``: the weights grow along it; NaN where infeasible."""
        return self.solution.W

    @property
    def margin(self) -> Tensor:
        """``1/‖W_mm‖``, ``(*B,)``."""
        return self.solution.margin

    @property
    def support(self) -> Tensor:
        """The support tokens: rivals at exactly the margin, bool ``(*B, n, T)``."""
        return support_of(self.data, self.solution)

    @property
    def feasible(self) -> Any:
        """Whether any W makes this selection, a bool or an array of them."""
        return self.solution.feasible.cpu().numpy()[()]

    @cached_property
    def _facts(self) -> Facts:
        home = self.data.to("cpu")
        own = (self.parameter, self.p, self.loss, self.limit, self.progress)
        facts = Facts(home, *own, init=self.course.asked)
        facts.norm = self.norm
        return facts

    @cached_property
    def _table(self) -> tuple[list[Check], Grounds | None]:
        return (self.of_sets, None) if self.of_sets is not None else all_checks(self._facts)

    @property
    def checks(self) -> list[Check]:
        """Every assumption and theorem of the papers, checked when first asked for.

        Where ``init`` was given, theorems about a start hold if it is in their cone; see
        :func:`attnmargin.theory.check_theory`.
        """
        return self._table[0]

    @property
    def grounds(self) -> Grounds | None:
        """The checks that decide what holds from every start; None where sets are selected."""
        return self._table[1]

    @property
    def theorems(self) -> list[Check]:
        """The checks that hold for these data."""
        return [check for check in self.checks if np.all(check.outcome == Outcome.HOLDS)]

    @cached_property
    def searches(self) -> NDArray[Any] | None:
        """Search per instance, shape ``*B``, done when first asked for; None for sets."""
        if self.ending is None:
            return None
        found = np.empty(tuple(self.data.batch_shape), dtype=object)
        members = np.ndindex(*self.data.batch_shape)
        for index, search in zip(members, self._facts.searches, strict=True):
            found[index] = search.to(self.data.X.device)
        return found

    @cached_property
    def observed(self) -> tuple[int, Tensor] | None:
        """Where a head mixes tokens: steps of the run, and the attention ``(*B, n, T)`` after them.

        No theorem covers such runs, so this is what is seen, at most 2,000 steps after the start;
        :func:`attnmargin.confirm` goes further.
        """
        if self.head is None:
            return None
        steps = min(self.course.steps, _OBSERVED)
        run = self.course.train(self.data, steps, steps, head=self.head)
        return steps, probabilities(self.data, run.W[-1])

    @property
    def search(self) -> Search | None:
        """The locally optimal selections of one instance."""
        if self.data.batch_shape:
            raise InputError("search", "a batch of predictions", "one of them: prediction[index]")
        if self.searches is None:
            return None
        found: Search = self.searches.item()
        return found

    @property
    def alternatives(self) -> Tensor:
        """The other locally optimal selections of one instance, int ``(S, n)``, by margin."""
        search = self.search
        if search is None:
            return self.selection[None][:0]
        return search.selections[~search.within(self.chosen)]

    @property
    def starts(self) -> Starts:
        """What runs from random starts end in, of one instance."""
        if self.random_starts is None:
            needs = "a prediction with random_starts=1000, say"
            raise InputError("starts", "a prediction without random starts", needs)
        if self.data.batch_shape:
            raise InputError("starts", "a batch of predictions", "one of them: prediction[index]")
        found: Starts = self.random_starts.item()
        return found

    @property
    def deciding(self) -> list[Check]:
        """Three checks that decide what holds from every start."""
        own = self.grounds
        if own is None:
            return self.checks[:3]
        theorem = own.one_sequence if self.data.n == 1 else own.long_step
        return [theorem, own.no_rest, own.only_one]

    def explain(self) -> str:
        """Say how sure the prediction of one instance is, and why."""
        return verdict_sentence(self)

    def check(self, label: str) -> Check:
        """Return the check with a label, such as "A: Theorem 6"."""
        for check in self.checks:
            if check.label == label:
                return check
        raise InputError("label", repr(label), "a label of one of the checks")

    def beside(self, data: AttentionData) -> "Prediction":
        """Return the same prediction with its tensors on the device of the data."""
        device = data.X.device
        return replace(
            self,
            data=data.expand(self.data.batch_shape),
            best=self.best.to(device),
            selection=self.selection.to(device),
            solution=self.solution.to(device),
            finite=None if self.finite is None else self.finite.to(device),
        )

    def __getitem__(self, index: Any) -> "Prediction":
        """Return members of the batch."""
        index = index.cpu().numpy() if isinstance(index, Tensor) else index
        data, starts, selection = self.data[index], self.random_starts, self.selection[index]
        if self.ending is not None and selection.dtype == torch.bool:
            single = bool((selection.sum(-1) <= 1).all())
            selection = selection.long().argmax(-1) if single else selection
        return replace(
            self,
            data=data,
            course=self.course[index],
            head=self.head.member(index) if isinstance(self.head, QuadraticHead) else self.head,
            best=self.best[index],
            selection=selection,
            solution=self.solution[index],
            finite=None if self.finite is None else self.finite[index],
            verdict=self.verdict[index],
            ending=None if self.ending is None else self.ending[index],
            of_sets=None if self.of_sets is None else [check[index] for check in self.of_sets],
            random_starts=None if starts is None else np.asarray(starts[index]),
        )
