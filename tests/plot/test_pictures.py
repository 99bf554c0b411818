"""Pictures as text."""

import numpy as np

from attnmargin.plot.pictures import svg


def test_pictures_are_deterministic_text() -> None:
    from attnmargin.plot.pictures import Curves, draw_curves

    line = {"name": "a", "x": np.arange(3.0), "y": np.arange(1.0, 4.0)}
    data = Curves(title="t", axes=("x", "y"), logarithmic=(False, True), curves=[line])  # type: ignore[list-item]
    first, second = (svg(draw_curves(data), "a < b") for _ in range(2))
    assert first == second
    assert 'aria-label="a &lt; b"' in first
