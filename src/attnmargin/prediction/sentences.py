"""Sentences about a prediction, shared by the library, the terminal and the pages."""

import math
from typing import Any, Protocol

from torch import Tensor

from attnmargin.margin.certificate import Status
from attnmargin.margin.explain import explain_infeasible
from attnmargin.margin.norms import Frobenius, Norm, Nuclear
from attnmargin.margin.solution import Solution
from attnmargin.prediction.verdict import Verdict
from attnmargin.prediction.words import Words, listing, selected_words
from attnmargin.selections.search import Search, count_words
from attnmargin.theory import Outcome
from attnmargin.theory.paper_a import FIRST_STEP
from attnmargin.theory.table import Grounds


class Answer(Protocol):
    """What the sentences need to know about the prediction of one instance."""

    @property
    def chosen(self) -> Tensor: ...

    @property
    def selection(self) -> Tensor: ...

    @property
    def verdict(self) -> Any: ...

    @property
    def norm(self) -> Norm: ...

    @property
    def p(self) -> float: ...

    @property
    def solution(self) -> Solution: ...

    @property
    def margin(self) -> Tensor: ...

    @property
    def grounds(self) -> Grounds | None: ...

    @property
    def search(self) -> Search | None: ...


def headline(prediction: Answer, words: Words) -> str:
    """Say in one sentence what attention will select."""
    picked = listing(selected_words(words, prediction.chosen))
    if prediction.solution.status == Status.INFEASIBLE:
        return f"No attention weights can select {picked} together"
    if not bool(prediction.solution.feasible):
        return f"It is not known whether any attention weights select {picked} together"
    if prediction.verdict == Verdict.DEPENDS:
        return f"Attention may learn to select {picked}: it depends on where training begins"
    surely = "will" if prediction.verdict == Verdict.GUARANTEED else "should"
    return f"Attention {surely} learn to select {picked}"


def optimiser(prediction: Answer) -> str:
    """Name the optimiser."""
    if isinstance(prediction.norm, Nuclear):
        return "gradient descent on K and Q, with W = K Qᵀ"
    if isinstance(prediction.norm, Frobenius):
        return "gradient descent on W"
    return f"ℓp mirror descent on W, p = {prediction.p:g}"


def norm_words(prediction: Answer) -> str:
    """Name the norm that measures the length of W."""
    if isinstance(prediction.norm, Nuclear):
        return "nuclear norm: the sum of its singular values"
    if isinstance(prediction.norm, Frobenius):
        return "Frobenius norm: the root of the sum of its squared entries"
    return f"ℓp norm of its entries, p = {prediction.p:g}"


def verdict_sentence(prediction: Answer) -> str:
    """Say how sure the prediction is, and why."""
    if prediction.solution.status == Status.INFEASIBLE:
        proof = explain_infeasible(prediction.solution.problem, prediction.solution.dual)
        return f"Infeasible: {proof}. {_elsewhere(prediction)}"
    if prediction.search is not None and prediction.search.total == 1:
        return "Guaranteed: every sequence has a single token, and there is nothing to choose."
    if prediction.verdict == Verdict.GUARANTEED:
        return _guaranteed(prediction)
    if prediction.verdict == Verdict.CONJECTURED:
        return _conjectured(prediction)
    return f"Depends on the start: {_promise(prediction)}. {_elsewhere(prediction)}"


def _promise(prediction: Answer) -> str:
    """Say what is promised where the start matters."""
    grounds = prediction.grounds
    if grounds is None or grounds.long_step.outcome != Outcome.HOLDS:
        return "no theorem promises that training ends with these tokens"
    return (
        f"from zero, after a first step {_first_step(grounds)}, training ends with these tokens "
        "(paper A, Theorem 6), but no theorem promises it of shorter steps"
    )


def _first_step(grounds: Grounds) -> str:
    """Say how long the first step of Theorem 6 must be."""
    length = grounds.long_step.numbers.get(FIRST_STEP)
    if length is None or math.isinf(float(length)):
        return "that is long enough"
    return f"of length {float(length):.3g}"


