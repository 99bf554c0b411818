"""Decisive tokens as a record, table cells and a sentence."""

from typing import Any

from attnmargin.prediction.words import listing
from attnmargin.text.tokens.importance import TokenImportance

# Tokens of each kind in the sentence.
_MOST_NAMED = 3


def importance_record(
    found: TokenImportance, most: int, frequent: int | None = None
) -> dict[str, Any]:
    """Describe a corpus and its most decisive tokens, ready for JSON."""
    names = ("positive", "negative") + (("attended",) if found.run else ())
    kinds = found.statistics.kind
    return {
        "texts": len(found.pieces) + found.empty,
        "without tokens": found.empty,
        "classes": list(found.classes),
        "steps": [step._asdict() for step in found.steps],
        "kinds": {str(kind): int((kinds == kind).sum()) for kind in sorted(set(kinds.tolist()))},
        "share": found.statistics.share,
        "agreement": found.agreement(frequent) if found.run else None,
        **{name: [found.row(int(s)) for s in found.ranked(name, most)] for name in names},
    }


def deciding_sentence(record: dict[str, Any]) -> str:
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
    return f"{'; '.join(parts)}." if parts else "No token is more frequent in one of the classes."


def _clear(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Keep the tokens that speak at least half as clearly as the first."""
    return [row for row in rows if abs(row["difference"]) >= 0.5 * abs(rows[0]["difference"])]


def _names(rows: list[dict[str, Any]]) -> str:
    return listing([f"“{row['token']}”" for row in rows[:_MOST_NAMED]])


def token_cells(rows: list[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Return the header and the cells of a table of tokens."""
    trained = bool(rows) and "with p" in rows[0]
    head = ["token", "seen", "posterior difference", "signed frequency α"]
    head += ["⟨E, v⟩", "⟨E, p⟩"] if trained else []
    cells = []
    for row in rows:
        own = [row["token"], f"{row['count']:,}", f"{row['difference']:+.3f}",
               f"{row['alpha']:+.2e}"]  # fmt: skip
        cells.append(own + ([f"{row['with v']:+.2f}", f"{row['with p']:+.2f}"] if trained else []))
    return head, cells


def agreement_sentence(own: dict[str, Any]) -> str:
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
