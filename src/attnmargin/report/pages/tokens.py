"""The page of a corpus: decisive tokens, agreement with training, and coloured texts."""

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from attnmargin.plot.cloud import cloud_svg
from attnmargin.plot.importance import cloud_panels
from attnmargin.plot.svg import Markup
from attnmargin.report.numbers import signed
from attnmargin.report.pages.coloured import coloured_text
from attnmargin.report.pages.html import (
    page,
    paragraph,
    section,
    table,
    tabs,
    terms,
    write_page,
)
from attnmargin.report.tokens import (
    HEAD,
    PER,
    agreement_sentence,
    between,
    chance_words,
    deciding_sentence,
    evidence_sentence,
    per_tokens,
    ranks_sentence,
)
from attnmargin.text.tokens.importance import TokenImportance

# Texts shown per class, and tokens per text, at most and where possible at least.
_TEXTS, _TOKENS, _LEAST = 3, 150, 10
# Tokens of each class with their names in the pictures.
_NAMED = 5


def write_tokens(
    path: Path, name: str, found: Sequence[TokenImportance], records: Sequence[dict[str, Any]]
) -> Path:
    """Write tables, pictures and coloured texts to one page, in a tab per class and the rest."""
    parts = {
        record["classes"][1]: _comparison(own, record)
        for own, record in zip(found, records, strict=True)
    }
    body = next(iter(parts.values())) if len(parts) == 1 else tabs("Class", parts)
    body += _steps(records[0]) + terms(*_summary(records[0]))
    return write_page(path, page(f"Which tokens decide: {name}", body))


def _comparison(found: TokenImportance, record: dict[str, Any]) -> str:
    """Build what there is to say about one class and the rest."""
    negative, positive = found.classes
    body = [
        f'<div class="verdict">{paragraph(deciding_sentence(record))}'
        f"{paragraph(evidence_sentence(record))}</div>",
        _pictures(found, record),
        _examples(found),
        _tokens(f"Tokens that speak for {positive}", record["positive"]),
        _tokens(f"Tokens that speak for {negative}", record["negative"]),
    ]
    if found.run is not None:
        body.append(_tokens("Tokens that attention weighs most", record["attended"]))
        body += [_disagreements(record["agreement"], name) for name in _DISAGREE]
    return "".join(body)


def _summary(record: dict[str, Any]) -> tuple[str, ...]:
    kinds, level = record["kinds"], record["level"]
    one = kinds.get("completely positive", 0) + kinds.get("completely negative", 0)
    return (
        f"{record['texts']:,} texts; {sum(kinds.values()):,} different tokens are left after "
        f"cleaning, {one:,} of them occur with one class only. The posterior difference of a token "
        "is the share of its occurrences in texts of one class minus that in texts of the other: "
        "+1 and −1 are tokens that occur with one class only. Paper D shows that one step of "
        "gradient descent moves the embedding of a token along the head v by its signed frequency "
        "α, and that ⟨cls⟩ then selects the tokens that decide.",
        "A token is evidence if more of the texts that have it are of one class than chance "
        "explains, given how long the texts of either class are. Chance is the least share of "
        f"false discoveries at which it counts as evidence, here at most {level:g}. Numbers in "
        f"brackets are {1.0 - level:.0%} intervals, which know that words of one text are not "
        "independent.",
    )


_NOTHING = "No token is evidence for this class."


def _tokens(title: str, rows: list[dict[str, Any]]) -> str:
    """Build a table of tokens: other words of a token are shown when the pointer rests on it."""
    if not rows:
        return section(title, paragraph(_NOTHING))
    head = [*HEAD[:2], *HEAD[3:], *(["⟨E, v⟩", "⟨E, p⟩"] if "with p" in rows[0] else [])]
    return section(title, table(head, [_cells(row) for row in rows], dense=True))


