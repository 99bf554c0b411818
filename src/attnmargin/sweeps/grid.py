"""Grids: the settings of every point, checked and named by a fingerprint."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np

from attnmargin.base.errors import InputError

Settings = dict[str, Any]  # numbers, words, truth values, None, and lists of these
Grid = Mapping[str, Any] | Sequence[Mapping[str, Any]]

# Points of one sweep: each is a file.
_MOST = 1_000_000
_NEEDS = "numbers, words, true or false, and lists of these"


def points_of(grid: Grid) -> list[Settings]:
    """List the settings of all points of a grid; the first name varies slowest.

    Args:
        grid: values by name, where a list (a range, an array) varies and anything else is fixed;
            or the settings of every point.

    Example:
        >>> points_of({"n": 6, "d": [2, 4], "p": [2.0, 3.0]})[:2]
        [{'n': 6, 'd': 2, 'p': 2.0}, {'n': 6, 'd': 2, 'p': 3.0}]
    """
    if isinstance(grid, Mapping):
        names, axes = [_name(name) for name in grid], _axes(grid)
        if prod(map(len, axes)) > _MOST:
            raise InputError("grid", f"more than {_MOST:,} points", "fewer values")
        found = [dict(zip(names, values, strict=True)) for values in product(*axes)]
    elif isinstance(grid, Sequence) and all(isinstance(point, Mapping) for point in grid):
        found = [{_name(name): plain(name, value) for name, value in p.items()} for p in grid]
    else:
        raise InputError("grid", f"a {type(grid).__name__}", "values by name, or a list of points")
    if not found:
        raise InputError("grid", "no point", "at least one value of every name")
    _refuse_twins(found)
    return found


def varied(points: Sequence[Settings]) -> list[str]:
    """List the names that differ between points, in order.

    >>> varied([{"n": 6, "d": 2}, {"n": 6, "d": 4}])
    ['d']
    """
    names = dict.fromkeys(name for point in points for name in point)
    missing = object()
    first = points[0]
    return [
        name
        for name in names
        if any(point.get(name, missing) != first.get(name, missing) for point in points)
    ]


def fingerprint(*parts: Any) -> str:
    """Name settings by 32 hexadecimal digits; equal settings have equal names.

    >>> fingerprint({"a": 1, "b": 2}) == fingerprint({"b": 2, "a": 1})
    True
    """
    return hashlib.blake2b(as_text(parts).encode(), digest_size=16).hexdigest()


def as_text(value: Any) -> str:
    """Write settings as JSON, always the same for the same settings."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def plain(name: str, value: Any) -> Any:
    """Convert a value to what JSON can hold, or raise InputError."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [plain(name, part) for part in value]
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        if np.isfinite(value):
            return value
        raise InputError(str(name), f"{value}", "a finite number")
    raise InputError(str(name), f"a {type(value).__name__}", _NEEDS)


def _axes(grid: Mapping[str, Any]) -> list[list[Any]]:
    axes = []
    for name, values in grid.items():
        several = isinstance(values, Iterable) and not isinstance(values, str | Mapping | bytes)
        axes.append([plain(name, value) for value in (values if several else [values])])
    return axes


def _name(name: Any) -> str:
    if isinstance(name, str) and name.isidentifier() and not name.startswith("_"):
        if name not in ("trial", "trials", "seed"):
            return name
        raise InputError("grid", f"the name {name!r}", "other names: the sweep sets this one")
    raise InputError("grid", f"the name {name!r}", "names such as d or learning_rate")


def _refuse_twins(points: list[Settings]) -> None:
    seen: set[str] = set()
    for point in points:
        text = as_text(point)
        if text in seen:
            raise InputError("grid", f"the point {text:.200} twice", "points that differ")
        seen.add(text)
