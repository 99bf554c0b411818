"""Panels of a prediction."""

import numpy as np

import attnmargin as am
from attnmargin.plot.prediction import token_panel
from attnmargin.prediction.words import name_tokens


def test_panels_show_the_margin_where_it_is() -> None:
    """In the projection, support tokens lie exactly one margin below the selected token."""
    data = am.random_data(3, 4, 6, name="panel")
    prediction = am.predict(data)
    for i in range(3):
        panel = token_panel(prediction, name_tokens(data), i, None)
        lines = [series for series in panel["series"] if series["kind"] == "endless"]
        for line, marker in zip(lines, ("*", "ring"), strict=True):
            points = next(s for s in panel["series"] if s.get("marker") == marker)
            assert len(points["x"]) > 0
            way = np.array([np.diff(line["x"])[0], np.diff(line["y"])[0]])
            off = way[0] * (points["y"] - line["y"][0]) - way[1] * (points["x"] - line["x"][0])
            np.testing.assert_allclose(off, 0.0, atol=1e-9)
