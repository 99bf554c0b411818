"""Cases: results of an experiment made by hand, and mutants in which something is broken."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnmargin.papers.engine.experiment import Arrays
from attnmargin.papers.registry import find

Results = dict[str, Arrays]
Change = Callable[[Results], None]  # in place

TRIALS = 20


@dataclass(frozen=True)
class Mutant:
    """One thing that is broken, and a pattern of the claims that must notice it."""

    broken: str
    breaks: str
    change: Change


@dataclass(frozen=True)
class Case:
    """The arrays of every point of an experiment, by its key, and the mutants."""

    name: str
    arrays: Callable[[str], Arrays]
    mutants: tuple[Mutant, ...]

    def results(self) -> Results:
        """Build arrays for which all claims hold."""
        return {point.key: self.arrays(point.key) for point in find(self.name).points}

    def broken(self, mutant: Mutant) -> Results:
        """Build the same arrays, and break them."""
        results = self.results()
        mutant.change(results)
        return results


# --- values ---------------------------------------------------------------------------------


def noise(*shape: int) -> NDArray[Any]:
    """Draw numbers from 0 to 1, always the same."""
    return np.random.default_rng(0).random(shape)


def close(*shape: int, off: float = 1e-5) -> NDArray[Any]:
    """Build correlations that are at most ``off`` away from one."""
    return 1.0 - off * noise(*shape)


def first(count: int, trials: int = 100) -> NDArray[Any]:
    """Mark the first trials."""
    return np.arange(trials) < count


def numbers(key: str) -> list[float]:
    """Read the numbers in the key of a point."""
    return [float(x) for x in re.findall(r"\d+(?:\.\d+)?", key)]


# --- changes --------------------------------------------------------------------------------


def edit(points: str = ".*", **changes: Callable[[NDArray[Any]], NDArray[Any]]) -> Change:
    """Change arrays, by their names, of all points whose key matches."""

    def change(results: Results) -> None:
        for key in _matching(results, points):
            for name, own in changes.items():
                results[key][name] = own(results[key][name])

    return change


def exchange(one: str, two: str, points: str = ".*") -> Change:
    """Exchange the roles of two arrays in all points whose key matches."""

    def change(results: Results) -> None:
        for key in _matching(results, points):
            own = results[key]
            own[one], own[two] = own[two], own[one]

    return change


def exchange_points(one: str, two: str) -> Change:
    """Exchange the roles of points: ``one`` is replaced by ``two`` in their keys."""

    def change(results: Results) -> None:
        for key in [key for key in results if one in key]:
            other = key.replace(one, two)
            results[key], results[other] = results[other], results[key]

    return change


def reverse_points(points: str = ".*") -> Change:
    """Give the matching points each other's arrays, in reverse order."""

    def change(results: Results) -> None:
        keys = _matching(results, points)
        results.update(dict(zip(keys, [results[key] for key in reversed(keys)], strict=True)))

    return change


def _matching(results: Results, points: str) -> list[str]:
    keys = [key for key in results if re.fullmatch(points, key)]
    assert keys, points
    return keys


def random_directions(x: NDArray[Any]) -> NDArray[Any]:
    """Return the correlations of random 10 × 10 matrices in the place of those that were found."""
    return np.random.default_rng(1).normal(0.0, 0.1, np.shape(x))


def reverse(x: NDArray[Any]) -> NDArray[Any]:
    """Exchange the beginning and the end."""
    return np.asarray(x)[::-1]


def flip(x: NDArray[Any]) -> NDArray[Any]:
    """Exchange true and false, or signs."""
    return ~x if x.dtype == bool else -x


def constant(value: Any) -> Callable[[NDArray[Any]], NDArray[Any]]:
    """Replace all numbers by one."""
    return lambda x: np.full_like(x, value)


def add(value: Any) -> Callable[[NDArray[Any]], NDArray[Any]]:
    """Be off by a number."""
    return lambda x: x + value


def none(x: NDArray[Any]) -> NDArray[Any]:
    """Leave no trial."""
    return x[:0]
