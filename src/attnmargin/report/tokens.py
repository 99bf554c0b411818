"""Decisive tokens as a record, table cells and sentences."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from attnmargin.base.words import counted
from attnmargin.prediction.words import listing
from attnmargin.report.numbers import number, signed
from attnmargin.text.tokens.agreement import ModelAgreement
from attnmargin.text.tokens.importance import TokenImportance

Row = dict[str, Any]
# Tokens of each kind in the sentence, and disagreements in a record.
_MOST_NAMED, _MOST_GAPS = 3, 10
# A neutral posterior difference farther from zero than this is told.
_UNBALANCED = 0.2
# Signed frequencies are shown per so many tokens.
PER = 10_000


def importance_record(
    found: TokenImportance,
    most: int,
    frequent: int | None = None,
    agreement: ModelAgreement | None = None,
) -> Row:
    """Describe a corpus and its most decisive tokens, ready for JSON.

    Args:
        most: tokens of each table.
        frequent: occurrences of tokens on which the model is compared with the counts.
        agreement: attention and gradient of the model beside the counts.
    """
    names = ("positive", "negative") + (("attended",) if found.run else ())
    kinds = found.statistics.kind
    compared = found.agreement(frequent) if found.run else None
    if compared is not None and agreement is not None:
        compared |= {name: _comparison(found, agreement, name) for name in _COMPARED}
    return {
        "texts": len(found.pieces) + found.empty,
        "without tokens": found.empty,
        "classes": list(found.classes),
        "texts by class": found.evidence.counts.sizes.tolist(),
        "steps": [step._asdict() for step in found.steps],
        "kinds": {str(kind): int((kinds == kind).sum()) for kind in sorted(set(kinds.tolist()))},
        "share": found.statistics.share,
        "neutral difference": 2.0 * found.statistics.share - 1.0,
        "level": found.evidence.level,
        "evidence": _evidence(found),
        "agreement": compared,
        **{
            name: [found.row(int(s)) for s in found.ranked(name, most, evidence=True)]
            for name in names
        },
    }


def classes_record(records: Sequence[Row]) -> Row:
    """Join the records of every class against the rest; of one comparison, it is that record."""
    if len(records) == 1:
        return dict(records[0])
    shared = ("texts", "without tokens", "steps", "level")
    own = [
        {"class": record["classes"][1]} | {k: v for k, v in record.items() if k not in shared}
        for record in records
    ]
    names = [record["class"] for record in own]
    return {"classes": names} | {k: records[0][k] for k in shared} | {"each": own}


_COMPARED = ("attention", "gradient")


def _comparison(found: TokenImportance, agreement: ModelAgreement, name: str) -> Row:
    """Describe how the model agrees with the counts, and the tokens on which it does not."""
    rank, low, high = agreement.correlation(name, found.evidence.level)
    gaps, values = agreement.gaps(name), getattr(agreement, name)
    order = np.argsort(-np.abs(gaps), kind="stable")[:_MOST_GAPS]
    return {
        "rank correlation": number(rank),
        "interval": [number(low), number(high)],
        "samples": len(agreement.samples),
        "tokens": len(agreement.tokens),
        "disagreements": [
            {
                "token": found.pieces.vocabulary[agreement.tokens[i]],
                "word": found.forms.shown[agreement.tokens[i]],
                "difference": float(agreement.difference[i]),
                name: float(values[i]),
                "ranks higher by": float(gaps[i]),
            }
            for i in order
        ],
    }


def _evidence(found: TokenImportance) -> Row:
    own = found.evidence
    count = int(own.found.sum())
    return {
        "tokens": len(own.found),
        "found": count,
        "positive": int((own.found & (own.side > 0)).sum()),
        "negative": int((own.found & (own.side < 0)).sum()),
        "noise": len(own.found) - count,
    }


def evidence_sentence(record: Row) -> str:
    """Say how many tokens are evidence for a class, how many noise, and at which level."""
    own, level = record["evidence"], record["level"]
    negative, positive = record["classes"]
    if not own["found"]:
        return (
            f"No token is evidence for a class at level {level:g}: the classes share all "
            f"{counted(own['tokens'], 'token')} as chance would have it."
        )
    return (
        f"{own['found']:,} of {counted(own['tokens'], 'token')} "
        f"{'is' if own['found'] == 1 else 'are'} evidence at level {level:g}, {own['positive']:,} "
        f"for {positive} and {own['negative']:,} for {negative}; chance explains the other "
        f"{own['noise']:,}. At most {level:.3g} of the evidence is expected to be false."
        f"{_neutral(record)}"
    )


def _neutral(record: Row) -> str:
    """Say which posterior difference says nothing, unless it is about zero."""
    value = record["neutral difference"]
    if abs(value) < _UNBALANCED:
        return ""
    name = record["classes"][1]
    return (
        f" {record['share']:.0%} of all tokens stand in texts of {name}, so that a posterior "
        f"difference of {signed(value)} says nothing."
    )


def deciding_sentence(record: Row) -> str:
    """Name the tokens that decide, and those that attention looks at first."""
    negative, positive = record["classes"]
    clear = {key: _clear(record[key]) for key in ("positive", "negative")}
    parts = [
        f"{_names(rows)} {'speaks' if len(rows) == 1 else 'speak'} most clearly for {name}"
        for rows, name in ((clear["positive"], positive), (clear["negative"], negative))
        if rows
    ]
    if record.get("attended"):
        parts.append(f"trained attention weighs {_names(record['attended'])} most")
    return f"{'; '.join(parts)}." if parts else "No token is evidence for one of the classes."


def _clear(rows: list[Row]) -> list[Row]:
    """Keep the tokens that speak at least half as clearly as the first."""
    return [row for row in rows if abs(row["difference"]) >= 0.5 * abs(rows[0]["difference"])]


def _names(rows: list[Row]) -> str:
    return listing([f"“{row['word']}”" for row in rows[:_MOST_NAMED]])


HEAD = ("token", "texts", "seen", "posterior difference", f"α per {PER:,} tokens", "chance")
_TRAINED = ("⟨E, v⟩", "⟨E, p⟩")


def token_cells(rows: list[Row]) -> tuple[list[str], list[list[str]]]:
    """Return the header and the cells of a table of tokens; intervals are in brackets."""
    trained = bool(rows) and "with p" in rows[0]
    cells = []
    for row in rows:
        own = [row["word"], f"{row['texts']:,}", f"{row['count']:,}",
               " ".join(between(row["difference"], row["difference interval"], "+.3f")),
               " ".join(between(PER * row["alpha"], per_tokens(row), "+.2f")),
               chance_words(row["adjusted p"])]  # fmt: skip
        cells.append(own + ([signed(row["with v"]), signed(row["with p"])] if trained else []))
    return [*HEAD, *(_TRAINED if trained else ())], cells


def per_tokens(row: Row) -> list[float]:
    """Return the interval of the signed frequency, per 10,000 tokens."""
    return [PER * end for end in row["alpha interval"]]


def between(value: float, interval: Sequence[float], digits: str) -> tuple[str, str]:
    """Write a number, and its interval in brackets."""
    low, high = (format(end, digits).replace("-", "−") for end in interval)
    return format(value, digits).replace("-", "−"), f"({low} to {high})"


def chance_words(p: float) -> str:
    """Write the least level at which a token is evidence.

    >>> chance_words(0.25), chance_words(3e-7), chance_words(0.0)
    ('0.250', '3e-07', '< 1e-99')
    """
    if p < 1e-99:
        return "< 1e-99"
    return f"{p:.3f}" if p >= 0.001 else f"{p:.0e}"


def agreement_sentence(own: Row) -> str:
    """Say how far the trained model agrees with the statistics."""
    if own["sign agreement"] is None:
        return (
            f"no token that was seen at least {own['seen at least']} times has a posterior "
            f"difference above {own['difference above']:g}, so that there is nothing to compare "
            "the model with; --frequent takes rarer ones"
        )
    return (
        f"the trained model has the sign of the posterior difference for "
        f"{own['sign agreement']:.1%} of {own['tokens']:,} tokens seen at least "
        f"{own['seen at least']} times with a difference above {own['difference above']:g}; "
        f"loss {own['loss']:.2g}, accuracy in training {own['accuracy']:.1%}"
    )


def ranks_sentence(own: Row) -> str:
    """Say how the attention and the gradient of the model agree with the counts."""
    if "attention" not in own:
        return ""
    attention, gradient = (_rank_words(own[name]) for name in _COMPARED)
    return (
        f"rank correlation of |posterior difference| and attention {attention}, of the posterior "
        f"difference and the gradient {gradient}: {counted(own['attention']['tokens'], 'token')}, "
        f"intervals from {own['attention']['samples']} samples of the texts"
    )


def _rank_words(own: Row) -> str:
    return " ".join(between(own["rank correlation"], own["interval"], ".3f"))
