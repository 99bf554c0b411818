"""Studies of heads, and their course along training → plot data."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnmargin.base.errors import InputError
from attnmargin.models.study import HeadStudy
from attnmargin.models.watch import Watch
from attnmargin.plot.panels import GREY, Panel, Picture, Series

_SHARES = (("efficiency", "share of the best margin (efficiency)"),
           ("cosine", "agreement in direction (cosine)"))  # fmt: skip
# Heads that get a curve of their own.
_CURVES = 12


def heads_picture(studies: Sequence[HeadStudy]) -> Picture:
    """Show margins and directions of heads beside those of random ones, a point per head."""
    known = [own for own in studies if not own.reason]
    if not known:
        raise InputError("studies", "no head with an attention SVM", "at least one")
    panels = []
    for name, words in _SHARES:
        pairs = np.array([[getattr(own, name).null, getattr(own, name).value] for own in known])
        top = 1.05 * float(pairs.max())
        series = [_line("", np.array([0.0, top]), np.array([0.0, top]), GREY, 1)]
        layers = np.array([own.layer for own in known])
        for k, layer in enumerate(sorted(set(layers.tolist()))):
            own = pairs[layers == layer]
            series.append(Series(kind="points", name=f"layer {layer}", x=own[:, 0], y=own[:, 1],
                                 colour=k, marker="o"))  # fmt: skip
        panels.append(Panel(title=words, axes=("random heads", "trained head"), series=series,
                            limits=(min(0.0, float(pairs.min())), top)))  # fmt: skip
    caption = (
        "A point is a head. Above the dashed line it is nearer to the max-margin solution of what "
        "it selects than random heads with the same singular values on the same texts."
    )
    return Picture(name="heads", caption=caption, panels=panels, columns=2, size=(4.6, 4.0))


def watch_picture(watch: Watch) -> Picture:
    """Show how margins, directions and selections of heads move along training."""
    if not watch.records:
        raise InputError("watch", "one without records", "a watch that was called in training")
    steps = np.array(watch.steps)
    panels = [
        _along(steps, words, watch.of(name), watch.of(name, null=True)) for name, words in _SHARES
    ]
    decided = watch.of("saturation"), watch.of("saturation", null=True)
    panels.append(_along(steps, "queries that one token takes by 90 %", *decided))
    panels.append(_along(steps, "length of the weights (‖W‖)", watch.of("length"), None))
    caption = (
        "Thin curves are heads, the thick one is their median; dashed: the median of random heads "
        "with the same singular values. A head turns to its max-margin solution where its curves "
        "above leave the dashed ones."
    )
    return Picture(name="watch", caption=caption, panels=panels, columns=2, size=(4.6, 3.2))


def _along(
    steps: NDArray[Any], words: str, values: NDArray[Any], null: NDArray[Any] | None
) -> Panel:
    series = [
        _line("", steps, values[:, k], k, 0) | {"width": 0.6}
        for k in range(min(values.shape[1], _CURVES))
    ]
    series.append(_line("heads", steps, _median(values), 0, 0) | {"width": 2.4})
    if null is not None:
        series.append(_line("random heads", steps, _median(null), GREY, 1) | {"width": 1.6})
    return Panel(title=words, axes=("training step", words), series=series)


def _median(values: NDArray[Any]) -> NDArray[Any]:
    """Compute the median over heads; NaN where no head has a number."""
    rows = [
        np.median(row[np.isfinite(row)]) if np.isfinite(row).any() else np.nan for row in values
    ]
    return np.array(rows)


def _line(name: str, x: NDArray[Any], y: NDArray[Any], colour: int | str, style: int) -> Any:
    return Series(kind="line", name=name, x=x, y=y, colour=colour, style=style)
