"""The main job: predict what attention selects and in which direction W grows, and say why."""

from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attnmargin.attention.heads import Head, HeadLike, ScoreHead, as_head
from attnmargin.attention.losses import Loss
from attnmargin.attention.score import refuse_ties
from attnmargin.base.checks import check_kind, check_number
from attnmargin.base.compiled import one_thread
from attnmargin.base.display import Summarised, few_words, range_words, tally_words
from attnmargin.base.errors import InputError
from attnmargin.base.progress import Progress
from attnmargin.data.attention_data import AttentionData
from attnmargin.margin.builders import finite_problem, token_problem
from attnmargin.margin.implied import check_parameter, implied_norm
from attnmargin.margin.norms import LARGEST_POWER, LEAST_POWER, Norm
from attnmargin.margin.solution import Solution
from attnmargin.prediction.sentences import verdict_sentence
from attnmargin.prediction.verdict import Verdict
from attnmargin.selections.composition import optimal_composition, unique_composition
from attnmargin.selections.local_optimality import support_of
from attnmargin.selections.search import Search
from attnmargin.solvers.entry import solve
from attnmargin.theory.check import Check, Outcome, holds
from attnmargin.theory.facts import PREDICTED, Facts
from attnmargin.theory.sets import set_checks
from attnmargin.theory.table import Grounds, all_checks


@final
@dataclass(frozen=True, eq=False, repr=False)
class Prediction(Summarised):
    """The prediction of what attention will learn from data; see :func:`predict`."""

    data: AttentionData
    parameter: str
    p: float
    loss: str | Loss
    head: Head | None
    norm: Norm
    selection: Tensor  # int (*B, n), or bool sets (*B, n, T)
    solution: Solution  # direction, margin, support and certificate of the selection
    finite: Solution | None  # the finite part, where sets are selected
    checks: list[Check]
    grounds: Grounds | None  # the checks that decide the verdict; None where sets are selected
    searches: NDArray[Any] | None  # Search per instance, shape *B; None where sets are selected
    verdict: Any  # a Verdict, or a numpy array of them

    def summary(self) -> dict[str, str]:
        """Return verdict, selection and margin, by name."""
        batch = self.data.batch_shape
        chosen = "see .selection" if batch else few_words(self.selection.tolist())
        return {
            "verdict": tally_words(self.verdict),
            "selection": chosen,
            "status": tally_words(self.solution.status),
            "margin": range_words(self.margin),
            "trained": f"{self.parameter}, p = {self.p:g}, {self.norm.name} norm",
            "data": repr(self.data),
        }

    @property
    def chosen(self) -> Tensor:
        """The selection as sets, bool ``(*B, n, T)``."""
        if self.selection.dtype == torch.bool:
            return self.selection
        return torch.nn.functional.one_hot(self.selection, self.data.T).bool()

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

    @property
    def theorems(self) -> list[Check]:
        """The checks that hold for these data."""
        return [check for check in self.checks if np.all(check.outcome == Outcome.HOLDS)]

    @property
    def search(self) -> Search | None:
        """The locally optimal alternatives of one instance."""
        if self.searches is None:
            return None
        if self.data.batch_shape:
            raise InputError("search", "a batch of predictions", "one of them: prediction[index]")
        found: Search = self.searches.item()
        return found

    @property
    def deciding(self) -> list[Check]:
        """The three checks that decide the verdict."""
        own = self.grounds
        if own is None:
            return self.checks[:3]
        theorem = own.one_sequence if self.data.n == 1 else own.long_step
        if np.all(self.verdict == Verdict.CONJECTURED):
            return [own.conjecture, theorem, own.no_rest]
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
        device, searches = data.X.device, None
        if self.searches is not None:
            searches = np.empty_like(self.searches)
            for index, search in np.ndenumerate(self.searches):
                searches[index] = search.to(device)
        return replace(
            self,
            data=data,
            selection=self.selection.to(device),
            solution=self.solution.to(device),
            finite=None if self.finite is None else self.finite.to(device),
            searches=searches,
        )

    def __getitem__(self, index: Any) -> "Prediction":
        """Return members of the batch."""
        index = index.cpu().numpy() if isinstance(index, Tensor) else index
        return replace(
            self,
            data=self.data[index],
            selection=self.selection[index],
            solution=self.solution[index],
            finite=None if self.finite is None else self.finite[index],
            checks=[check[index] for check in self.checks],
            grounds=None if self.grounds is None else self.grounds[index],
            searches=None if self.searches is None else np.asarray(self.searches[index]),
            verdict=self.verdict[index],
        )