def _guaranteed(prediction: Answer) -> str:
    grounds = prediction.grounds
    assert grounds is not None
    theorems = [grounds.one_sequence, grounds.long_step]
    names = [check.name for check in theorems if check.outcome == Outcome.HOLDS]
    if grounds.one_sequence.outcome == Outcome.HOLDS:
        start = "from any start"
    else:
        start = f"that begins at zero, with a first step {_first_step(grounds)},"
    return (
        f"Guaranteed: training by gradient descent {start} ends with these tokens "
        f"(paper A, {' and '.join(names)}). {_elsewhere(prediction)}"
    )


def _conjectured(prediction: Answer) -> str:
    if prediction.search is None:
        return (
            "Conjectured: the head wants mixtures of tokens, and weights that grow in this "
            "direction, with a finite part that sets the shares, make them (paper A, Section 6)."
        )
    where = "" if isinstance(prediction.norm, Frobenius) else ", which states it for W alone"
    return (
        f"Conjectured: both conditions of the conjecture of paper A, Section 5.2{where}, hold; "
        f"nobody has proved it. {_elsewhere(prediction)}"
    )


def _elsewhere(prediction: Answer) -> str:
    """Say what else training could end with."""
    search = prediction.search
    if search is None:
        return ""
    own = prediction.selection in search
    others = len(search.selections) - int(own)
    total, searched = count_words(search.total), f"{search.searched:,}"
    tried = f"all {total}" if search.complete else f"{searched} of {total}"
    if search.total == 1:
        return "There is only one way to choose a token per sequence."
    if others:
        other = "other " if own else ""
        number = f"1 {other}choice is" if others == 1 else f"{others:,} {other}choices are"
        return (
            f"Of {tried} ways to choose one token per sequence that were tried, {number} stable"
            f"{' too' if own else ''}: training that begins near one of them {_stays(prediction)}."
        )
    if not own:
        return f"Of {tried} ways to choose one token per sequence that were tried, none is stable."
    if search.complete and prediction.verdict == Verdict.GUARANTEED:
        return (
            f"Of all {total} ways to choose one token per sequence only this one is stable, and "
            "the weights cannot come to rest: shorter first steps are not trapped either."
        )
    if search.complete:
        return (
            f"Of all {total} ways to choose one token per sequence only this one is stable"
            f"{_still_open(prediction)}."
        )
    return f"Of {tried} ways to choose one token per sequence that were tried, no other is stable."


def _still_open(prediction: Answer) -> str:
    """Say what keeps a single stable selection from being guaranteed."""
    grounds = prediction.grounds
    if grounds is None or prediction.verdict != Verdict.DEPENDS:
        return ""
    missing = []
    if grounds.no_rest.outcome != Outcome.HOLDS:
        missing.append("that the weights cannot come to rest before they select")
    if grounds.only_one.outcome != Outcome.HOLDS:
        missing.append("that tokens with equal scores cannot share the attention")
    if grounds.long_step.outcome != Outcome.HOLDS:
        missing.append("that the first step leads towards it")
    return f"; what is not proved: {listing(missing)}" if missing else ""


def _stays(prediction: Answer) -> str:
    """Say what is known about training that starts near a stable selection."""
    if isinstance(prediction.norm, Nuclear):
        return "can stay with it"
    return "stays with it"


def reach(prediction: Answer, length: float = 10.0) -> str:
    """Say what the margin means for the attention."""
    if math.isinf(float(prediction.margin)):
        return "there is no other token to be separated from"
    factor = math.exp(min(length * float(prediction.margin), 700.0))
    times = f"{factor:,.0f}" if 10 <= factor < 1e6 else f"{factor:.3g}"
    return (
        f"weights of length {length:g} in this direction give every selected token at least "
        f"{times} times the attention of any other token of its sequence"
    )
