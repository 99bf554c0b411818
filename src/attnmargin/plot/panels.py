"""The data model of plots: pictures hold panels, panels hold series, series hold plain arrays."""

from typing import Any, NotRequired, TypedDict

from numpy.typing import NDArray

# Okabe and Ito's palette, distinguishable for colour-blind readers, on white and on black.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
# Text, axes and rings; a page replaces this colour by that of the surrounding text.
INK = "#010203"
GREY = "0.55"


class Series(TypedDict):
    """One element of a panel; ``kind`` determines what its numbers mean.

    "line", "bar" and "points" have one x and y per point. An "arrow" runs from the first point to
    the last, an "endless" line passes through both, and a "box" around a word has them as corners.
    "cells" are squares around points, coloured and labelled by their values from 0 to 1. A "level"
    is a horizontal line at y. A "text" stands at its point. "names" are labels beside
    their points, placed so that they do not overlap.
    """

    kind: str
    name: str  # legend entry, or the word of a text or box; "" for none
    x: NDArray[Any]
    y: NDArray[Any]
    low: NotRequired[NDArray[Any]]  # ends of the interval around y
    high: NotRequired[NDArray[Any]]
    colour: NotRequired[int | str]  # an index into COLOURS, or INK, or GREY
    style: NotRequired[int]  # solid, dashed, dotted, dash-dotted
    marker: NotRequired[str]  # "o", "*", ".", or "ring"
    size: NotRequired[float]  # of a marker, or the font size
    width: NotRequired[float]  # of a line or arrow
    labels: NotRequired[list[str]]  # one per point
    values: NotRequired[NDArray[Any]]  # one per cell


class Panel(TypedDict):
    """One pair of axes."""

    title: str
    axes: tuple[str, str]
    series: list[Series]
    logarithmic: NotRequired[tuple[bool, bool]]
    ticks: NotRequired[list[str]]  # names of the points 0, 1, 2, … along the first axis
    ticks_up: NotRequired[list[str]]  # names of 0, 1, 2, … along the second axis, downwards
    square: NotRequired[bool]  # equal units on both axes
    bare: NotRequired[bool]  # hides the axes
    grid: NotRequired[bool]  # drawn unless false
    overlaid: NotRequired[bool]  # bars of all series share the same positions
    limits: NotRequired[tuple[float, float]]  # of the second axis
    across: NotRequired[tuple[float, float]]  # limits of the first axis


class Picture(TypedDict):
    """Panels with a caption."""

    name: str  # of the file
    caption: str
    panels: list[Panel]
    columns: NotRequired[int]
    size: NotRequired[tuple[float, float]]  # of a panel, in inches


def series_at(kind: str, places: NDArray[Any], name: str = "", **look: Any) -> Series:
    """Build a series from points ``(N, 2)``."""
    own: Any = {"kind": kind, "name": name, "x": places[:, 0], "y": places[:, 1], **look}
    series: Series = own
    return series
