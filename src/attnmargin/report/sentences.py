"""A prediction in sentences."""

import math

from attnmargin.margin.certificate import Status
from attnmargin.margin.explain import explain_infeasible
from attnmargin.margin.norms import Frobenius, Nuclear
from attnmargin.prediction.prediction import Prediction, Verdict
from attnmargin.report.words import Words, chosen_tokens, listing, selected_words
from attnmargin.selections.search import count_words
from attnmargin.theory import Outcome


def headline(prediction: Prediction, words: Words) -> str:
    """What will be selected, in one sentence."""
    picked = listing(selected_words(words, chosen_tokens(prediction)))
    if prediction.solution.status != Status.OPTIMAL:
        return f"No attention weights can select {picked} together"
    if prediction.verdict == Verdict.DEPENDS:
        return f"Attention may learn to select {picked}: it depends on where training begins"
    surely = "will" if prediction.verdict == Verdict.GUARANTEED else "should"
    return f"Attention {surely} learn to select {picked}"


def optimiser(prediction: Prediction) -> str:
    """How it is trained."""
    if isinstance(prediction.norm, Nuclear):
        return "gradient descent on K and Q, with W = K Qᵀ"
    if isinstance(prediction.norm, Frobenius):
        return "gradient descent on W"
    return f"ℓp mirror descent on W, p = {prediction.p:g}"


def norm_words(prediction: Prediction) -> str:
    """The norm that measures the length of W."""
    if isinstance(prediction.norm, Nuclear):
        return "nuclear norm: the sum of its singular values"
    if isinstance(prediction.norm, Frobenius):
        return "Frobenius norm: the root of the sum of its squared entries"
    return f"ℓp norm of its entries, p = {prediction.p:g}"


def verdict_sentence(prediction: Prediction) -> str:
    """How sure the prediction is, and why."""
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


def _promise(prediction: Prediction) -> str:
    """What is promised where the start matters."""
    long = [check for check in prediction.checks if check.label == "A: Theorem 6"]
    if not long or long[0].outcome != Outcome.HOLDS:
        return "no theorem promises that training ends with these tokens"
    return (
        f"from zero, after a first step {_first_step(prediction)}, training ends with these tokens "
        "(paper A, Theorem 6), but no theorem promises it of shorter steps"
    )


def _first_step(prediction: Prediction) -> str:
    """How long the first step of Theorem 6 must be."""
    numbers = prediction.check("A: Theorem 6").numbers
    length = numbers.get("length of a first step that suffices")
    if length is None or math.isinf(float(length)):
        return "that is long enough"
    return f"of length {float(length):.3g}"


def _guaranteed(prediction: Prediction) -> str:
    names = [
        name
        for name in ("Theorem 4", "Theorem 6")
        if prediction.check(f"A: {name}").outcome == Outcome.HOLDS
    ]
    if "Theorem 4" in names:
        start = "from any start"
    else:
        start = f"that begins at zero, with a first step {_first_step(prediction)},"
    return (
        f"Guaranteed: training by gradient descent {start} ends with these tokens "
        f"(paper A, {' and '.join(names)}). {_elsewhere(prediction)}"
    )


def _conjectured(prediction: Prediction) -> str:
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


def _elsewhere(prediction: Prediction) -> str:
    """What else training could end with."""
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
            "there is no point of rest: shorter first steps are not held back either."
        )
    if search.complete:
        return f"Of all {total} ways to choose one token per sequence only this one is stable."
    return f"Of {tried} ways to choose one token per sequence that were tried, no other is stable."


def _stays(prediction: Prediction) -> str:
    """What is known of training that begins near a stable choice."""
    if isinstance(prediction.norm, Nuclear):
        return "can stay with it"
    return "stays with it"


def reach(prediction: Prediction, length: float = 10.0) -> str:
    """What the margin means for the attention."""
    if math.isinf(float(prediction.margin)):
        return "there is no other token to be separated from"
    factor = math.exp(min(length * float(prediction.margin), 700.0))
    times = f"{factor:,.0f}" if 10 <= factor < 1e6 else f"{factor:.3g}"
    return (
        f"weights of length {length:g} in this direction give every selected token at least "
        f"{times} times the attention of any other token of its sequence"
    )
