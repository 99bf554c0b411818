"""Experiment: a figure or table of a paper, split into points, claims and pictures."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from attnmargin.base.progress import Progress
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
class Claim:
    """One checkable statement of a paper, with the measured number and the bound."""

    claim: str
    measured: float | None
    bound: str
    holds: bool

    def record(self) -> dict[str, Any]:
        """Return the claim as a JSON-ready record."""
        return {
            "claim": self.claim,
            "measured": _finite(self.measured),
            "bound": self.bound,
            "holds": bool(self.holds),
        }


@final
@dataclass(frozen=True)
class Measurement:
    """A reported number without a bound: no claim depends on it."""

    what: str
    measured: float | None

    def record(self) -> dict[str, Any]:
        """Return the measurement as a JSON-ready record."""
        return {"what": self.what, "measured": _finite(self.measured)}


def _finite(value: float | None) -> float | None:
    """Return the value, or None if JSON cannot represent it."""
    return None if value is None or not np.isfinite(value) else float(value)


def at_least(claim: str, measured: float, bound: float) -> Claim:
    """Claim that a number is at least a bound."""
    return Claim(claim, float(measured), f"≥ {bound:g}", bool(measured >= bound))


def at_most(claim: str, measured: float, bound: float) -> Claim:
    """Claim that a number is at most a bound."""
    return Claim(claim, float(measured), f"≤ {bound:g}", bool(measured <= bound))


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

    @property
    def store(self) -> str:
        """Name of the experiment that owns the points."""
        return self.source or self.name


def mean_error(values: NDArray[Any], axis: int = 0) -> tuple[NDArray[Any], NDArray[Any]]:
    """Compute the mean, and the half width of its 95 % interval."""
    count = values.shape[axis]
    spread = values.std(axis, ddof=1) if count > 1 else np.zeros_like(values.mean(axis))
    return values.mean(axis), 1.96 * spread / np.sqrt(count)
