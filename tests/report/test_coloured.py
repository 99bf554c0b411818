"""Coloured texts."""

import numpy as np

from attnmargin.report.pages.coloured import coloured_text


def test_colours_follow_the_weights() -> None:
    text = coloured_text(["so", "bor", "##ing"], [0.5, -1.0, 0.0], marked="so")
    assert '<i class="wins" style="--a:0.50" title="0.5">so</i>' in text
    assert '<i class="minus" style="--a:1.00" title="-1">bor</i><i style="--a:0.00"' in text
    assert "<b>" not in coloured_text(["<b>"], [1.0])
    assert np.char.count(coloured_text([], []), "<i") == 0
