"""Experiment: a figure or table of a paper, split into points, claims and pictures."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

from numpy.typing import NDArray

from attnmargin.base.progress import Progress
from attnmargin.papers.engine.claims import Claim, finite
from attnmargin.plot.panels import Picture

Arrays = dict[str, NDArray[Any]]
Results = Mapping[str, Arrays]  # keyed by point


@final
@dataclass(frozen=True)
class Point:
    """One point of a curve: the unit that is computed and saved."""

    key: str  # part of a file name
    settings: dict[str, Any] = field(default_factory=dict)


@final
@dataclass(frozen=True)
class Task:
    """A point to compute, with the number of trials and the seed."""

    settings: dict[str, Any]
    trials: int
    seed: int
    progress: Progress
    data: Path | None = None  # folder of the data


@final
@dataclass(frozen=True)
class Measurement:
    """A reported number without a bound: no claim depends on it."""

    what: str
    measured: float | None

    def record(self) -> dict[str, Any]:
        """Return the measurement as a JSON-ready record."""
        return {"what": self.what, "measured": finite(self.measured)}


@final
@dataclass(frozen=True)
class Experiment:
    """A figure: its points, the computation at each, the claims and the pictures."""

    name: str  # "A:fig7"
    title: str
    trials: int  # as in the paper
    points: tuple[Point, ...]
    run: Callable[[Task], Arrays]
    claims: Callable[[Results], list[Claim]]
    pictures: Callable[[Results], list[Picture]]
    measurements: Callable[[Results], list[Measurement]] = lambda results: []
    source: str | None = None  # another experiment that provides the points
    files: Callable[[Results, Path], list[Path]] | None = None  # writes more files
    unit: str = "trials"
    needs: str | None = None  # what the data folder must hold
    partial: bool = False  # whether it is judged and drawn without the points that are missing

    @property
    def paper(self) -> str:
        """Letter of the paper."""
        return self.name.split(":")[0]

    @property
    def store(self) -> str:
        """Name of the experiment that owns the points."""
        return self.source or self.name
