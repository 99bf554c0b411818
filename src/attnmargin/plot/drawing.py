"""Plot data → matplotlib figures: drawing only, and the only module that uses matplotlib."""

import textwrap
import warnings
from collections.abc import Callable
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from attnmargin.base.errors import MissingPackageError
from attnmargin.plot.labels import boxes_along, letters, place_names, shortened
from attnmargin.plot.panels import COLOURS, INK, Panel, Picture, Series

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SIZE = (4.6, 3.6)  # of a panel, in inches
_STYLES = ("-", "--", ":", "-.")
_STYLE: dict[str, Any] = {
    "figure.facecolor": "white",
    "axes.facecolor": "white",
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}
_STAR, _DOT, _RING = 14.0, 4.0, 12.0  # marker sizes, in points
_TICK = 6.0  # width of a letter in tick labels, in points
# Letters of names, of those on end, of a line of text, and of a caption: more would leave no room.
_NAME, _TURNED, _TEXT, _CAPTION = 40, 24, 90, 600
# Approximate share of a panel that ticks and titles leave for the axes.
_INSIDE = (0.8, 0.76)


def draw_picture(picture: Picture) -> "Figure":
    """Draw all panels, with the caption below."""
    figure_class, rc_context = _matplotlib()
    count = len(picture["panels"])
    columns = min(picture.get("columns", 3), count)
    rows = -(-count // columns)
    width, height = picture.get("size", _SIZE)
    words = shortened(picture["caption"], _CAPTION)
    caption = textwrap.fill(words, int(14.5 * width * columns))
    below = 0.22 * (caption.count("\n") + 1) if caption else 0.0
    with rc_context(_STYLE):
        figure = figure_class(
            figsize=(width * columns, height * rows + below), layout="constrained"
        )
        for k, panel in enumerate(picture["panels"]):
            _draw_panel(figure.add_subplot(rows, columns, k + 1), panel, (width, height))
        if caption:
            figure.supxlabel(caption, fontsize=9, x=0.01, ha="left", parse_math=False)
    return figure


def draw_panel(panel: Panel, size: tuple[float, float] = _SIZE) -> "Figure":
    """Draw one panel without a caption; ``size`` is in inches."""
    return draw_picture(Picture(name="", caption="", panels=[panel], size=size))


def save(figure: "Figure", kind: str, stream: IO[bytes], transparent: bool = False) -> None:
    """Write a figure as "png", "svg" or "pdf"; the same figure yields the same bytes."""
    _, rc_context = _matplotlib()
    stamp = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    with rc_context({"svg.hashsalt": "attnmargin"}), warnings.catch_warnings():
        # The font may lack the script of a word.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure.savefig(stream, format=kind, dpi=110, metadata=stamp, transparent=transparent)


def _matplotlib() -> tuple[Any, Any]:
    """Import matplotlib, or raise MissingPackageError."""
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingPackageError("drawing", "attnmargin[plot]") from error
    return Figure, rc_context


def _draw_panel(axes: Any, panel: Panel, size: tuple[float, float]) -> None:
    title, along, up = (shortened(words, _TEXT) for words in (panel["title"], *panel["axes"]))
    axes.set_title(title, fontsize=10, parse_math=False)
    axes.set_xlabel(along, parse_math=False)
    axes.set_ylabel(up, parse_math=False)
    _frame(axes, panel)
    for k, series in enumerate(panel["series"]):
        if series["kind"] == "bar":
            _bar(axes, series, _colour(series, k), panel)
        elif series["kind"] == "names":
            _names(axes, series, panel, size)
        else:
            _KINDS[series["kind"]](axes, series, _colour(series, k))
    _finish(axes, panel, 72 * _INSIDE[0] * size[0])


def _colour(series: Series, k: int) -> str:
    """Return the colour that a series specifies, or the k-th of the palette."""
    colour = series.get("colour", k)
    return colour if isinstance(colour, str) else COLOURS[colour % len(COLOURS)]


def _frame(axes: Any, panel: Panel) -> None:
    """Set limits and scales, which name placement depends on."""
    if "across" in panel:
        axes.set_xlim(*panel["across"])
    if "limits" in panel:
        axes.set_ylim(*panel["limits"])
    if panel.get("square"):
        axes.set_aspect("equal")
    along, up = panel.get("logarithmic", (False, False))
    if along:
        # A log scale cannot show step 0; symlog can.
        curves = [np.ravel(s["x"]) for s in panel["series"] if s["kind"] == "line"]
        x = np.concatenate([np.ones(1), *curves])
        scale = {"linthresh": x[x > 0].min(), "linscale": 0.4}
        axes.set_xscale("symlog", **scale) if (x <= 0).any() else axes.set_xscale("log")
    if up:
        axes.set_yscale("log")


def _finish(axes: Any, panel: Panel, wide: float) -> None:
    """Set ticks, grid and legend; the axes are ``wide`` typographic points wide."""
    if "ticks" in panel:
        narrow = sum(_TICK * (letters(tick) + 1) for tick in panel["ticks"]) > wide
        names = [shortened(tick, _TURNED if narrow else _NAME) for tick in panel["ticks"]]
        axes.set_xticks(range(len(names)), names, rotation=90 * narrow, parse_math=False)
    elif _whole(panel):
        axes.locator_params(axis="x", integer=True)
    if "ticks_up" in panel:
        names = [shortened(tick, _NAME) for tick in panel["ticks_up"]]
        axes.set_yticks(range(len(names)), names, parse_math=False)
        axes.invert_yaxis()
    if panel.get("bare"):
        axes.set_axis_off()
    if panel.get("grid", True):
        axes.grid(alpha=0.25)
    handles, names = axes.get_legend_handles_labels()
    if handles:
        bars = any(series["kind"] == "bar" for series in panel["series"])
        place: dict[str, Any] = _room_above(axes) if bars else {}
        legend = axes.legend(fontsize=8 if len(names) <= 3 else 7, frameon=False, **place)
        for text in legend.get_texts():
            text.set_text(shortened(text.get_text(), _NAME))
            text.set_parse_math(False)


def _room_above(axes: Any) -> dict[str, Any]:
    """Make room for a legend above bars, which leave it none; return where it goes."""
    low, top = axes.get_ylim()
    ticks = [tick for tick in axes.get_yticks() if low <= tick <= top]
    axes.set_ylim(low, top + 0.25 * (top - low))
    axes.set_yticks(ticks)
    return {"loc": "upper center", "ncols": 2}


def _whole(panel: Panel) -> bool:
    """Test whether a linear first axis counts things."""
    counted = [series["x"] for series in panel["series"] if series["kind"] in ("line", "points")]
    plain = not panel.get("logarithmic", (False, False))[0]
    return plain and bool(counted) and all(np.asarray(x).dtype.kind in "iu" for x in counted)


def _line(axes: Any, series: Series, colour: str) -> None:
    style = _STYLES[series.get("style", 0) % len(_STYLES)]
    look = {"lw": series.get("width", 1.6), "marker": series.get("marker"),
            "ms": series.get("size", 3)}  # fmt: skip
    axes.plot(series["x"], series["y"], style, color=colour, label=series["name"], **look)
    if "low" in series and "high" in series:
        axes.fill_between(
            series["x"], series["low"], series["high"], color=colour, alpha=0.18, lw=0
        )


def _points(axes: Any, series: Series, colour: str) -> None:
    mark = series.get("marker", "o")
    size = series.get("size", {"*": _STAR, "ring": _RING}.get(mark, _DOT))
    look: dict[str, Any] = {"color": colour, "ms": size, "alpha": 0.7 if size <= _DOT else 1.0}
    if mark == "ring":
        mark, look = "o", {"mfc": "none", "mec": colour, "ms": size}
    axes.plot(series["x"], series["y"], mark, label=series["name"], **look)


def _bar(axes: Any, series: Series, colour: str, panel: Panel) -> None:
    """Draw bars beside those of the other series, or over them."""
    bars = [own for own in panel["series"] if own["kind"] == "bar"]
    bars = [series] if panel.get("overlaid") else bars
    width = 0.8 / len(bars)
    place = next(k for k, own in enumerate(bars) if own is series)
    x = np.asarray(series["x"], dtype=float) - 0.4 + width * (place + 0.5)
    y = np.asarray(series["y"], dtype=float)
    interval = None
    if "low" in series and "high" in series:
        interval = np.abs([y - series["low"], series["high"] - y])
    axes.bar(x, y, width, yerr=interval, color=colour, label=series["name"], capsize=2,
             error_kw={"lw": 0.8})  # fmt: skip


def _level(axes: Any, series: Series, colour: str) -> None:
    axes.axhline(float(np.ravel(series["y"])[0]), ls=":", c="0.4", lw=1, label=series["name"])


def _endless(axes: Any, series: Series, colour: str) -> None:
    first, second = _ends(series)
    style = _STYLES[series.get("style", 0) % len(_STYLES)]
    axes.axline(first, second, ls=style, c=colour, lw=1.2, label=series["name"])


def _arrow(axes: Any, series: Series, colour: str) -> None:
    tail, head = _ends(series)
    style = {"arrowstyle": "->", "color": colour, "lw": series.get("width", 1.5)}
    axes.annotate("", head, tail, arrowprops=style)
    axes.update_datalim((tail, head))
    axes.plot([], [], color=colour, label=series["name"])


def _ends(series: Series) -> tuple[Any, Any]:
    """Return the first and the last point of a series."""
    places = _places(series)
    return tuple(places[0]), tuple(places[-1])


def _text(axes: Any, series: Series, colour: str) -> None:
    word = shortened(series["name"], _NAME)
    axes.text(float(series["x"][0]), float(series["y"][0]), word, ha="center", va="center",
              zorder=3, parse_math=False)  # fmt: skip


def _box(axes: Any, series: Series, colour: str) -> None:
    """Draw a word in a rounded box between two corners."""
    from matplotlib.patches import FancyBboxPatch

    (left, low), (right, high) = _ends(series)
    style = "round,pad=0,rounding_size=8"
    axes.add_patch(
        FancyBboxPatch((left, low), right - left, high - low, boxstyle=style, fc="white",
                       ec=colour, lw=1.0, zorder=2.5)
    )  # fmt: skip
    axes.text((left + right) / 2, (low + high) / 2, shortened(series["name"], _NAME), ha="center",
              va="center_baseline", fontsize=9, zorder=3, parse_math=False)  # fmt: skip


def _cells(axes: Any, series: Series, colour: str) -> None:
    """Draw squares, the darker the nearer to 1, with their values."""
    from matplotlib.patches import Rectangle

    for x, y, value in zip(series["x"], series["y"], series.get("values", ()), strict=True):
        known = bool(np.isfinite(value))
        shade = float(np.clip(value, 0.0, 1.0)) if known else 0.0
        axes.add_patch(
            Rectangle((x - 0.5, y - 0.5), 1.0, 1.0, fc=colour, alpha=0.08 + 0.72 * shade**2, lw=0)
        )
        ink = "white" if shade > 0.85 else INK
        axes.text(x, y, f"{value:.2f}" if known else "–", ha="center", va="center", fontsize=8,
                  color=ink)  # fmt: skip
    axes.set_xlim(min(series["x"]) - 0.5, max(series["x"]) + 0.5)
    axes.set_ylim(min(series["y"]) - 0.5, max(series["y"]) + 0.5)


def _names(axes: Any, series: Series, panel: Panel, size: tuple[float, float]) -> None:
    """Draw words beside their points; lengths are in typographic points."""
    wide, high = (72 * share * length for share, length in zip(_INSIDE, size, strict=True))
    if panel.get("square"):
        wide = high = min(wide, high)
    points, words = _places(series), [shortened(name, _NAME) for name in series.get("labels", [])]
    axes.get_xlim()  # autoscale first: it changes transData

    def within(own: Any) -> Any:
        shares = axes.transAxes.inverted().transform(axes.transData.transform(own))
        return shares * (wide, high)

    height = series.get("size", 10.0)
    lines = [boxes_along(line) for own in panel["series"] for line in _lines(own, within, wide)]
    taken = np.concatenate(lines) if lines else None
    places = place_names(within(points), words, (wide, high), height, taken)
    for word, point, place in zip(words, points, places, strict=True):
        axes.annotate(word, point, xytext=place, textcoords="offset points", fontsize=height,
                      parse_math=False)  # fmt: skip


def _lines(series: Series, within: Callable[[Any], Any], wide: float) -> list[Any]:
    """Return the line that names should not cross, if the series is one."""
    if series["kind"] not in ("line", "arrow", "endless") or len(series["x"]) < 2:
        return []
    line = within(_places(series))
    if series["kind"] == "endless":
        way = (line[-1] - line[0]) / max(float(np.linalg.norm(line[-1] - line[0])), 1e-9)
        line = line[0] + np.array([[-2 * wide], [2 * wide]]) * way
    return [line]


def _places(series: Series) -> Any:
    return np.stack((series["x"], series["y"]), -1)


_KINDS: dict[str, Callable[[Any, Series, str], None]] = {
    "line": _line,
    "points": _points,
    "level": _level,
    "endless": _endless,
    "arrow": _arrow,
    "text": _text,
    "box": _box,
    "cells": _cells,
}
