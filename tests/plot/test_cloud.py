"""A cloud of named points."""

import re

import numpy as np

from attnmargin.plot.cloud import cloud_svg
from attnmargin.plot.panels import Panel, Series


def test_a_cloud_names_its_points() -> None:
    points = Series(kind="points", name="", x=np.array([-1.0, 0.0]), y=np.array([2.0, 2.0]),
                    labels=["<a>", "b"])  # fmt: skip
    text = cloud_svg(Panel(title="", axes=("x", "y"), series=[points]))
    assert text.count("<circle") == 2
    assert "<title>&lt;a&gt;: -1.00, +2.00</title>" in text


def test_names_stand_beside_their_points_and_apart() -> None:
    def series(kind: str, words: list[str]) -> Series:
        x = np.linspace(0.5, 1.0, len(words)) ** 8  # the first ones are close to each other
        return Series(kind=kind, name="", x=x, y=np.ones(len(words)), labels=words)

    words = ["first", "second", "third", "fourth"]
    panel = Panel(
        title="", axes=("x", "y"), series=[series("points", words), series("names", words)]
    )
    text = cloud_svg(panel)
    assert text.count("<circle") == 4
    found = re.findall(r'<text x="([\d.]+)" y="([\d.]+)" font-size="11">(\w+)', text)
    assert [word for _, _, word in found] == words
    for k, (x, y, word) in enumerate(found):
        for left, up, other in found[:k]:
            aside = 5.5 * len(other if float(left) < float(x) else word)
            assert abs(float(y) - float(up)) >= 11 or abs(float(x) - float(left)) >= aside
