"""Tables of sweeps → plot data: what was recorded against the setting that varies most."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnmargin.base.errors import InputError
from attnmargin.base.intervals import mean_error, share_interval
from attnmargin.plot.panels import COLOURS, Panel, Picture, Series
from attnmargin.sweeps.sweep import Sweep, Table

_MOST_PANELS, _MOST_WORDS = 9, 3
_WIDE = 30.0  # ratio from which an axis is logarithmic


def sweep_picture(sweep: Sweep) -> Picture:
    """Draw means over trials with 95 % intervals, a panel for every recorded quantity.

    The numeric setting with the most values runs along the first axis, and every combination of the
    others is a line. Words, such as a status, are drawn as shares of trials.
    """
    table = sweep.table()
    if not table:
        raise InputError("sweep", "no finished point", "at least one")
    along, others = _roles(table, sweep.varied)
    lines = _lines(table, others)
    shown = dict(list(lines.items())[: len(COLOURS)])
    quantities = _quantities(table, {*sweep.points[0], *sweep.varied, "trial"})
    panels = [
        _panel(name, values, table, along, shown)
        for name, values in list(quantities.items())[:_MOST_PANELS]
    ]
    caption = _caption(sweep, others, len(lines) - len(shown), len(quantities) - len(panels))
    return Picture(name="sweep", caption=caption, panels=panels, size=(4.2, 3.2))


def _roles(table: Table, names: Sequence[str]) -> tuple[str | None, list[str]]:
    """Choose the setting of the first axis, and those that tell lines apart."""
    numbers = {
        name: len(np.unique(table[name])) for name in names if table[name].dtype.kind in "iuf"
    }
    along = max(numbers, key=numbers.__getitem__) if numbers else None
    return along, [name for name in names if name != along]


def _lines(table: Table, others: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Return which rows belong to each combination of the settings, by its words."""
    count = len(table["trial"])
    words = [", ".join(f"{name} {table[name][k]}" for name in others) for k in range(count)]
    own = np.array(words)
    return {line: own == line for line in dict.fromkeys(words)}


def _quantities(table: Table, settings: set[str]) -> dict[str, NDArray[Any]]:
    """Return what was recorded as numbers; one that never changes is left out if others do."""
    found: dict[str, NDArray[Any]] = {}
    for name, values in table.items():
        if name in settings:
            continue
        if values.dtype.kind in "US":
            kinds, counts = np.unique(values[values != ""], return_counts=True)
            for kind in kinds[np.argsort(-counts, kind="stable")][:_MOST_WORDS]:
                found[f"share of {name} {kind}"] = values == kind
        elif values.dtype.kind in "biuf":
            found[name] = values
    changing = {name: values for name, values in found.items() if len(np.unique(values)) > 1}
    if not found:
        raise InputError("sweep", "no numbers or words in its table", "at least one quantity")
    return changing or found


def _panel(
    name: str,
    values: NDArray[Any],
    table: Table,
    along: str | None,
    lines: dict[str, NDArray[Any]],
) -> Panel:
    """Draw one quantity; without a numeric setting every combination is a bar."""
    if along is None:
        parts = [values[rows] for rows in lines.values()]
        bars = _series("bar", "", np.arange(len(parts)), parts, 0)
        return Panel(title=name, axes=("", ""), series=[bars], ticks=[*lines])
    series = []
    for k, (line, rows) in enumerate(lines.items()):
        x = np.unique(table[along][rows])
        parts = [values[rows & (table[along] == place)] for place in x]
        series.append(_series("line", line, x, parts, k))
    y = np.concatenate([own["y"] for own in series])
    wide = (_is_wide(table[along]), values.dtype.kind != "b" and _is_wide(y))
    return Panel(title=name, axes=(along, ""), series=series, logarithmic=wide)


def _series(
    kind: str, name: str, x: NDArray[Any], parts: list[NDArray[Any]], colour: int
) -> Series:
    """Build a line or bars of means over trials, with their 95 % intervals."""
    ends = np.array([_interval(part) for part in parts])
    marker = {"marker": "o"} if kind == "line" else {}
    own: Any = {"kind": kind, "name": name, "x": x, "y": ends[:, 1], "low": ends[:, 0],
                "high": ends[:, 2], "colour": colour, **marker}  # fmt: skip
    series: Series = own
    return series


def _interval(values: NDArray[Any]) -> tuple[float, float, float]:
    """Return the low end, the mean and the high end over trials that are not NaN."""
    if values.dtype.kind == "b":
        low, high = share_interval(np.asarray(values.sum()), len(values))
        return float(low), float(values.mean()), float(high)
    known = values[np.isfinite(values)].astype(float)
    if not known.size:
        return np.nan, np.nan, np.nan
    mean, half = mean_error(known)
    return float(mean - half), float(mean), float(mean + half)


def _is_wide(values: NDArray[Any]) -> bool:
    known = values[np.isfinite(values)]
    return bool(known.size and known.min() > 0 and known.max() / known.min() >= _WIDE)


def _caption(sweep: Sweep, others: Sequence[str], lines: int, panels: int) -> str:
    trials = sweep.plan.trials
    words = f"Means over {trials} trials with 95 % intervals." if trials > 1 else "One trial."
    if others:
        words += f" A line for every {', '.join(others)}."
    left = len(sweep.points) - len(sweep.done)
    missing = f" {left} of {len(sweep.points)} points are missing." if left else ""
    more = [f"{lines} more lines"] * (lines > 0) + [f"{panels} more quantities"] * (panels > 0)
    return words + missing + (f" Not drawn: {' and '.join(more)}." if more else "")
