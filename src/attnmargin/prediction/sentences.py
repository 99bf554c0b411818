"""Sentences about a prediction, shared by the library, the terminal and the pages."""

import math
from typing import Any, Protocol

from torch import Tensor

from attnmargin.base.errors import InputError
from attnmargin.data.attention_data import AttentionData
from attnmargin.margin.certificate import Status
from attnmargin.margin.explain import explain_infeasible
from attnmargin.margin.norms import Frobenius, Lp, Norm, Nuclear, as_norm
from attnmargin.margin.solution import Solution
from attnmargin.prediction.course import Course
from attnmargin.prediction.ending import Ending
from attnmargin.prediction.missing import conjectured_words, shares_of_ties, undecided_words
from attnmargin.prediction.verdict import Verdict
from attnmargin.prediction.words import Words, listing, selected_words, token_numbers
from attnmargin.selections.search import Search, count_words
from attnmargin.training.methods import Steepest

# The angle is told for weights this many times as long as at the proof.
_LONGER = 10.0
_NORMS = {"fro": "Frobenius", "nuc": "nuclear", "spectral": "spectral", "max": "max",
          "sum": "sum", "rows": "row", "columns": "column"}  # fmt: skip
_MEANING = {
    "spectral": "its largest singular value",
    "max": "its largest entry in size",
    "sum": "the sum of the sizes of its entries",
    "rows": "the length of its longest row",
    "columns": "the length of its longest column",
}


class Answer(Protocol):
    """What the sentences need to know about the prediction of one instance."""

    @property
    def data(self) -> AttentionData: ...

    @property
    def chosen(self) -> Tensor: ...

    @property
    def selection(self) -> Tensor: ...

    @property
    def best(self) -> Tensor: ...

    @property
    def verdict(self) -> Any: ...

    @property
    def norm(self) -> Norm: ...

    @property
    def course(self) -> Course: ...

    @property
    def ending(self) -> Ending | None: ...

    @property
    def observed(self) -> tuple[int, Tensor] | None: ...

    @property
    def solution(self) -> Solution: ...

    @property
    def margin(self) -> Tensor: ...

    @property
    def longest(self) -> Tensor: ...

    @property
    def share(self) -> Tensor: ...

    def correlation(self, norm: float | Tensor) -> Tensor: ...


def headline(prediction: Answer, words: Words | None) -> str:
    """Say in one sentence what the run will select; without words, by numbers."""
    chosen = f"the tokens {token_numbers(prediction.selection)}"
    picked = chosen if words is None else listing(selected_words(words, prediction.chosen))
    run = f"Your run ({optimiser(prediction)} {prediction.course.words()})"
    if prediction.verdict in (Verdict.GUARANTEED, Verdict.FROM_START):
        return f"{run} will select {picked}"
    if prediction.verdict == Verdict.CONJECTURED:
        return f"{run} should select {picked}"
    if prediction.solution.status == Status.INFEASIBLE:
        return f"{run} cannot end with {picked}: no attention weights select them together"
    return f"{run} leans to {picked}, and may end elsewhere"


def optimiser(prediction: Answer) -> str:
    """Name the optimiser."""
    settings, parts = prediction.course.settings, "W"
    if prediction.course.parameter == "KQ":
        parts = "K and Q, with W = K Qᵀ,"
    if isinstance(settings, Steepest):
        momentum = f" and momentum {settings.momentum:g}" if settings.momentum else ""
        name = as_norm(settings.norm).name
        words = f"{_NORMS[name]} norm" if name in _NORMS else f"ℓp norm, p = {name},"
        return f"steepest descent in the {words}{momentum} on {parts}"
    if settings is not None:
        return f"Adam on {parts}"
    if isinstance(prediction.norm, Nuclear):
        return "gradient descent on K and Q, with W = K Qᵀ,"
    if isinstance(prediction.norm, Frobenius):
        return "gradient descent on W"
    return f"ℓp mirror descent on W, p = {prediction.course.p:g},"


def norm_words(prediction: Answer) -> str:
    """Name the norm that measures the length of W."""
    if isinstance(prediction.norm, Nuclear):
        return "nuclear norm: the sum of its singular values"
    if isinstance(prediction.norm, Frobenius):
        return "Frobenius norm: the root of the sum of its squared entries"
    if isinstance(prediction.norm, Lp):
        return f"ℓp norm of its entries, p = {prediction.norm.p:g}"
    return f"{_NORMS[prediction.norm.name]} norm: {_MEANING[prediction.norm.name]}"


