"""Predictions and confirmations as records, ready for JSON."""

from typing import Any

import numpy as np

from attnmargin.margin.certificate import Status
from attnmargin.prediction.confirmation import Confirmation
from attnmargin.prediction.prediction import Prediction
from attnmargin.prediction.sentences import verdict_sentence
from attnmargin.prediction.verdict import Verdict
from attnmargin.prediction.words import Words, selected_words
from attnmargin.report.numbers import number
from attnmargin.selections.search import Search
from attnmargin.theory import Check

_MOST_CHOICES = 100


def prediction_record(
    prediction: Prediction, result: Confirmation | None, words: Words | None = None
) -> dict[str, Any]:
    """Describe a prediction, all but its arrays, ready for JSON."""
    members = list(np.ndindex(*prediction.data.batch_shape))
    results = [_member(prediction, result, index) for index in members]
    if words is not None:
        results[0]["words"] = selected_words(words, prediction.chosen)
    return {
        "parameter": prediction.parameter,
        "p": prediction.p,
        "norm": prediction.norm.name,
        "instances": len(results),
        "results": results,
        "verdicts": {str(v): sum(e["verdict"] == v for e in results) for v in Verdict},
        "agree": None if result is None else sum(e["training"]["agrees"] for e in results),
        "holds": all(entry["holds"] for entry in results),
    }


def _member(
    prediction: Prediction, result: Confirmation | None, index: tuple[int, ...]
) -> dict[str, Any]:
    one = prediction[index] if index else prediction
    status = Status(str(one.solution.status))
    training = None if result is None else _training(result, index)
    return {
        "index": list(index),
        "verdict": str(one.verdict),
        "why": verdict_sentence(one),
        "status": str(status),
        "selection": one.selection.tolist(),
        "margin": number(one.margin),
        "gap": number(one.solution.certificate.gap),
        "support": _tokens(one) if status == Status.OPTIMAL else [],
        "alternatives": [] if one.search is None else _choices(one.search),
        "searched": None if one.search is None else one.search.searched,
        "total": None if one.search is None else one.search.total,
        "checks": [_check(check) for check in one.checks],
        "deciding": [check.label for check in one.deciding],
        "training": training,
        "holds": status == Status.OPTIMAL and _as_said(one, training),
    }


def _as_said(one: Prediction, training: dict[str, Any] | None) -> bool:
    """Test whether training, if any, ended where the verdict says."""
    if training is None:
        return True
    if one.verdict == Verdict.DEPENDS and one.search is not None:
        return bool(training["listed"] or not one.search.complete)
    return bool(training["agrees"])


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


def _training(result: Confirmation, index: tuple[int, ...]) -> dict[str, Any]:
    return {
        "steps": result.steps,
        "words": result.explain(index),
        "selection": result.selection[index].tolist(),
        "decided": bool(result.decided[index]),
        "agrees": bool(result.agrees[index]),
        "listed": bool(result.listed[index]),
        "correlation": number(result.correlation[-1][index]),
        "own correlation": number(result.own_correlation[index]),
        "settled": int(result.settled[index]),
        "stays": bool(result.stays[index]),
        "probability": number(result.run.probability[-1][index]),
    }
