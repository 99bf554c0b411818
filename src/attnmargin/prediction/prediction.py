"""The main job: what attention will select, in which direction it grows, and who says so."""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attnmargin.attention.heads import Head, HeadLike, as_head
from attnmargin.attention.losses import Loss
from attnmargin.attention.score import score_rounding, scores, tied_tokens
from attnmargin.base.compiled import one_thread
from attnmargin.base.errors import InputError, check_kind, check_number
from attnmargin.data.attention_data import AttentionData
from attnmargin.margin.builders import finite_problem, token_problem
from attnmargin.margin.certificate import Status
from attnmargin.margin.norms import Norm
from attnmargin.margin.solution import Solution
from attnmargin.selections.composition import optimal_composition, unique_composition
from attnmargin.selections.local_optimality import support_of
from attnmargin.selections.search import Progress, Search
from attnmargin.solvers import solve
from attnmargin.theory.check import Check, Outcome, holds
from attnmargin.theory.facts import Facts, norm_of
from attnmargin.theory.sets import set_checks
from attnmargin.theory.table import all_checks


class Verdict(StrEnum):
    """How sure a prediction is."""

    GUARANTEED = "guaranteed"
    CONJECTURED = "conjectured"
    DEPENDS = "depends on the start"


@final
@dataclass(frozen=True, eq=False)
class Prediction:
    """What attention will learn from data; see :func:`predict`."""

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
    searches: NDArray[Any] | None  # Search per instance, shape *B; None where sets are selected
    verdict: Any  # a Verdict, or a numpy array of them

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
        """The tokens that guard the selection, bool ``(*B, n, T)``."""
        return support_of(self.data, self.solution)

    @property
    def feasible(self) -> Any:
        """Whether the selection can be made at all, a bool or an array of them."""
        return self.solution.status == Status.OPTIMAL

    @property
    def theorems(self) -> list[Check]:
        """The checks that hold: what applies to these data."""
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

    def check(self, label: str) -> Check:
        """One check by its label, such as "A: Theorem 6"."""
        for check in self.checks:
            if check.label == label:
                return check
        raise InputError("label", repr(label), "a label of one of the checks")

    def on(self, data: AttentionData) -> "Prediction":
        """The same prediction with its tensors where the data are."""
        device, searches = data.X.device, None
        if self.searches is not None:
            searches = np.empty_like(self.searches)
            for index, search in np.ndenumerate(self.searches):
                searches[index] = search.on(device)
        return replace(
            self,
            data=data,
            selection=self.selection.to(device),
            solution=self.solution.on(device),
            finite=None if self.finite is None else self.finite.on(device),
            searches=searches,
        )

    def __getitem__(self, index: Any) -> "Prediction":
        """Members of the batch."""
        index = index.cpu().numpy() if isinstance(index, Tensor) else index
        return replace(
            self,
            data=self.data[index],
            selection=self.selection[index],
            solution=self.solution[index],
            finite=None if self.finite is None else self.finite[index],
            checks=[check[index] for check in self.checks],
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
    """Tell what softmax attention will learn from data, before it is trained.

        W(k) ≈ W_fin + R(k) · W_mm,   R → ∞

    The selected tokens are those of largest score (paper A, Lemma 2); ``W_mm`` solves the SVM that
    separates them, in the norm that the optimiser implies. The verdict says how sure that is:

    - *guaranteed*: the hypotheses of a theorem that promises it hold (paper A, Theorem 4 for one
      sequence, Theorem 6 after a long first step), and for Theorem 6, so that short steps cannot
      be trapped either, there is no stationary point and a complete search shows that no other
      selection is locally optimal;
    - *conjectured*: Assumptions B.1 and D hold (paper A, Section 5.2); or, where a head mixes
      several tokens, their SVM is feasible (Section 6);
    - *depends on the start*: all else. Training that keeps growing ends in one of the locally
      optimal selections, which are listed with their margins; where the optimal tokens cannot be
      separated, it can come to rest at a finite point.

    Args:
        data: tokens, queries, labels and head, with any batch ``*B``.
        parameter: "W" or "KQ".
        p: of mirror descent; 2 is gradient descent.
        loss, head: as in :func:`attnmargin.train`; a head that is not linear must be a
            :class:`QuadraticHead`, whose best mixture of tokens can be computed.
        limit: how many selections the search may solve, see :func:`local_selections`.
        progress: called with the number of selections decided, and of all.

    Returns:
        A :class:`Prediction`. It does not raise when the selection is infeasible: ask its
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
    if data.X.device.type != "cpu":
        # Small exact problems, one after the other: the CPU's compiled solvers are for them.
        home = predict(data.to("cpu"), parameter, p, loss=loss, head=head, limit=limit,
                       progress=progress)  # fmt: skip
        return home.on(data)
    chosen = as_head(head)
    if chosen is not None:
        return _predict_sets(data, parameter, p, loss, chosen)
    _refuse_ties(data)
    facts = Facts(data, parameter, p, loss, limit, progress)
    checks = all_checks(facts)
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
        searches,
        _verdict(facts, checks),
    )


def _refuse_ties(data: AttentionData) -> None:
    tied = tied_tokens(data)
    if bool(tied.any()):
        place = tied.nonzero()[0].tolist()
        gamma = scores(data)[tuple(place)]
        near = gamma >= gamma.amax() - score_rounding(data).flatten().amax()
        tokens = near.nonzero().flatten().tolist()
        best = f"{float(gamma.amax()):g}"
        got = f"tokens {tokens} with the same best score {best} in {_place(data, place)}"
        raise InputError("data", got, "one best token per sequence: which one wins is not decided")


def _place(data: AttentionData, place: list[int]) -> str:
    batch = len(data.batch_shape)
    words = f"sequence {place[batch]}"
    if len(place) > batch + 1:
        words += f", query {place[batch + 1]}"
    return words + (f" of instance {tuple(place[:batch])}" if batch else "")


def _verdict(facts: Facts, checks: list[Check]) -> Any:
    """A :class:`Verdict`, or an array of them."""
    by = {check.label: holds(check) for check in checks}
    free = by["A: Theorem 3, by the queries"] & facts.alone
    single = facts.of_searches("total") == 1  # one token per sequence: nothing to choose
    guaranteed = by["A: Theorem 4"] | (by["A: Theorem 6"] & free) | single
    return _words(guaranteed, by["A: Conjecture of Section 5.2"])


def _words(guaranteed: Tensor, conjectured: Tensor) -> Any:
    names = np.array([Verdict.DEPENDS, Verdict.CONJECTURED, Verdict.GUARANTEED], dtype=object)
    code = torch.where(guaranteed, 2, conjectured.to(torch.int64))
    answer: NDArray[Any] = names[code.cpu().numpy()]
    return answer


def _predict_sets(
    data: AttentionData, parameter: str, p: float, loss: str | Loss, head: Head
) -> Prediction:
    """The prediction for a head that mixes tokens: sets, their direction, and the finite part."""
    norm = norm_of(parameter, float(p))
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
        _words(torch.zeros_like(possible), possible),
    )
