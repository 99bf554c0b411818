"""Compare the answers of two settings: draws and words exactly, numbers to 1e-9."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnmargin.base.npz import read_npz

# Relative, of the largest entry of every member of a batch; float32 is what classifiers train in.
TOLERANCES = {"float64": 1e-9, "float32": 1e-4}


@dataclass
class Comparison:
    """What differs between two sets of answers."""

    answers: int = 0
    words: int = 0  # statuses, verdicts, selections and draws: single entries
    numbers: int = 0
    missing: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    worst: float = 0.0  # relative difference of numbers in float64
    where: str = ""

    def record(self) -> dict[str, Any]:
        """The row of the table."""
        return {"answers": self.answers, "words": self.words, "numbers": self.numbers,
                "missing": self.missing, "wrong": self.wrong, "worst": self.worst,
                "where": self.where}  # fmt: skip


def compare(reference: dict[str, NDArray[Any]], other: dict[str, NDArray[Any]]) -> Comparison:
    """Compare answers by name; names with an underscore in front are about the setting."""
    found = Comparison()
    for name, own in reference.items():
        if name.startswith("_"):
            continue
        if name not in other:
            found.missing.append(name)
            continue
        found.answers += 1
        _compare(found, name, own, other[name])
    return found


def read_answers(*paths: Path) -> dict[str, NDArray[Any]]:
    """Join the answers of files, such as those of single parts."""
    return {name: value for path in paths for name, value in read_npz(path).items()}


def _compare(found: Comparison, name: str, own: NDArray[Any], other: NDArray[Any]) -> None:
    if own.shape != other.shape:
        found.wrong.append(f"{name}: shape {other.shape}, not {own.shape}")
        return
    if own.dtype.kind != "f":
        found.words += own.size
        differ = own != other
        if differ.any():
            at = tuple(int(i) for i in np.argwhere(differ)[0])
            words = f"{int(differ.sum())} of {own.size} differ, as {other[at]!r}, not {own[at]!r}"
            found.wrong.append(f"{name}: {words} at {at}")
        return
    found.numbers += own.size
    worst = difference(own, other)
    if own.dtype == np.float64 and worst > found.worst:
        found.worst, found.where = worst, name
    if not worst <= TOLERANCES[str(own.dtype)]:
        found.wrong.append(f"{name}: {worst:.1e} apart")


def difference(own: NDArray[Any], other: NDArray[Any]) -> float:
    """Return the largest difference of numbers, relative to the largest of their member.

    The first axis counts members of a batch. NaN and infinite entries must be at the same places.

    >>> difference(np.array([1.0, 4.0]), np.array([1.0, 4.5]))
    0.125
    """
    if own.size == 0:
        return 0.0
    same = (own == other) | (np.isnan(own) & np.isnan(other))
    plain = np.isfinite(own) & np.isfinite(other)
    if not (same | plain).all():
        return float("inf")
    off = np.where(same, 0.0, np.abs(np.where(plain, own, 0.0) - np.where(plain, other, 0.0)))
    size = np.abs(np.where(plain, own, 0.0))
    if own.ndim > 1:
        off, size = (x.reshape(len(x), -1).max(1) for x in (off, size))
    return float(np.max(np.where(off > 0, off / np.maximum(size, np.finfo(float).tiny), 0.0)))
