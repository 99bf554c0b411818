"""Predictions and confirmations as records, ready for JSON."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from attnmargin.base.words import counted
from attnmargin.margin.certificate import Status
from attnmargin.prediction.confirmation import Confirmation
from attnmargin.prediction.prediction import Prediction
from attnmargin.prediction.sentences import elsewhere, headline, verdict_sentence
from attnmargin.prediction.starts import Starts
from attnmargin.prediction.verdict import Verdict
from attnmargin.prediction.words import Words, name_tokens, selected_words, token_numbers
from attnmargin.report.numbers import number
from attnmargin.selections.search import Search
from attnmargin.theory import Check, Outcome

_MOST_CHOICES = 100


def prediction_record(
    prediction: Prediction,
    result: Confirmation | None,
    words: Words | None = None,
    *,
    alternatives: bool = True,
    theorems: bool = True,
) -> dict[str, Any]:
    """Describe a prediction, all but its arrays, ready for JSON.

    Args:
        prediction, result, words: what to describe.
        alternatives: search for the other locally optimal selections.
        theorems: check the statements of the papers.
    """
    members = list(np.ndindex(*prediction.data.batch_shape))
    results = []
    for index in members:
        one = prediction[index] if index else prediction
        entry = _member(one, index) | {"training": result and _training(result, index)}
        entry |= _alternatives(one) if alternatives else {}
        entry |= _theorems(one) if theorems else {}
        entry["holds"] = entry["status"] == Status.OPTIMAL and _as_said(entry["training"])
        results.append(entry)
    if len(results) == 1:
        results[0]["headline"] = _headline(prediction, words)
    if words is not None and not prediction.data.batch_shape:
        results[0]["words"] = selected_words(words, prediction.chosen)
    return {
        "parameter": prediction.parameter,
        "p": prediction.p,
        "norm": prediction.norm.name,
        "run": prediction.course.words(),
        "instances": len(results),
        "results": results,
        "verdicts": {str(v): sum(e["verdict"] == v for e in results) for v in Verdict},
        "agree": None if result is None else sum(e["training"]["agrees"] for e in results),
        "holds": all(entry["holds"] for entry in results),
    }


def _headline(one: Prediction, words: Words | None) -> str:
    """Say what the only instance of a batch selects."""
    one = one[(0,) * len(one.data.batch_shape)] if one.data.batch_shape else one
    several = one.data.z.ndim == one.data.X.ndim
    return headline(one, words or (None if several else name_tokens(one.data)))


def _member(one: Prediction, index: tuple[int, ...]) -> dict[str, Any]:
    status = Status(str(one.solution.status))
    return {
        "index": list(index),
        "verdict": str(one.verdict),
        "why": verdict_sentence(one),
        "status": str(status),
        "selection": token_numbers(one.selection),
        "best": one.best.tolist(),
        "since": int(one.since),
        "longest step": number(one.longest) if _has_proof(one) else None,
        "share": number(one.share) if _has_proof(one) else None,
        "margin": number(one.margin),
        "gap": number(one.solution.certificate.gap),
        "support": _tokens(one) if status == Status.OPTIMAL else [],
        "starts": None if one.random_starts is None else _starts(one.starts),
    }


def _has_proof(one: Prediction) -> bool:
    return one.ending is not None and int(one.ending.since) >= 0


def _alternatives(one: Prediction) -> dict[str, Any]:
    search = one.search
    return {
        "alternatives": [] if search is None else _choices(search),
        "elsewhere": None if search is None else elsewhere(one, search),
        "searched": None if search is None else search.searched,
        "total": None if search is None else search.total,
    }


def _theorems(one: Prediction) -> dict[str, Any]:
    return {
        "checks": [_check(check) for check in one.checks],
        "deciding": [check.label for check in one.deciding],
    }


def _starts(starts: Starts) -> list[dict[str, Any]]:
    rows = zip(starts.selections.tolist(), starts.count.tolist(), starts.proved.tolist(),
               starts.share.tolist(), starts.interval.tolist(), strict=True)  # fmt: skip
    names = ("selection", "runs", "proved", "share", "interval")
    return [dict(zip(names, row, strict=True)) for row in rows][:_MOST_CHOICES]


def _as_said(training: dict[str, Any] | None) -> bool:
    """Test whether training, if any, ended where the prediction says, and plain torch agrees."""
    return training is None or bool(training["agrees"] and training["plain"] is not False)


def _tokens(one: Prediction) -> list[list[int]]:
    """List support tokens as [sequence, token], or [sequence, query, token]."""
    places: list[list[int]] = one.support.nonzero().tolist()
    return places


def _choices(search: Search) -> list[dict[str, Any]]:
    pairs = zip(search.selections[:_MOST_CHOICES], search.margin, strict=False)
    return [{"selection": s.tolist(), "margin": number(margin)} for s, margin in pairs]


def _check(check: Check) -> dict[str, Any]:
    return {
        "statement": check.label,
        "paper": check.paper,
        "outcome": str(check.outcome),
        "meaning": check.meaning,
        "numbers": {name: number(x) for name, x in check.numbers.items()},
        "note": check.note,
    }


def outcome_words(checks: Sequence[Check]) -> str:
    """Count the outcomes of statements in one phrase.

    Example:
        >>> import attnmargin as am
        >>> from attnmargin.report.predictions import outcome_words
        >>> prediction = am.predict(am.random_data(2, 3, 4, name="doc"))
        >>> outcome_words(prediction.checks[:4])
        '4 of 4 statements hold for these data, 0 fail, 0 not decidable here'
    """
    count = Counter(check.outcome for check in checks)
    holds = f"{count[Outcome.HOLDS]} of {counted(len(checks), 'statement')} hold for these data"
    return f"{holds}, {count[Outcome.FAILS]} fail, {count[Outcome.UNDECIDABLE]} not decidable here"


def _training(result: Confirmation, index: tuple[int, ...]) -> dict[str, Any]:
    return {
        "steps": result.steps,
        "words": result.explain(index),
        "selection": result.selection[index].tolist(),
        "decided": bool(result.decided[index]),
        "agrees": bool(result.agrees[index]),
        "plain": None if result.plain is None else bool(result.plain.agrees[index]),
        "plain steps": None if result.plain is None else int(result.plain.steps[index]),
        "correlation": number(result.correlation[-1][index]),
        "own correlation": number(result.own_correlation[index]),
        "settled": int(result.settled[index]),
        "stays": bool(result.stays[index]),
        "probability": number(result.run.probability[-1][index]),
    }
