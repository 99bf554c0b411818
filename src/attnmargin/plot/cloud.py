"""A cloud of points as SVG: some have their names beside them, all show theirs on hover."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnmargin.plot.labels import place_names, shortened
from attnmargin.plot.panels import COLOURS, Panel, Series
from attnmargin.plot.svg import Markup, element

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _BELOW, _TOP = 440.0, 330.0, 46.0, 10.0, 40.0, 10.0
# Font size of names, and their greatest length in letters.
_SIZE, _LONGEST = 11.0, 16
# Points without a colour of their own.
_NOISE = "#8c8c8c"
Ends = tuple[float, float]


def cloud_svg(panel: Panel) -> str:
    """Draw one circle per point of a panel; its tooltip shows the label and both numbers.

    Where the second axis is logarithmic, it shows powers of ten.
    """
    powers = panel.get("logarithmic", (False, False))[1]
    own = [_in_logarithms(s) for s in panel["series"]] if powers else panel["series"]
    points = [series for series in own if series["kind"] == "points"]
    x, y = (_ends(np.concatenate([s[axis] for s in points])) for axis in ("x", "y"))
    dots = [dot for k, series in enumerate(points) for dot in _dots(series, k, x, y)]
    names = [name for s in own if s["kind"] == "names" for name in _names(s, x, y)]
    along, up = panel["axes"]
    below = {"x": _WIDTH / 2, "y": _HEIGHT - 6, "text-anchor": "middle"}
    frame = {"viewBox": f"0 0 {_WIDTH:.0f} {_HEIGHT:.0f}", "role": "img"}
    look = {"aria-label": f"{up} against {along}", "font-size": 11, "fill": "currentColor"}
    parts = (*_ticks(x, y, powers), *dots, *names, element("text", below, along))
    drawn = element("svg", {**frame, **look}, *parts)
    return element("figure", None, drawn, element("figcaption", None, up))


def _in_logarithms(series: Series) -> Series:
    return {**series, "y": np.log10(np.maximum(series["y"], 1.0))}


def _dots(series: Series, k: int, x: Ends, y: Ends) -> list[Markup]:
    colour = series.get("colour", k)
    fill = _NOISE if isinstance(colour, str) else COLOURS[colour % len(COLOURS)]
    look = {"r": 2.5, "fill": fill, "opacity": 0.35 if fill == _NOISE else 0.8}
    names = series.get("labels", [""] * len(series["x"]))
    return [
        element(
            "circle",
            {"cx": _along(a, x), "cy": _up(b, y), **look},
            element("title", None, f"{name}: {a:+.2f}, {b:+.2f}"),
        )
        for a, b, name in zip(series["x"], series["y"], names, strict=True)
    ]


def _names(series: Series, x: Ends, y: Ends) -> list[Markup]:
    """Write names beside their points, clear of each other."""
    bottom, frame = _HEIGHT - _BELOW, (_WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BELOW)
    pairs = zip(series["x"], series["y"], strict=True)
    points = np.array([(_along(a, x) - _LEFT, bottom - _up(b, y)) for a, b in pairs])
    words = [shortened(name, _LONGEST) for name in series.get("labels", [])]
    places = points.reshape(-1, 2) + place_names(points.reshape(-1, 2), words, frame, _SIZE)
    return [
        element("text", {"x": _LEFT + a, "y": bottom - b - 2.0, "font-size": _SIZE}, word)
        for (a, b), word in zip(places, words, strict=True)
    ]


def _along(value: Any, ends: Ends) -> float:
    return _LEFT + float(value - ends[0]) / (ends[1] - ends[0]) * (_WIDTH - _LEFT - _RIGHT)


def _up(value: Any, ends: Ends) -> float:
    return _TOP + float(ends[1] - value) / (ends[1] - ends[0]) * (_HEIGHT - _TOP - _BELOW)


def _ends(values: NDArray[Any]) -> Ends:
    """Return the ends of an axis that shows the values and zero, with some room."""
    low, high = float(values.min(initial=0.0)), float(values.max(initial=0.0))
    room = 0.04 * (high - low) or 1.0
    return low - room, high + room


def _ticks(x: Ends, y: Ends, powers: bool) -> list[Markup]:
    """Draw grid lines with numbers along both axes."""
    parts = []
    bottom, line = _HEIGHT - _BELOW, {"stroke": "#8884"}
    for value in _round_values(*x):
        a = _along(value, x)
        parts += [
            element("line", {"x1": a, "x2": a, "y1": _TOP, "y2": bottom, **line}),
            element("text", {"x": a, "y": bottom + 14, "text-anchor": "middle"}, f"{value:g}"),
        ]
    for value in _round_values(*y):
        b, shown = _up(value, y), f"{10.0**value:,.0f}" if powers else f"{value:g}"
        if powers and value != round(value):
            continue
        parts += [
            element("line", {"x1": _LEFT, "x2": _WIDTH - _RIGHT, "y1": b, "y2": b, **line}),
            element("text", {"x": _LEFT - 6, "y": b + 4, "text-anchor": "end"}, shown),
        ]
    return parts


def _round_values(low: float, high: float) -> list[float]:
    """Choose a few round numbers between the ends."""
    size = 10.0 ** np.floor(np.log10((high - low) / 4.0))
    step = next(size * k for k in (1.0, 2.0, 5.0, 10.0) if size * k >= (high - low) / 6.0)
    first, last = int(np.ceil(low / step)), int(np.floor(high / step))
    return [round(k * step, 10) for k in range(first, last + 1)]
