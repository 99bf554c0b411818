"""What ``attnmargin predict`` reports: records for programs, sentences and tables for people."""

from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from attnmargin.base.errors import InputError
from attnmargin.base.files import read_npz
from attnmargin.cli.solutions import number, short
from attnmargin.margin.certificate import Status
from attnmargin.prediction.confirmation import Confirmation
from attnmargin.prediction.prediction import Prediction, Verdict
from attnmargin.report.sentences import verdict_sentence
from attnmargin.report.words import plain_number
from attnmargin.selections.search import Search
from attnmargin.theory import Check, Outcome

_MOST_LINES, _MOST_CHOICES = 20, 100
_STYLE = {Outcome.HOLDS: "green", Outcome.FAILS: "red", Outcome.UNDECIDABLE: "dim"}


def read_words(file: Path) -> list[list[str]] | None:
    """The names of tokens in a data file: strings ``words`` of shape ``(n, T)``, if there are."""
    words = read_npz(file).get("words")
    if words is None:
        return None
    if words.ndim != 2:
        raise InputError("words", f"shape {words.shape}", "one name per token, (n, T)")
    return [[str(word) for word in row] for row in words]


def prediction_record(prediction: Prediction, result: Confirmation | None) -> dict[str, Any]:
    """Everything about a prediction but the arrays, ready for JSON."""
    members = list(np.ndindex(*prediction.data.batch_shape))
    results = [_member(prediction, result, index) for index in members]
    return {
        "parameter": prediction.parameter,
        "p": prediction.p,
        "norm": prediction.norm.name,
        "instances": len(results),
        "results": results,
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
        "training": training,
        "holds": status == Status.OPTIMAL and _as_said(one, training),
    }


def _as_said(one: Prediction, training: dict[str, Any] | None) -> bool:
    """Whether training, if there was any, ended where the verdict says."""
    if training is None:
        return True
    if one.verdict == Verdict.DEPENDS and one.search is not None:
        return bool(training["listed"] or not one.search.complete)
    return bool(training["agrees"])


def _tokens(one: Prediction) -> list[list[int]]:
    """Support tokens as [sequence, token], or [sequence, query, token]."""
    places: list[list[int]] = one.support.nonzero().tolist()
    return places


def _choices(search: Search) -> list[dict[str, Any]]:
    pairs = zip(search.selections[:_MOST_CHOICES], search.margin, strict=False)
    return [{"selection": s.tolist(), "margin": number(margin)} for s, margin in pairs]


def _check(check: Check) -> dict[str, Any]:
    return {
        "statement": check.label,
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


def print_prediction(record: dict[str, Any]) -> None:
    """Sentences and tables for one instance, a table of one line each for several."""
    console = Console()
    if record["instances"] == 1:
        _print_one(console, record["results"][0])
    else:
        _print_many(console, record["results"])
    for word in ("html", "out"):
        if record.get(word):
            console.print(
                f"{'page' if word == 'html' else 'saved'}: {record[word]}", soft_wrap=True
            )


def _print_one(console: Console, entry: dict[str, Any]) -> None:
    console.print(entry["why"], soft_wrap=True, markup=False)
    if entry["status"] == Status.OPTIMAL:
        console.print(
            f"selection {entry['selection']}, margin {short(entry['margin'], '.6g')}, "
            f"{len(entry['support'])} support tokens, certified with gap {entry['gap']:.1e}",
            soft_wrap=True,
            markup=False,
        )
    if len(entry["alternatives"]) > 1:
        console.print(_choice_table(entry))
    console.print(_check_table(entry["checks"]))
    if entry["training"]:
        console.print(_training_words(entry["training"]), soft_wrap=True, markup=False)


def _choice_table(entry: dict[str, Any]) -> Table:
    table = Table("stable selection", "margin")
    for choice in entry["alternatives"][:_MOST_LINES]:
        table.add_row(str(choice["selection"]), short(choice["margin"], ".6g"))
    more = len(entry["alternatives"]) - _MOST_LINES
    if more > 0:
        table.add_row(f"… and {more} more", "")
    return table


def _check_table(checks: list[dict[str, Any]]) -> Table:
    table = Table("statement", "here", "numbers")
    for check in checks:
        if check["statement"][0] in "CD":
            continue
        numbers = "; ".join(
            f"{name} = {plain_number(value)}"
            for name, value in check["numbers"].items()
            if value is not None
        )
        style = _STYLE[Outcome(check["outcome"])]
        table.add_row(check["statement"], f"[{style}]{check['outcome']}[/]", numbers)
    return table


def _training_words(training: dict[str, Any]) -> str:
    if not training["decided"]:
        return f"{training['words']} ({training['steps']:,} steps)"
    return (
        f"{training['words']} ({training['steps']:,} steps, the same from step "
        f"{training['settled']} on); "
        f"correlation {short(training['correlation'], '.6f')} with the prediction, "
        f"{short(training['own correlation'], '.6f')} with the SVM of what was selected"
    )


def _print_many(console: Console, results: list[dict[str, Any]]) -> None:
    table = Table("instance", "verdict", "margin", "stable selections", "searched", "training")
    for entry in results[:_MOST_LINES]:
        training = entry["training"]
        words = "–" if training is None else short(training["correlation"], ".6f")
        if training is not None and not training["agrees"]:
            words = "listed" if training["listed"] else "elsewhere"
            words = words if training["decided"] else "nothing"
        table.add_row(
            ", ".join(map(str, entry["index"])),
            entry["verdict"],
            short(entry["margin"], ".4g"),
            str(len(entry["alternatives"])),
            f"{entry['searched']} of {entry['total']}",
            words,
        )
    console.print(table)
    if len(results) > _MOST_LINES:
        console.print(f"… and {len(results) - _MOST_LINES} more")
    counts = {verdict: sum(e["verdict"] == verdict for e in results) for verdict in Verdict}
    console.print(", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
