"""Pictures as text in a page."""

import numpy as np

from attnmargin.plot.drawing import draw_panel
from attnmargin.plot.panels import Panel, Series
from attnmargin.plot.svg import embedded


def test_pictures_are_deterministic_text() -> None:
    line = Series(kind="line", name="a", x=np.arange(3.0), y=np.arange(1.0, 4.0))
    panel = Panel(title="t", axes=("x", "y"), logarithmic=(False, True), series=[line])
    first, second = (embedded(draw_panel(panel), "a < b") for _ in range(2))
    assert first == second
    assert 'aria-label="a &lt; b"' in first
