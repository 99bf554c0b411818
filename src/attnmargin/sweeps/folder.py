"""The folder of a sweep: what it computes, one file per finished point, one per failed point.

sweep.json             the points, the function's name, trials and seed
points/3f/3f0c….npz    the arrays of a point, named by its fingerprint
failed/3f0c….json      its settings, and why it failed
"""

import json
import os
import zipfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from attnmargin.base.errors import InputError
from attnmargin.base.files import make_folder, own_place, read_whole, write_whole
from attnmargin.base.npz import read_npz, write_npz
from attnmargin.sweeps.grid import Settings, as_text, fingerprint, plain
from attnmargin.version import VERSION

SECONDS, SETTINGS, _VERSION = "_seconds", "_settings", "_version"
_NEEDS = "a folder that attnmargin sweep wrote"


@final
@dataclass(frozen=True)
class Plan:
    """What a sweep computes."""

    name: str  # of the function
    points: list[Settings]
    trials: int
    seed: int

    def marks(self) -> list[str]:
        """Return the fingerprints of all points."""
        return [fingerprint(self.name, point, self.trials, self.seed) for point in self.points]


@final
@dataclass(frozen=True)
class Folder:
    """Where the files of a sweep lie."""

    path: Path

    @property
    def plan_file(self) -> Path:
        """The file with the plan."""
        return self.path / "sweep.json"

    def point(self, mark: str) -> Path:
        """The file of a point."""
        return self.path / "points" / mark[:2] / f"{mark}.npz"

    def failure(self, mark: str) -> Path:
        """The file of a point that failed."""
        return self.path / "failed" / f"{mark}.json"

    def write_plan(self, plan: Plan) -> None:
        """Save a plan; a folder keeps one function, trials and seed, and its points may change."""
        make_folder(self.path, "out")
        text = json.dumps({**asdict(plan), "version": VERSION}, ensure_ascii=False)
        if self.plan_file.is_file():
            old = self.read_plan()
            if (old.name, old.trials, old.seed) != (plan.name, plan.trials, plan.seed):
                got = f"{self.path}, which holds a sweep of {_about(old)}, not {_about(plan)}"
                raise InputError("out", got, "a folder of its own for every sweep")
        write_whole(own_place(self.path, "sweep.json"), lambda stream: stream.write(text.encode()))

    def read_plan(self) -> Plan:
        """Read the plan of the sweep in this folder."""
        text = read_whole(self.plan_file, "folder", _NEEDS)
        try:
            record = json.loads(text)
            name, points = str(record["name"]), [_point(p) for p in record["points"]]
            plan = Plan(name, points, int(record["trials"]), int(record["seed"]))
            as_text([name, points]).encode()  # half of a character has no place in a file
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            raise InputError("folder", f"{self.plan_file} ({error!s:.80})", _NEEDS) from None
        if not points or plan.trials < 1:
            raise InputError("folder", f"{self.plan_file} without points", _NEEDS)
        return plan

    def has(self, mark: str) -> bool:
        """Check whether a point is finished; a file cut short by a power failure is not."""
        path = self.point(mark)
        try:
            return path.is_file() and zipfile.is_zipfile(path)
        except OSError:
            return False

    def write_point(
        self, mark: str, settings: Settings, arrays: dict[str, NDArray[Any]], seconds: float
    ) -> None:
        """Save a finished point, and forget that it failed before."""
        own = {SECONDS: np.array(seconds), SETTINGS: np.array(as_text(settings)),
               _VERSION: np.array(VERSION)}  # fmt: skip
        make_folder(self.point(mark).parent, "out")
        # Not synchronised: waiting for the disk takes as long as many a point, and a file that a
        # power failure cut short is not finished.
        place = own_place(self.point(mark).parent, f"{mark}.npz")
        write_npz(place, {**arrays, **own}, sync=False)
        self.failure(mark).unlink(missing_ok=True)

    def read_point(self, mark: str) -> dict[str, NDArray[Any]]:
        """Read the arrays of a finished point."""
        return read_npz(self.point(mark), needs=(SECONDS, SETTINGS))

    def write_failure(self, mark: str, settings: Settings, why: str, trace: str = "") -> None:
        """Save why a point failed."""
        make_folder(self.failure(mark).parent, "out")
        record = {"settings": settings, "why": why, "trace": trace}
        text = json.dumps(record, ensure_ascii=False, indent=1)
        place = own_place(self.failure(mark).parent, f"{mark}.json")
        write_whole(place, lambda stream: stream.write(text.encode(errors="replace")))

    def why(self, mark: str) -> str | None:
        """Return why a point failed, or None if it did not."""
        path = self.failure(mark)
        try:
            return str(json.loads(read_whole(path, "folder", _NEEDS))["why"])
        except (ValueError, KeyError, TypeError, RecursionError):
            return "for a reason that cannot be read" if os.path.lexists(path) else None


def _about(plan: Plan) -> str:
    return f"{plan.name:.120}, {plan.trials} trials, seed {plan.seed}"


def _point(found: Any) -> Settings:
    if not isinstance(found, dict):
        raise ValueError("a point that is no object")
    return {str(name): plain(str(name), value) for name, value in found.items()}
