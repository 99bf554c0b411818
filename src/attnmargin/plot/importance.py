"""Tokens of a corpus → plot data: clouds with one point per token."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnmargin.plot.labels import shortened
from attnmargin.plot.panels import GREY, Panel, Series
from attnmargin.text.tokens.importance import TokenImportance

# Maximum number of points in a picture.
_MOST = 3000
_PRODUCTS = (
    ("how much attention tokens get", "attention that a token gets (⟨E, p⟩)"),
    ("which class tokens speak for", "class that a token speaks for (⟨E, v⟩)"),
)


def cloud_panels(found: TokenImportance, named: int = 0) -> list[Panel]:
    """Show ⟨E, p⟩ and ⟨E, v⟩ against the posterior difference; without a model, the frequency.

    Args:
        named: number of tokens per class with their name in the picture.
    """
    places = np.argsort(-found.statistics.count, kind="stable")[:_MOST]
    places = places[found.statistics.count[places] > 0]
    if found.run is None:
        title, up = "how often the tokens of either class occur", "occurrences"
        panel = _cloud(found, found.statistics.count, places, named, (title, up))
        panel["logarithmic"] = (False, True)
        return [panel]
    return [
        _cloud(found, heights, places, named, words)
        for heights, words in zip(found.run.products, _PRODUCTS, strict=True)
    ]


def _cloud(
    found: TokenImportance,
    y: NDArray[Any],
    places: NDArray[Any],
    named: int,
    words: tuple[str, str],
) -> Panel:
    x, names = found.statistics.difference, found.forms.shown
    negative, positive = found.classes
    side = np.where(found.evidence.found, found.evidence.side, 0)[places]
    groups: tuple[tuple[str, int | str, Any], ...] = (
        ("explained by chance", GREY, side == 0),
        (f"evidence for {positive}", 1, side > 0),
        (f"evidence for {negative}", 0, side < 0),
    )
    series = [
        Series(kind="points", name=name, x=x[own], y=y[own], colour=colour, marker=".",
               labels=[names[s] for s in own])
        for name, colour, inside in groups
        if len(own := places[inside])
    ]  # fmt: skip
    if named:
        best = np.concatenate(
            [found.ranked(kind, named, evidence=True) for kind in ("positive", "negative")]
        )
        series.append(Series(kind="names", name="", x=x[best], y=y[best], size=8,
                             labels=[names[s] for s in best]))  # fmt: skip
    ends = (shortened(name, 12) for name in (negative, positive))
    across = "posterior difference (−1: only {}, +1: only {})".format(*ends)
    return Panel(title=words[0], axes=(across, words[1]), series=series, across=(-1.12, 1.12))
