"""Sweep: what stands of a sweep, and its table."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from attnmargin.base.display import Summarised
from attnmargin.base.errors import InputError
from attnmargin.sweeps.folder import SECONDS, SETTINGS, Folder, Plan
from attnmargin.sweeps.grid import Settings, as_text, varied

Table = dict[str, NDArray[Any]]


@final
@dataclass(frozen=True, eq=False, repr=False)
class Sweep(Summarised):
    """The points of a sweep: done, failed or missing."""

    folders: tuple[Folder, ...]
    plan: Plan
    marks: list[str]  # fingerprints of the points meant: all, or those of a shard

    @cached_property
    def _homes(self) -> dict[str, Folder | None]:
        return {mark: next((f for f in self.folders if f.has(mark)), None) for mark in self.marks}

    @cached_property
    def _settings(self) -> dict[str, Settings]:
        return dict(zip(self.plan.marks(), self.plan.points, strict=True))

    @property
    def points(self) -> list[Settings]:
        """The settings of all points."""
        return [self._settings[mark] for mark in self.marks]

    @property
    def done(self) -> list[Settings]:
        """The settings of the points that are finished."""
        return [self._settings[mark] for mark, home in self._homes.items() if home is not None]

    @cached_property
    def failed(self) -> list[tuple[Settings, str]]:
        """The settings of the points that failed, each with the reason."""
        found = []
        for mark, home in self._homes.items():
            why = next((w for f in self.folders if (w := f.why(mark)) is not None), None)
            if home is None and why is not None:
                found.append((self._settings[mark], why))
        return found

    @property
    def missing(self) -> list[Settings]:
        """The settings of the points that are neither finished nor failed."""
        failed = {as_text(settings) for settings, _ in self.failed}
        absent = [self._settings[mark] for mark, home in self._homes.items() if home is None]
        return [settings for settings in absent if as_text(settings) not in failed]

    @property
    def complete(self) -> bool:
        """Whether all points are finished."""
        return None not in self._homes.values()

    @property
    def varied(self) -> list[str]:
        """The names of the settings that differ between points."""
        return varied(self.plan.points)

    def arrays(self) -> Iterator[tuple[Settings, dict[str, NDArray[Any]]]]:
        """Yield the settings and arrays of every finished point, in the order of the grid."""
        for mark, home in self._homes.items():
            if home is not None:
                arrays = home.read_point(mark)
                if not _same(arrays, self._settings[mark]):
                    path = home.point(mark)
                    raise InputError("folder", f"{path} with other settings", "an unchanged folder")
                yield self._settings[mark], arrays

    def seconds(self) -> float:
        """Return how long the finished points took, added up over processes."""
        return float(sum(float(arrays[SECONDS]) for _, arrays in self.arrays()))

    def table(self) -> Table:
        """Return one row per point and trial: settings, trial, and what the function returned.

        A quantity without trials is repeated; arrays with more dimensions stay in the files of the
        points. Numbers that some points lack are NaN there, and words empty.
        """
        rows = [self._rows(settings, arrays) for settings, arrays in self.arrays()]
        names = dict.fromkeys(name for columns in rows for name in columns)
        lengths = [len(columns["trial"]) for columns in rows]
        return {name: _column([c.get(name) for c in rows], lengths) for name in names}

    def _rows(self, settings: Settings, arrays: dict[str, NDArray[Any]]) -> Table:
        trials = self.plan.trials
        columns: Table = {}
        for name, value in settings.items():
            columns[name] = np.repeat(np.array(_cell(value)), trials)
        columns["trial"] = np.arange(trials)
        for name, array in arrays.items():
            if name.startswith("_") or array.shape not in ((), (trials,)):
                continue
            own = name if name not in columns else f"{name} (returned)"
            columns[own] = np.broadcast_to(array, (trials,))
        return columns

    def summary(self) -> dict[str, str]:
        """Return the counts, by name."""
        found = {"points": len(self.marks), "done": len(self.done), "failed": len(self.failed),
                 "missing": len(self.missing)}  # fmt: skip
        return {k: f"{count:,}" for k, count in found.items() if count or k in ("points", "done")}


def _same(arrays: dict[str, NDArray[Any]], settings: Settings) -> bool:
    """Check that a file was written for a point, and by a sweep."""
    try:
        float(arrays[SECONDS])
        if any(array.dtype.kind not in "biufcUS" for array in arrays.values()):
            return False
        return bool(json.loads(str(arrays[SETTINGS])) == settings)
    except (TypeError, ValueError, RecursionError):
        return False


def _cell(value: Any) -> Any:
    """Write a setting as one cell of a table."""
    return as_text(value) if isinstance(value, list) or value is None else value


def _column(parts: list[NDArray[Any] | None], lengths: list[int]) -> NDArray[Any]:
    """Join a column; parts that lack it are NaN, or empty words."""
    known = [part for part in parts if part is not None]
    if any(part.dtype.kind in "US" for part in known):
        filled = [
            np.full(n, "") if part is None else part.astype(str)
            for part, n in zip(parts, lengths, strict=True)
        ]
        return np.concatenate(filled)
    filled = [np.full(n, np.nan) if part is None else part
              for part, n in zip(parts, lengths, strict=True)]  # fmt: skip
    return np.concatenate(filled)
