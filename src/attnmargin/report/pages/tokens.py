"""The page of a corpus: decisive tokens, agreement with training, and coloured texts."""

from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from attnmargin.plot.cloud import cloud_svg
from attnmargin.plot.importance import cloud_panels
from attnmargin.report.pages.coloured import coloured_text
from attnmargin.report.pages.html import page, paragraph, section, table, terms, write_page
from attnmargin.report.tokens import agreement_sentence, deciding_sentence, token_cells
from attnmargin.text.tokens.importance import TokenImportance

# Texts shown per class, and tokens per text, at most and where possible at least.
_TEXTS, _TOKENS, _LEAST = 3, 150, 10
# Tokens of each class with their names in the pictures.
_NAMED = 5


def write_tokens(path: Path, found: TokenImportance, record: dict[str, Any]) -> Path:
    """Write tables, pictures and coloured texts to one page."""
    negative, positive = found.classes
    first = [] if found.run is None else [_pictures(found, record)]
    body = [
        paragraph(deciding_sentence(record), "verdict"),
        *first,
        _examples(found),
        _tokens(f"Tokens that speak for {positive}", record["positive"]),
        _tokens(f"Tokens that speak for {negative}", record["negative"]),
    ]
    if found.run is not None:
        body.append(_tokens("Tokens that attention weighs most", record["attended"]))
    body += [_steps(record), terms(_summary(record))]
    return write_page(
        path, page(f"Which tokens decide: {Path(record['file']).name}", "".join(body))
    )


def _summary(record: dict[str, Any]) -> str:
    kinds = record["kinds"]
    one = kinds.get("completely positive", 0) + kinds.get("completely negative", 0)
    return (
        f"{record['texts']:,} texts; {sum(kinds.values()):,} different tokens are left after "
        f"cleaning, {one:,} of them occur with one class only. The posterior difference of a token "
        "is the share of its occurrences in texts of one class minus that in texts of the other: "
        "+1 and −1 are tokens that occur with one class only. Paper D shows that one step of "
        "gradient descent moves the embedding of a token along the head v by its signed frequency "
        "α, and that ⟨cls⟩ then selects the tokens that decide."
    )


def _tokens(title: str, rows: list[dict[str, Any]]) -> str:
    return section(title, table(*token_cells(rows)))


def _pictures(found: TokenImportance, record: dict[str, Any]) -> str:
    """Draw the two pictures of the paper, with token names."""
    clouds = [cloud_svg(panel) for panel in cloud_panels(found, _NAMED)]
    words = agreement_sentence(record["agreement"])
    words = f"Every point is a token; rest on it for its name. {words[0].upper()}{words[1:]}."
    return section(
        "Statistics and training",
        f'<div class="pictures">{"".join(clouds)}</div>',
        paragraph(words, "legend"),
    )


def _examples(found: TokenImportance) -> str:
    """Show the texts of each class whose tokens decide most clearly."""
    own, pieces = found.statistics, found.pieces
    weight = np.nan_to_num(own.difference)
    sums = np.add.reduceat(weight[pieces.ids], pieces.start[:-1])
    lengths = pieces.lengths
    least, parts = min(_LEAST, np.median(lengths)), []
    for label, name in enumerate(found.classes):
        inside = (pieces.labels == label) & (lengths >= least) & (lengths <= _TOKENS)
        mean = np.where(inside, sums / lengths, -np.inf if label else np.inf)
        order = np.argsort(-mean if label else mean, kind="stable")[: min(_TEXTS, inside.sum())]
        shown = [
            coloured_text(pieces.words(i), weight[pieces.row(i)].tolist(), most=1.0) for i in order
        ]
        if shown:
            parts.append(f"<h3>Class {escape(name)}</h3>{''.join(shown)}")
    if not parts:
        return ""
    words = (
        "Texts whose tokens speak most clearly, as they are after cleaning; orange tokens speak "
        f"for {found.classes[1]}, blue ones for {found.classes[0]}."
    )
    return section("Examples from the corpus", *parts, paragraph(words, "legend"))


def _steps(record: dict[str, Any]) -> str:
    rows = [[s["step"], f"{s['tokens']:,}", f"{s['vocabulary']:,}"] for s in record["steps"]]
    return section("How the texts were cleaned", table(["step", "tokens", "different"], rows))
