"""Experiment: a figure or table of a paper as small parts: points, claims, pictures."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from attnmargin.base.progress import Progress
from attnmargin.plot.panels import Picture

Arrays = dict[str, NDArray[Any]]
Results = Mapping[str, Arrays]  # by the key of a point


@final
@dataclass(frozen=True)
class Point:
    """One point of a curve: what is computed, and saved, in one go."""

    key: str  # part of a file name
    settings: dict[str, Any] = field(default_factory=dict)


@final
@dataclass(frozen=True)
class Task:
    """A point with how often and from which seed it is to be computed."""

    settings: dict[str, Any]
    trials: int
    seed: int
    progress: Progress
    data: Path | None = None  # the folder of the data


@final
@dataclass(frozen=True)
class Claim:
    """One checkable statement of a paper, with the measured number and the bound."""

    claim: str
    measured: float | None
    bound: str
    holds: bool

    def record(self) -> dict[str, Any]:
        """As it stands in JSON."""
        return {
            "claim": self.claim,
            "measured": _finite(self.measured),
            "bound": self.bound,
            "holds": bool(self.holds),
        }


@final
@dataclass(frozen=True)
class Measurement:
    """A number that is reported without a bound: nothing is claimed about it."""

    what: str
    measured: float | None

    def record(self) -> dict[str, Any]:
        """As it stands in JSON."""
        return {"what": self.what, "measured": _finite(self.measured)}


def _finite(value: float | None) -> float | None:
    """None for what JSON has no number for."""
    return None if value is None or not np.isfinite(value) else float(value)


def at_least(claim: str, measured: float, bound: float) -> Claim:
    """A claim that a number is at least a bound."""
    return Claim(claim, float(measured), f"≥ {bound:g}", bool(measured >= bound))


def at_most(claim: str, measured: float, bound: float) -> Claim:
    """A claim that a number is at most a bound."""
    return Claim(claim, float(measured), f"≤ {bound:g}", bool(measured <= bound))


@final
@dataclass(frozen=True)
class Experiment:
    """A figure: its points, what is computed at one, what is claimed, and what is drawn."""

    name: str  # "A:fig7"
    title: str
    trials: int  # as in the paper
    points: tuple[Point, ...]
    run: Callable[[Task], Arrays]
    claims: Callable[[Results], list[Claim]]
    pictures: Callable[[Results], list[Picture]]
    measurements: Callable[[Results], list[Measurement]] = lambda results: []
    source: str | None = None  # another experiment whose points these are
    files: Callable[[Results, Path], list[Path]] | None = None  # more to write beside the pictures
    unit: str = "trials"
    needs: str | None = None  # what the folder of the data must hold

    @property
    def store(self) -> str:
        """The experiment that the points belong to."""
        return self.source or self.name


def mean_error(values: NDArray[Any], axis: int = 0) -> tuple[NDArray[Any], NDArray[Any]]:
    """Mean, and the half width of its 95 % interval."""
    count = values.shape[axis]
    spread = values.std(axis, ddof=1) if count > 1 else np.zeros_like(values.mean(axis))
    return values.mean(axis), 1.96 * spread / np.sqrt(count)


def share_interval(successes: NDArray[Any], count: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Wilson's 95 % interval of shares, low and high."""
    p, z = np.asarray(successes, dtype=float) / count, 1.96
    centre = (p + z**2 / (2 * count)) / (1 + z**2 / count)
    half = z / (1 + z**2 / count) * np.sqrt(p * (1 - p) / count + z**2 / (4 * count**2))
    return np.maximum(centre - half, 0.0), np.minimum(centre + half, 1.0)
