"""Sentences whose words are shaded by a number and marked by what they do."""

from collections.abc import Sequence
from html import escape

from attnmargin.report.marks import Mark, mark_words

# Roles of a token, as the style sheet calls them.
KINDS = {"selected": "wins", "support": "guards", "": ""}


def marked_sentence(marks: Sequence[Mark]) -> str:
    """Write a sentence: selected tokens are framed, rivals dashed, attention is the shade."""
    return f'<p class="words">{" ".join(map(_marked, marks))}</p>'


def _marked(mark: Mark) -> str:
    kinds = " ".join(filter(None, (KINDS[mark["role"]], "asks" * mark["asks"])))
    kind = f' class="{kinds}"' if kinds else ""
    shade = f' style="--a:{mark["share"]:.2f}"' if mark["share"] is not None else ""
    tag = "b" if mark["role"] == "selected" else "i"
    told = ", ".join(filter(None, (mark["role"], "query" * mark["asks"])))
    aside = f'<span class="unseen"> ({told})</span>' if told else ""
    title = f' title="{escape(mark_words(mark))}"'
    return f"<{tag}{kind}{shade}{title}>{escape(mark['name'])}{aside}</{tag}>"


def coloured_text(
    words: Sequence[str], weights: Sequence[float], marked: str | None = None, most: float = 0.0
) -> str:
    """Shade each word by its weight; negative weights get another colour.

    Args:
        weights: one per word; shown when the pointer rests on the word.
        marked: a word that gets a frame.
        most: the weight with the strongest shade; by default the largest of the text.
    """
    scale = most or max((abs(w) for w in weights), default=0.0) or 1.0
    parts = []
    for word, weight in zip(words, weights, strict=True):
        shade = min(abs(weight) / scale, 1.0)
        kinds = ["minus"] * (weight < 0) + ["wins"] * (word == marked)
        kind = f' class="{" ".join(kinds)}"' if kinds else ""
        joined = word.startswith("##") and len(word) > 2
        shown = escape(word[2:] if joined else word)
        part = f'<i{kind} style="--a:{shade:.2f}" title="{weight:.3g}">{shown}</i>'
        parts.append(part if joined else f" {part}")
    return f'<p class="words">{"".join(parts).strip()}</p>'