def verdict_sentence(prediction: Answer) -> str:
    """Say how sure the prediction is, and why."""
    if prediction.data.batch_shape:
        raise InputError("prediction", "a batch of them", "one of them: prediction[index]")
    ending = prediction.ending
    if ending is None:
        return f"{_of_mixture(prediction)} {_observed(prediction)}"
    if prediction.verdict == Verdict.GUARANTEED:
        return _from_every_start(prediction)
    if prediction.verdict == Verdict.FROM_START:
        return _from_this_start(prediction, ending)
    if prediction.verdict == Verdict.CONJECTURED:
        return f"Conjectured: {conjectured_words(prediction.data, prediction.course, ending)}."
    why = undecided_words(prediction.data, prediction.course, ending)
    if prediction.solution.status == Status.INFEASIBLE:
        proof = explain_infeasible(prediction.solution.problem, prediction.solution.dual)
        why = f"no weights select these tokens together: {proof}; {why}"
    return f"Undecided: {why}."


def _of_mixture(prediction: Answer) -> str:
    if prediction.verdict == Verdict.CONJECTURED:
        return (
            "Conjectured: the head wants mixtures of tokens, and weights that grow in this "
            "direction, with a finite part that sets the shares, make them (paper A, Section 6)."
        )
    if prediction.solution.status == Status.INFEASIBLE:
        proof = explain_infeasible(prediction.solution.problem, prediction.solution.dual)
        return f"Undecided: no weights make this mixture: {proof}."
    return "Undecided: no theorem is about mixtures of this kind."


def _observed(prediction: Answer) -> str:
    """Say what a run shows that no theorem covers."""
    assert prediction.observed is not None
    steps, attention = prediction.observed
    outside = float((attention * ~prediction.chosen).sum(-1).max())
    words = f"all but {outside:.1g} of" if outside > 0.0 else "all"
    return f"Observed: after {steps:,} steps these tokens have {words} the attention."


def _from_every_start(prediction: Answer) -> str:
    seen = prediction.data.mask
    if prediction.data.T == 1 or (seen is not None and int(seen.sum(-1).max()) <= 1):
        return "Guaranteed: every sequence has a single token, and there is nothing to choose."
    if prediction.data.n == 1:
        why = "with one sequence, the best token wins (paper A, Theorem 4)"
    else:
        why = (
            "a long first step leads to them (paper A, Theorem 6), the weights cannot come to rest "
            "(Theorem 3), and no other choice of tokens is stable"
        )
    return f"Guaranteed from any start: {why}."


def _from_this_start(prediction: Answer, ending: Ending) -> str:
    found = ending.proof
    assert found is not None
    since = int(ending.since)
    when = "from the start" if since == 0 else f"from step {since:,} on"
    if bool(found.by_level) or bool(ending.together):
        why = "the loss is below that of every other choice of tokens (Theorem A)"
    elif bool(found.by_cone):
        why = "the weights are in a cone around their direction, which they never leave (Theorem C)"
    else:
        why = (
            "the weights are in a funnel around their direction, which they never leave (Theorem B)"
        )
    most, pace = float(prediction.longest), "steps"
    if not prediction.course.normalize:
        most, pace = float(found.rate), "rates"
    parts = [f"Certain {when}: {why}", f"{pace} of up to {most:.3g} keep it"]
    share = float(prediction.share)
    least = f"at least {share:.3g}" if share < 0.999 else f"all but {1.0 - share:.1g}"
    least = least if share < 1.0 else "all but less than 1e-16"
    if bool(ending.together):
        shares = shares_of_ties(prediction.data, prediction.course, ending)
        parts.append(f"together they keep {least} of the attention, and get all in the end")
        parts.append(f"how they share it is not proved: {shares}")
    elif share > 0.0:
        parts.append(f"every selected token keeps {least} of its attention")
    norm = _LONGER * float(ending.W.norm())
    angle = float(prediction.correlation(norm))
    if angle > 0.0:
        words = f"{angle:.4f}" if angle < 0.9999 else f"1 − {max(1.0 - angle, 1e-16):.0e}"
        parts.append(f"at norm {norm:,.0f} the correlation with W_mm is at least {words}")
    if bool(found.by_cone):
        parts.append(
            f"the Bregman divergence from W_mm stays below {float(found.divergence):.1g}, and "
            "tends to zero"
        )
    return f"{'; '.join(parts)}."


def elsewhere(prediction: Answer, search: Search) -> str:
    """Say what else training could end with, from other starts."""
    others = int((~search.within(prediction.chosen)).sum())
    own = len(search.selections) > others or prediction.selection in search
    total, searched = count_words(search.total), f"{search.searched:,}"
    tried = f"all {total}" if search.complete else f"{searched} of {total}"
    if search.total == 1:
        return "There is only one way to choose a token per sequence."
    ways = f"Of {tried} ways to choose one token per sequence that were tried"
    if others:
        other = "other " if own else ""
        number = f"1 {other}choice is" if others == 1 else f"{others:,} {other}choices are"
        stays = "can stay" if isinstance(prediction.norm, Nuclear) else "stays"
        too = " too" if own else ""
        return f"{ways}, {number} stable{too}: training that begins near one of them {stays} there."
    if not own:
        return f"{ways}, none is stable."
    return f"{ways}, {'only this one is' if search.complete else 'no other is'} stable."


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
