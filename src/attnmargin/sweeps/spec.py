"""Specifications of sweeps: a TOML file with a computation and a grid.

compute = "train"          # or "predict", "solve"; or command = "python train.py --lr {lr}"
trials = 100
seed = 0
record = ["correlation"]   # all quantities by default

[grid]                     # a list varies, anything else is fixed
n = 6
T = 8
d = [4, 8, 16]
parameter = ["W", "KQ"]
steps = 2000
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from attnmargin.base.errors import InputError
from attnmargin.base.files import check_file, read_whole
from attnmargin.data.attention_data import AttentionData
from attnmargin.sweeps.command import Command
from attnmargin.sweeps.computations import FUNCTIONS, Computation, DataFile, contents, one_batch
from attnmargin.sweeps.grid import Settings, points_of
from attnmargin.sweeps.work import Function

_KEYS = ("compute", "command", "trials", "seed", "record", "grid")
_NEEDS = "a sweep in TOML, as in docs/sweeps.md"
_MOST_BYTES = 4 << 20


@final
@dataclass(frozen=True)
class Spec:
    """A sweep as a file describes it."""

    function: Function
    points: list[Settings]
    trials: int
    seed: int


def read_spec(path: str | Path, trials: int | None = None, seed: int | None = None) -> Spec:
    """Read a specification; files that it names lie relative to it.

    Args:
        trials, seed: in place of those in the file.
    """
    path = check_file(path, needs=_NEEDS)
    own = {"trials": trials, "seed": seed}
    record = {**_toml(path), **{name: n for name, n in own.items() if n is not None}}
    for key in record:
        if key not in _KEYS:
            raise InputError(f"{path}", f"the key {key!r:.80}", f"keys among {', '.join(_KEYS)}")
    grid = record.get("grid")
    if not isinstance(grid, dict):
        raise InputError(f"{path}", "no table [grid]", _NEEDS)
    points = points_of(grid)
    function, trials = _function(path, record, points)
    return Spec(function, points, trials, _whole(path, "seed", record.get("seed", 0)))


def _toml(path: Path) -> dict[str, Any]:
    data = read_whole(path, "file", _NEEDS, _MOST_BYTES)
    try:
        return tomllib.loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise InputError("file", f"{path} ({str(error).splitlines()[0]:.120})", _NEEDS) from None


def _function(
    path: Path, record: Mapping[str, Any], points: list[Settings]
) -> tuple[Function, int]:
    """Return the computation and the number of trials."""
    trials = None if "trials" not in record else _whole(path, "trials", record["trials"])
    if ("compute" in record) == ("command" in record):
        got = "both" if "compute" in record else "neither"
        raise InputError(f"{path}", f"{got} of compute and command", "one of the two")
    if "command" in record:
        if "record" in record:
            raise InputError(f"{path}", "record with a command", "compute, or no record")
        words = record["command"]
        if not isinstance(words, str | list):
            raise InputError("command", f"a {type(words).__name__}", "a command line")
        return Command(words), 1 if trials is None else trials
    name = record["compute"]
    if not isinstance(name, str) or name not in FUNCTIONS:
        raise InputError("compute", f"{name!r:.80}", f"one of {', '.join(FUNCTIONS)}")
    files, found = _files(path.parent, points, trials)
    return Computation(name, _record(path, record), files), 1 if found is None else found


def _files(
    folder: Path, points: list[Settings], trials: int | None
) -> tuple[dict[str, DataFile], int | None]:
    """Find the files of a sweep, and the number of their instances."""
    files: dict[str, DataFile] = {}
    names = [p["file"] for p in points if "file" in p]
    for name in names:
        if not isinstance(name, str):
            raise InputError("file", f"{name!r:.80}", "the name of an .npz file")
    for name in dict.fromkeys(names):
        place = check_file(folder / name, "file")
        files[name] = DataFile(place.resolve(), contents(place))
        trials = one_batch(AttentionData.load(place), trials).batch_shape.numel()
    return files, trials


def _record(path: Path, record: Mapping[str, Any]) -> tuple[str, ...]:
    names = record.get("record", [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InputError(f"{path}", f"record = {names!r:.80}", "a list of names")
    return tuple(names)


def _whole(path: Path, name: str, value: Any) -> int:
    if type(value) is not int:
        raise InputError(f"{path}", f"{name} = {value!r:.80}", "a whole number")
    return value
