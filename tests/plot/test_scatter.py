"""Clouds of points."""

import numpy as np

from attnmargin.plot.scatter import Cloud, scatter


def test_a_cloud_names_its_points() -> None:
    cloud = Cloud(np.array([-1.0, 0.0]), np.array([2.0, 2.0]), ["<a>", "b"], ("x", "y"))
    text = scatter(cloud)
    assert text.count("<circle") == 2
    assert "<title>&lt;a&gt;: -1.00, +2.00</title>" in text
