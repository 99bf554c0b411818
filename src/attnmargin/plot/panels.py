"""The words of plot data: pictures are panels, panels are series, series are plain arrays."""

from typing import Any, NotRequired, TypedDict

from numpy.typing import NDArray

# Okabe and Ito's palette, which colour-blind readers can tell apart, on white and on black.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
# Text, axes and rings; in a page this colour becomes the colour of the text around the picture.
INK = "#010203"
GREY = "0.55"


class Series(TypedDict):
    """One thing in a panel; ``kind`` says what its numbers mean.

    "line", "bar" and "points" have one x and y per place. An "arrow" leads from the first place to
    the last, an "endless" line runs through both, and a "box" with a word in it has them as
    corners. A "level" is a horizontal line at y. A "text" stands at its place. "names" are labels
    beside their places, so placed that they do not cover each other.
    """

    kind: str
    name: str  # in the legend, or the word of a text or box; "" for none
    x: NDArray[Any]
    y: NDArray[Any]
    low: NotRequired[NDArray[Any]]  # ends of the interval around y
    high: NotRequired[NDArray[Any]]
    colour: NotRequired[int | str]  # a place in COLOURS, or INK, or GREY
    style: NotRequired[int]  # solid, dashed, dotted, dash-dotted
    marker: NotRequired[str]  # "o", "*", ".", or "ring"
    size: NotRequired[float]  # of a marker, or of letters
    width: NotRequired[float]  # of a line or arrow
    labels: NotRequired[list[str]]  # one per place


class Panel(TypedDict):
    """One pair of axes."""

    title: str
    axes: tuple[str, str]
    series: list[Series]
    logarithmic: NotRequired[tuple[bool, bool]]
    ticks: NotRequired[list[str]]  # names of the places 0, 1, 2, … along the first axis
    square: NotRequired[bool]  # one unit is as long along both axes
    bare: NotRequired[bool]  # without axes
    grid: NotRequired[bool]  # drawn unless false
    overlaid: NotRequired[bool]  # bars of all series stand at the same places
    limits: NotRequired[tuple[float, float]]  # of the second axis
    across: NotRequired[tuple[float, float]]  # limits of the first axis


class Picture(TypedDict):
    """Panels with a caption."""

    name: str  # of its file
    caption: str
    panels: list[Panel]
    columns: NotRequired[int]
    size: NotRequired[tuple[float, float]]  # of a panel, in inches


def series_at(kind: str, places: NDArray[Any], name: str = "", **look: Any) -> Series:
    """Build a series from places ``(N, 2)``."""
    own: Any = {"kind": kind, "name": name, "x": places[:, 0], "y": places[:, 1], **look}
    series: Series = own
    return series
