"""A cloud of named points."""

import numpy as np

from attnmargin.plot.cloud import cloud_svg
from attnmargin.plot.panels import Panel, Series


def test_a_cloud_names_its_points() -> None:
    points = Series(kind="points", name="", x=np.array([-1.0, 0.0]), y=np.array([2.0, 2.0]),
                    labels=["<a>", "b"])  # fmt: skip
    text = cloud_svg(Panel(title="", axes=("x", "y"), series=[points]))
    assert text.count("<circle") == 2
    assert "<title>&lt;a&gt;: -1.00, +2.00</title>" in text
