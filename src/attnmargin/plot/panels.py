"""Plot data of figures with several panels → picture: curves with bands, bars, points, arrows."""

import textwrap
from typing import IO, TYPE_CHECKING, Any, NotRequired, TypedDict

import numpy as np
from numpy.typing import NDArray

from attnmargin.base.errors import MissingPackageError
from attnmargin.plot.pictures import COLOURS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_STYLES = ("-", "--", ":", "-.")


class Series(TypedDict):
    """One curve, group of bars, cloud of points, arrow, or name at a place."""

    kind: str  # "line", "bar", "points", "arrow", "level", "text"
    name: str
    x: NDArray[Any]
    y: NDArray[Any]
    low: NotRequired[NDArray[Any]]  # ends of the interval around y
    high: NotRequired[NDArray[Any]]
    colour: NotRequired[int]
    style: NotRequired[int]
    marker: NotRequired[str]


class Panel(TypedDict):
    """One pair of axes."""

    title: str
    axes: tuple[str, str]
    series: list[Series]
    logarithmic: NotRequired[tuple[bool, bool]]
    ticks: NotRequired[list[str]]  # names of the places 0, 1, 2, … along the first axis
    square: NotRequired[bool]
    bare: NotRequired[bool]  # without axes
    limits: NotRequired[tuple[float, float]]  # of the second axis


class Picture(TypedDict):
    """A figure of a paper."""

    name: str  # of its file
    caption: str
    panels: list[Panel]
    columns: NotRequired[int]


def draw_picture(picture: Picture) -> "Figure":
    """All panels, with the caption below."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingPackageError("drawing", "attnmargin[plot]") from error
    count = len(picture["panels"])
    columns = min(picture.get("columns", 3), count)
    rows = -(-count // columns)
    caption = textwrap.fill(picture["caption"], 68 * columns)
    height = 3.6 * rows + 0.22 * (caption.count("\n") + 1)
    figure = Figure(figsize=(4.6 * columns, height), layout="constrained")
    for k, panel in enumerate(picture["panels"]):
        _draw_panel(figure.add_subplot(rows, columns, k + 1), panel)
    figure.supxlabel(caption, fontsize=9, x=0.01, ha="left")
    return figure


def save(figure: "Figure", kind: str, stream: IO[bytes]) -> None:
    """Write a figure as "png", "svg" or "pdf"; the same figure gives the same bytes."""
    from matplotlib import rc_context

    stamp = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    with rc_context({"svg.hashsalt": "attnmargin"}):
        figure.savefig(stream, format=kind, dpi=110, metadata=stamp)


def _draw_panel(axes: Any, panel: Panel) -> None:
    axes.set_title(panel["title"], fontsize=10)
    axes.set_xlabel(panel["axes"][0])
    axes.set_ylabel(panel["axes"][1])
    bars = [series for series in panel["series"] if series["kind"] == "bar"]
    for k, series in enumerate(panel["series"]):
        colour = COLOURS[series.get("colour", k) % len(COLOURS)]
        if series["kind"] == "bar":
            _bar(axes, series, colour, bars.index(series), len(bars))
        elif series["kind"] == "points":
            mark = series.get("marker", "o")
            axes.plot(series["x"], series["y"], mark, color=colour, ms=14 if mark == "*" else 4,
                      alpha=0.7, label=series["name"])  # fmt: skip
        elif series["kind"] == "level":
            axes.axhline(float(series["y"]), ls=":", c="0.4", lw=1, label=series["name"])
        elif series["kind"] == "text":
            axes.text(float(series["x"][0]), float(series["y"][0]), series["name"], ha="center",
                      va="center", zorder=3)  # fmt: skip
        elif series["kind"] == "arrow":
            _arrow(axes, series, colour)
        else:
            _line(axes, series, colour)
    _finish(axes, panel)


def _bar(axes: Any, series: Series, colour: str, k: int, count: int) -> None:
    width = 0.8 / count
    x = np.asarray(series["x"], dtype=float) - 0.4 + width * (k + 0.5)
    y = np.asarray(series["y"], dtype=float)
    interval = None
    if "low" in series and "high" in series:
        interval = np.abs([y - series["low"], series["high"] - y])
    axes.bar(x, y, width, yerr=interval, color=colour, label=series["name"], capsize=2,
             error_kw={"lw": 0.8})  # fmt: skip


def _line(axes: Any, series: Series, colour: str) -> None:
    style = _STYLES[series.get("style", 0) % len(_STYLES)]
    axes.plot(series["x"], series["y"], style, color=colour, lw=1.6, label=series["name"],
              marker=series.get("marker"), ms=3)  # fmt: skip
    if "low" in series and "high" in series:
        axes.fill_between(
            series["x"], series["low"], series["high"], color=colour, alpha=0.18, lw=0
        )


def _arrow(axes: Any, series: Series, colour: str) -> None:
    style = {"arrowstyle": "->", "color": colour, "lw": 1.5}
    tail, head = (tuple(np.stack((series["x"], series["y"]), -1)[k]) for k in (0, -1))
    axes.annotate("", head, tail, arrowprops=style)
    axes.plot([], [], color=colour, label=series["name"])


def _finish(axes: Any, panel: Panel) -> None:
    along, up = panel.get("logarithmic", (False, False))
    if along:
        axes.set_xscale("log")
    if up:
        axes.set_yscale("log")
    if "ticks" in panel:
        axes.set_xticks(range(len(panel["ticks"])), panel["ticks"])
    if "limits" in panel:
        axes.set_ylim(*panel["limits"])
    if panel.get("square"):
        axes.set_aspect("equal")
    if panel.get("bare"):
        axes.set_axis_off()
    axes.grid(alpha=0.25)
    if any(series["name"] for series in panel["series"] if series["kind"] != "text"):
        axes.legend(fontsize=7, frameon=False)
