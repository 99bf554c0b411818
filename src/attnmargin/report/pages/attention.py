"""A page of texts shaded by attention."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from numpy.typing import NDArray

from attnmargin.report.pages.coloured import coloured_text
from attnmargin.report.pages.html import page, paragraph, section, write_page


class MarkedText(NamedTuple):
    """The words of a text, the attention share of each, and the decisive word, if known."""

    words: Sequence[str]
    shares: NDArray[Any]
    pivotal: str | None = None


def attention_body(groups: Mapping[str, Sequence[MarkedText]]) -> str:
    """Build one section per group of texts."""
    parts = []
    for title, texts in groups.items():
        shown = [coloured_text(t.words, t.shares.tolist(), t.pivotal) for t in texts]
        parts.append(section(title, *shown))
    return "".join(parts)


def write_attention(path: Path, groups: Mapping[str, Sequence[MarkedText]]) -> Path:
    """Write a standalone page with the texts of several models, one group after the other."""
    words = paragraph(
        "The attention that the first position pays to every token, mean of layers and heads; the "
        "strongest of each text has the most colour. Rest on a word for its share. The framed "
        "word decides the review."
    )
    return write_page(path, page("What the classifiers attend to", words + attention_body(groups)))