@one_thread
def predict(
    data: AttentionData,
    parameter: str = "W",
    p: float = 2.0,
    *,
    loss: str | Loss = "logistic",
    head: HeadLike = "linear",
    limit: int | None = None,
    progress: Progress | None = None,
) -> Prediction:
    """Predict what softmax attention will learn from data, before training it.

        W(k) ≈ W_fin + R(k) · W_mm,   R → ∞

    The selected tokens are those of largest score (paper A, Lemma 2); ``W_mm`` solves the SVM that
    separates them, in the norm that the optimiser implies. The verdict says how sure that is:

    - *guaranteed*: the hypotheses of a theorem that promises this selection hold (paper A,
      Theorem 4 for one sequence, Theorem 6 after a long first step). With Theorem 6, two more
      conditions make sure that short steps cannot be trapped: there is no stationary point, and
      a complete search shows that no other selection is locally optimal.
    - *conjectured*: Assumptions B.1 and D hold (paper A, Section 5.2); or a head mixes several
      tokens, and their SVM is feasible (Section 6).
    - *depends on the start*: neither applies. If the weights keep growing, training ends in one
      of the locally optimal selections, which are listed with their margins. If the optimal
      tokens cannot be separated, training can stop at a finite point.

    Args:
        data: tokens, queries, labels and head, with any batch ``*B``.
        parameter: "W" or "KQ".
        p: of mirror descent; 2 is gradient descent.
        loss, head: as in :func:`attnmargin.train`; a head that is not linear must be a
            :class:`QuadraticHead`, whose best mixture of tokens can be computed.
        limit: how many selections the search may solve, see :func:`local_selections`.
        progress: called with the number of selections decided and the total.

    Returns:
        A :class:`Prediction`. An infeasible selection does not raise: see its
        ``solution.status``.

    Example:
        >>> import attnmargin as am
        >>> data = am.random_data(5, 5, 20, name="theory", min_gap=0.1)
        >>> prediction = am.predict(data)
        >>> prediction.verdict
        <Verdict.GUARANTEED: 'guaranteed'>
        >>> prediction.selection.tolist(), round(float(prediction.margin), 4)
        ([1, 4, 1, 3, 0], 0.4796)
    """
    check_kind("data", data, AttentionData)
    p = check_number("p", p, "a number p > 1")
    if not LEAST_POWER <= p <= LARGEST_POWER:
        needs = f"a power from {LEAST_POWER:g} to {LARGEST_POWER:g}, where solutions are exact"
        raise InputError("p", f"{p:g}", needs)
    if data.X.device.type != "cpu":
        # Small exact problems, one after the other: the CPU's compiled solvers are for them.
        home = predict(data.to("cpu"), parameter, p, loss=loss, head=head, limit=limit,
                       progress=progress)  # fmt: skip
        return home.beside(data)
    if isinstance(head, ScoreHead):
        needs = "the linear head of the data, or a QuadraticHead: its theorems are about these"
        raise InputError("head", "a ScoreHead", needs)
    chosen = as_head(head)
    if chosen is not None:
        return _predict_sets(data, parameter, p, loss, chosen)
    refuse_ties(data, "data", "a unique best token per sequence; these scores tie")
    facts = Facts(data, parameter, p, loss, limit, progress)
    checks, grounds = all_checks(facts)
    searches = np.empty(tuple(data.batch_shape), dtype=object)
    for index, search in zip(np.ndindex(*data.batch_shape), facts.searches, strict=True):
        searches[index] = search
    return Prediction(
        data,
        parameter,
        p,
        loss,
        None,
        facts.norm,
        facts.best,
        facts.solution,
        None,
        checks,
        grounds,
        searches,
        _verdict(facts, grounds),
    )


def _verdict(facts: Facts, grounds: Grounds) -> Any:
    """Return a :class:`Verdict`, or an array of them for a batch."""
    free = holds(grounds.no_rest) & facts.alone
    single = facts.of_searches("total") == 1  # one token per sequence: nothing to choose
    long = holds(grounds.long_step) & free
    return _words(holds(grounds.one_sequence) | long | single, holds(grounds.conjecture))


def _words(guaranteed: Tensor, conjectured: Tensor) -> Any:
    names = np.array([Verdict.DEPENDS, Verdict.CONJECTURED, Verdict.GUARANTEED], dtype=object)
    code = torch.where(guaranteed, 2, conjectured.to(torch.int64))
    answer: NDArray[Any] = names[code.cpu().numpy()]
    return answer


def _predict_sets(
    data: AttentionData, parameter: str, p: float, loss: str | Loss, head: Head
) -> Prediction:
    """Predict for a head that mixes tokens: sets, their direction, and the finite part."""
    check_parameter(parameter, PREDICTED)
    norm = implied_norm(parameter, float(p))
    share = optimal_composition(data, head)
    solution = solve(token_problem(data.X, data.z, share > 0, data.mask), norm)
    finite = solve(finite_problem(data.X, data.z, share, data.mask), norm)
    checks = set_checks(data, head, share, solution, finite)
    possible = solution.optimal & finite.optimal & unique_composition(data, share)
    # Where every sequence selects a single token, nothing is known of the others that might win.
    possible &= ((share > 0).sum(-1) > 1).flatten(len(data.batch_shape)).any(-1)
    return Prediction(
        data,
        parameter,
        float(p),
        loss,
        head,
        norm,
        share > 0,
        solution,
        finite,
        checks,
        None,
        None,
        _words(torch.zeros_like(possible), possible),
    )
