"""Panels of figures."""

import numpy as np

from attnmargin.plot.drawing import draw_picture
from attnmargin.plot.panels import Panel, Picture


def test_panels_of_every_kind_are_drawn() -> None:
    x = np.arange(3.0)
    series = [
        {"kind": kind, "name": kind, "x": x, "y": x + 1.0, "low": x, "high": x + 2.0}
        for kind in ("line", "bar", "points", "arrow", "text")
    ]
    series.append({"kind": "level", "name": "level", "x": x, "y": np.array(2.0)})
    panel = Panel(title="t", axes=("x", "y"), series=series, ticks=["a", "b", "c"],  # type: ignore[typeddict-item]
                  limits=(0.0, 5.0))  # fmt: skip
    figure = draw_picture(Picture(name="p", caption="c", panels=[panel, panel], columns=2))
    assert len(figure.axes) == 2
