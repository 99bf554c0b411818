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
        level = panel["tokens"] @ panel["direction"]
        below = level[panel["selected"]] - level[panel["support"]]
        np.testing.assert_allclose(below, 1.0, atol=1e-9)
