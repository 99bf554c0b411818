"""Margins in many norms → plot data."""

import numpy as np

from attnmargin.plot.bands import array
from attnmargin.plot.panels import Panel, Picture, Series
from attnmargin.solvers.comparison import Margins

_NAMES = {"fro": "Frobenius", "nuc": "nuclear"}
_CAPTION = (
    "Each row is the solution in one norm, each column a norm to measure in. A cell is the margin "
    "reached, as a share of the largest one possible: 1 on the diagonal."
)
_GIVEN = " The last row is the given W."
_CELL = 0.62  # of a column and a row, in inches


def norm_words(name: str) -> str:
    """Write a norm's name as a label: Frobenius, spectral, ℓ1.75.

    >>> norm_words("fro"), norm_words("max"), norm_words("1.75")
    ('Frobenius', 'max', 'ℓ1.75')
    """
    try:
        return f"ℓ{float(name):g}"
    except ValueError:
        return _NAMES.get(name, name)


def margins_picture(margins: Margins) -> Picture:
    """Show the ratios of one problem as a heat map, the last of the given W below."""
    names = [norm_words(norm.name) for norm in margins.norms]
    table, rows = array(margins.ratios), list(names)
    if margins.given is not None:
        last = array(margins.given).reshape(-1, len(names))[-1:]
        table, rows = np.concatenate((table, last)), [*rows, "given W"]
    y, x = np.indices(table.shape)
    cells = Series(kind="cells", name="", x=x.ravel(), y=y.ravel(), values=table.ravel())
    panel = Panel(
        title="share of the largest margin",
        axes=("measured in the norm", "solution in the norm"),
        series=[cells],
        ticks=names,
        ticks_up=rows,
        grid=False,
    )
    caption = _CAPTION + (_GIVEN if margins.given is not None else "")
    size = (_CELL * len(names) + 2.2, 0.6 * _CELL * len(rows) + 1.8)
    return Picture(name="norms", caption=caption, panels=[panel], size=size)
