"""Hunt for wrong answers: ``python -m tests.hunt.run --minutes 5``.

Every area asks the library questions whose answers an independent oracle knows. The same seed
always gives the same cases. Each disagreement is saved as an .npz file with its instance, and as a
line of ``disagreements.jsonl``.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tests.hunt import AREAS
from tests.hunt.answers import Answer, Case

_COUNTS = ("cases", "right", "wrong", "untested")
_KINDS = {True: "adversarial", False: "ordinary"}


@dataclass
class Tally:
    """What an area found."""

    area: str
    cases: int = 0
    right: int = 0
    wrong: int = 0
    untested: int = 0
    seconds: float = 0.0
    asked: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_KINDS.values(), 0))
    undecided: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_KINDS.values(), 0))

    def add(self, case: Case) -> None:
        """Count a case."""
        kind = _KINDS[case.adversarial]
        self.cases += 1
        self.asked[kind] += 1
        self.right += case.answer == Answer.RIGHT
        self.wrong += case.answer == Answer.WRONG
        self.untested += not case.tested
        self.undecided[kind] += case.answer == Answer.UNDECIDED

    def share(self, kind: str) -> float:
        """Undecided cases of a kind, in per cent."""
        return 100.0 * self.undecided[kind] / max(self.asked[kind], 1)

    def join(self, other: "Tally") -> None:
        """Add the counts of another part of the same area."""
        for name in _COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.seconds = max(self.seconds, other.seconds)
        for own, more in ((self.asked, other.asked), (self.undecided, other.undecided)):
            for kind, count in more.items():
                own[kind] += count

    def record(self) -> dict[str, Any]:
        """The row of the table, by name."""
        shares = {f"undecided_{kind}_percent": self.share(kind) for kind in _KINDS.values()}
        own = {
            name: getattr(self, name) for name in ("area", "cases", "right", "wrong", "untested")
        }
        return {**own, **shares, "seconds": round(self.seconds, 1)}


def cases_of(area: str, seed: int, count: int, seconds: float = float("inf")) -> Iterator[Case]:
    """Yield the first cases of an area, until their number or the time is reached."""
    start, done, threads = time.monotonic(), 0, torch.get_num_threads()
    torch.set_num_threads(1)  # the instances are tiny
    try:
        for batch in AREAS[area](seed):
            yield from batch[: count - done]
            done += len(batch)
            if done >= count or time.monotonic() - start > seconds:
                return
    finally:
        torch.set_num_threads(threads)


def _save(case: Case, folder: Path, name: str) -> None:
    """Write the instance and one line about it."""
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / f"{name}.npz", **case.arrays)  # type: ignore[arg-type]
    line = {"file": f"{name}.npz", "family": case.family, "about": case.about}
    with (folder / "disagreements.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")


def _hunt(area: str, seed: int, count: int, seconds: float, out: Path | None) -> Tally:
    tally, start, shown = Tally(area), time.monotonic(), 0.0
    for case in cases_of(area, seed, count, seconds):
        tally.add(case)
        if case.answer == Answer.WRONG and out is not None:
            _save(case, out, f"{area}-{seed}-{tally.cases - 1}")
        tally.seconds = time.monotonic() - start
        if sys.stderr.isatty() and tally.seconds - shown > 0.5:
            shown = tally.seconds
            print(f"\r{area}: {tally.cases:,} cases, {tally.wrong} wrong", end="", file=sys.stderr)
    if shown:
        print("\r" + " " * 60 + "\r", end="", file=sys.stderr)
    return tally


def table(tallies: list[Tally]) -> str:
    """Write one line per area."""
    head = ("area", "cases", "right", "wrong", "untested", "undecided: adversarial", "ordinary",
            "seconds")  # fmt: skip
    lines = [head]
    for tally in tallies:
        shares = (f"{tally.share(kind):.2f} %" for kind in _KINDS.values())
        counts = (f"{getattr(tally, name):,}" for name in _COUNTS)
        lines.append((tally.area, *counts, *shares, f"{tally.seconds:.0f}"))  # type: ignore[arg-type]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(w) if i == 0 else cell.rjust(w)
                  for i, (cell, w) in enumerate(zip(line, widths, strict=True)))
        for line in lines
    )  # fmt: skip


def _spread(area: str, given: argparse.Namespace, seconds: float) -> Tally:
    """Hunt in one area with several processes; the k-th uses seed + k."""
    if given.jobs == 1:
        return _hunt(area, given.seed, given.cases, seconds, given.out)
    share = -(-given.cases // given.jobs)
    parts = [(area, given.seed + k, share, seconds, given.out) for k in range(given.jobs)]
    with ProcessPoolExecutor(given.jobs, get_context("spawn")) as pool:
        tallies = list(pool.map(_hunt, *zip(*parts, strict=True)))
    for other in tallies[1:]:
        tallies[0].join(other)
    return tallies[0]


def _record(path: Path, tallies: list[Tally], seed: int) -> None:
    """Write the rows of these areas; rows of others stay."""
    rows = json.loads(path.read_text()) if path.exists() else {}
    rows |= {tally.area: tally.record() | {"seed": seed} for tally in tallies}
    ordered = {area: rows[area] for area in AREAS if area in rows}
    path.write_text(json.dumps(ordered, indent=1) + "\n")


def main() -> int:
    """Run the areas; the exit code is 1 if an answer is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--area", action="append", choices=list(AREAS), help="all by default")
    parser.add_argument("--cases", type=int, default=100_000, help="most cases per area")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="for all areas")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="processes, with seeds that follow")
    parser.add_argument("--out", type=Path, help="folder for the disagreements")
    parser.add_argument("--json", type=Path, help="file of the table, by area")
    given = parser.parse_args()
    areas = given.area or list(AREAS)
    seconds = 60.0 * given.minutes / len(areas)
    tallies = []
    for area in areas:
        tallies.append(_spread(area, given, seconds))
        print(table(tallies[-1:]), flush=True)
    if len(tallies) > 1:
        print("\n" + table(tallies))
    if given.json is not None:
        _record(given.json, tallies, given.seed)
    return int(any(tally.wrong for tally in tallies))


if __name__ == "__main__":
    raise SystemExit(main())
