"""Sweeps as records, tables and a picture."""

from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from attnmargin.base.files import make_folder, own_place, write_whole
from attnmargin.plot.drawing import draw_picture, save
from attnmargin.plot.sweeps import sweep_picture
from attnmargin.report.numbers import number
from attnmargin.sweeps.sweep import Sweep, Table
from attnmargin.sweeps.table import write_table

# Points and quantities whose means are listed.
_MOST_POINTS, _MOST_QUANTITIES = 12, 6


def sweep_record(sweep: Sweep) -> dict[str, Any]:
    """Describe a sweep, ready for JSON: counts, what failed or is missing, and first means."""
    return {
        "points": len(sweep.points),
        "trials": sweep.plan.trials,
        "seed": sweep.plan.seed,
        "done": len(sweep.done),
        "failed": [{"settings": settings, "why": why} for settings, why in sweep.failed],
        "missing": [{"settings": settings} for settings in sweep.missing],
        "means": _means(sweep.table(), sweep),
    }


def write_sweep(sweep: Sweep, folder: str | Path) -> list[Path]:
    """Write ``table.csv``, and with pyarrow ``table.parquet``, with matplotlib ``picture.png``."""
    folder, table = make_folder(folder, "out"), sweep.table()
    files = [write_table(table, own_place(folder, "table.csv"))]
    if find_spec("pyarrow"):
        files.append(write_table(table, own_place(folder, "table.parquet")))
    if find_spec("matplotlib"):
        figure = draw_picture(sweep_picture(sweep))
        place = own_place(folder, "picture.png")
        files.append(write_whole(place, partial(save, figure, "png")))
    return files


def _means(table: Table, sweep: Sweep) -> dict[str, Any] | None:
    """List the means over trials at the first points; words that agree stand for themselves."""
    settings = {name for point in sweep.points for name in point}
    quantities = [name for name in table if name not in {*settings, "trial"}][:_MOST_QUANTITIES]
    trials = sweep.plan.trials
    count = min(len(table.get("trial", ())) // trials, _MOST_POINTS)
    if not count or not quantities:
        return None
    rows = []
    for k in range(count):
        own = {name: table[name][k * trials : (k + 1) * trials] for name in table}
        named = [str(own[name][0]) for name in sweep.varied]
        rows.append([*named, *(_mean(own[name]) for name in quantities)])
    title = f"means over {trials:,} trials" if trials > 1 else "one trial"
    if count < len(sweep.done):
        title += f", the first {count} of {len(sweep.done):,} points"
    return {"title": title, "names": [*sweep.varied, *quantities], "rows": rows}


def _mean(values: Any) -> float | str | None:
    """Return the mean of numbers; of words, the most frequent with its share."""
    if values.dtype.kind not in "US":
        known = values[np.isfinite(values)]
        return number(known.mean()) if known.size else None
    kinds, counts = np.unique(values, return_counts=True)
    share = counts.max() / len(values)
    word = str(kinds[counts.argmax()])
    return word if share == 1.0 else f"{word} ({share:.0%})"