def _cells(row: dict[str, Any]) -> list[str]:
    words = ", ".join(row["forms"])
    cells = [
        Markup(f'<th scope="row" title="{escape(words)}">{escape(row["word"])}</th>'),
        _with_note(f"{row['texts']:,}", f"seen {row['count']:,} times"),
        _with_note(*between(row["difference"], row["difference interval"], "+.3f")),
        _with_note(*between(PER * row["alpha"], per_tokens(row), "+.2f")),
        chance_words(row["adjusted p"]),
    ]
    return cells + [signed(row[key]) for key in ("with v", "with p") if key in row]


def _with_note(number: str, note: str) -> Markup:
    return Markup(f"<td>{escape(number)} <small>{escape(note)}</small></td>")


def _pictures(found: TokenImportance, record: dict[str, Any]) -> str:
    """Draw the two pictures of the paper, with token names; of counts alone, how often they occur.

    Tokens that chance explains are grey.
    """
    clouds = "".join(cloud_svg(panel) for panel in cloud_panels(found, _NAMED))
    words = ["Every point is a token; rest on it for its name. Chance explains the grey ones."]
    if record["agreement"]:
        told = (agreement_sentence(record["agreement"]), ranks_sentence(record["agreement"]))
        words += [f"{own[0].upper()}{own[1:]}." for own in told if own]
    title = "Evidence and noise" if found.run is None else "Statistics and training"
    legend = paragraph(" ".join(words), "legend")
    return section(title, f'<div class="pictures">{clouds}</div>', legend)


_DISAGREE = {
    "attention": (
        "Where attention disagrees with the counts",
        "Attention to an occurrence of a token, where 1 is its share of the text. It ranks these "
        "tokens higher (+) or lower (−) among all frequent ones than their |posterior difference| "
        "predicts, by this share of them.",
    ),
    "gradient": (
        "Where the gradient disagrees with the counts",
        "How much an occurrence of a token changes the output of the model: the gradient times its "
        "embedding. It ranks these tokens higher (+) or lower (−) among all frequent ones than "
        "their posterior difference predicts, by this share of them.",
    ),
}


def _disagreements(agreement: dict[str, Any], name: str) -> str:
    """List the tokens on which the model and the counts disagree, the largest gap first."""
    if name not in agreement:
        return ""
    title, words = _DISAGREE[name]
    rows = [
        [row["word"], f"{row['ranks higher by']:+.0%}", signed(row["difference"]),
         f"{row[name]:.3g}"]
        for row in agreement[name]["disagreements"]
    ]  # fmt: skip
    head = ["token", "ranks higher by", "posterior difference", name]
    return section(title, table(head, rows), paragraph(words, "legend"))


def _examples(found: TokenImportance) -> str:
    """Show the texts of each class whose tokens decide most clearly."""
    own, pieces = found.statistics, found.pieces
    weight = np.where(found.evidence.found, np.nan_to_num(own.difference), 0.0)
    sums = np.add.reduceat(weight[pieces.ids], pieces.start[:-1])
    lengths = pieces.lengths
    least, parts = min(_LEAST, np.median(lengths)), []
    for label, name in enumerate(found.classes):
        inside = (pieces.labels == label) & (lengths >= least) & (lengths <= _TOKENS)
        mean = np.where(inside, sums / lengths, -np.inf if label else np.inf)
        order = np.argsort(-mean if label else mean, kind="stable")[: min(_TEXTS, inside.sum())]
        shown = [
            coloured_text(
                [found.forms.shown[s] for s in pieces.row(i)], weight[pieces.row(i)].tolist(),
                most=1.0,
            )
            for i in order
        ]  # fmt: skip
        if shown:
            parts.append(f"<h3>Class {escape(name)}</h3>{''.join(shown)}")
    if not parts:
        return ""
    words = (
        "Texts whose tokens speak most clearly, as they are after cleaning; orange tokens speak "
        f"for {found.classes[1]}, blue ones for {found.classes[0]}, and chance explains the others."
    )
    return section("Examples from the corpus", *parts, paragraph(words, "legend"))


def _steps(record: dict[str, Any]) -> str:
    rows = [[s["step"], f"{s['tokens']:,}", f"{s['vocabulary']:,}"] for s in record["steps"]]
    return section("How the texts were cleaned", table(["step", "tokens", "different"], rows))
