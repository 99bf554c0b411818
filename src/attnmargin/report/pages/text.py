"""The page of a trained text classifier: what it attends to, accuracies, and weights."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from attnmargin.plot.drawing import draw_panel
from attnmargin.plot.panels import Panel, Series
from attnmargin.plot.svg import embedded
from attnmargin.report.pages.attention import MarkedText, attention_body
from attnmargin.report.pages.html import figure, page, paragraph, section, table, write_page
from attnmargin.text.classifier.analysis import LARGE, attention_shares, sparsity
from attnmargin.text.classifier.training import TextRun
from attnmargin.text.pieces import Pieces

# Texts shown, and tokens per text.
_TEXTS, _TOKENS = 8, 120


def write_text_page(
    path: Path, run: TextRun, test: Pieces, classes: Sequence[str], words: str
) -> Path:
    """Write the results of ``attnmargin train-text``; ``words`` is a one-sentence summary."""
    body = [
        paragraph(words, "verdict"),
        _attention(run, test, classes),
        _accuracies(run),
        _weights(run),
    ]
    return write_page(path, page("A text classifier by mirror descent", "".join(body)))


def _accuracies(run: TextRun) -> str:
    x = np.array([row["epoch"] for row in run.history])
    names = {"train": "in training", "test": "test"}
    curves = [
        Series(kind="line", name=name, x=x, y=np.array([100 * row[key] for row in run.history]),
               style=k)
        for k, (key, name) in enumerate(names.items())
    ]  # fmt: skip
    panel = Panel(title="", axes=("epoch", "texts classified correctly, %"), series=curves)
    words = "Accuracy of every epoch; in training it is measured along the way."
    return section("Accuracy", figure(embedded(draw_panel(panel), words), words))


def _weights(run: TextRun) -> str:
    rows = [
        [name, f"{own['all']:,}", f"{own['large']:,}", f"{own['largest']:.3f}"]
        for name, own in sparsity(run.model, np.linspace(0.0, 1.0, 2)).items()
    ]
    head = ["weights", "entries", f"of size ≥ {LARGE}", "largest"]
    words = (
        "Other things equal, mirror descent with a p nearer to 1 makes fewer entries large (paper "
        "B, Figure 8): compare a run with another --p."
    )
    return section("Sparsity of attention weights", table(head, rows), paragraph(words))


def _attention(run: TextRun, test: Pieces, classes: Sequence[str]) -> str:
    """Show the shortest test texts of each class, shaded by attention."""
    order = np.argsort(test.lengths, kind="stable")
    groups: dict[str, list[MarkedText]] = {}
    for label, name in enumerate(classes):
        places = order[test.labels[order] == label][: _TEXTS // 2]
        if len(places):
            shares = attention_shares(run.model, test.part(places))
            groups[f"Attention in texts of class {name}"] = [
                _shown(test.words(int(i))[1:-1], own) for i, own in zip(places, shares, strict=True)
            ]
    words = (
        "The attention that the first position pays to every token, mean of layers and heads, in "
        "the shortest texts of the test; the strongest has the most colour. Rest on a word for its "
        "share."
    )
    return attention_body(groups) + paragraph(words, "legend")


def _shown(words: list[str], shares: Any) -> MarkedText:
    return MarkedText(words[:_TOKENS], shares[:_TOKENS])
