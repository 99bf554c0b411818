"""What an area of the hunt found, and the table of all."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from attnmargin.sweeps import Sweep
from tests.hunt.answers import Answer, Case

COUNTS = ("cases", "right", "wrong", "untested")
KINDS = {True: "adversarial", False: "ordinary"}


@dataclass
class Tally:
    """What an area found."""

    area: str
    cases: int = 0
    right: int = 0
    wrong: int = 0
    untested: int = 0
    seconds: float = 0.0
    asked: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS.values(), 0))
    undecided: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS.values(), 0))

    def add(self, case: Case) -> None:
        """Count a case."""
        kind = KINDS[case.adversarial]
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
        for name in COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.seconds = max(self.seconds, other.seconds)
        for own, more in ((self.asked, other.asked), (self.undecided, other.undecided)):
            for kind, count in more.items():
                own[kind] += count

    def record(self) -> dict[str, Any]:
        """The row of the table, by name."""
        shares = {f"undecided_{kind}_percent": self.share(kind) for kind in KINDS.values()}
        own = {
            name: getattr(self, name) for name in ("area", "cases", "right", "wrong", "untested")
        }
        return {**own, **shares, "seconds": round(self.seconds, 1)}


def table(tallies: list[Tally]) -> str:
    """Write one line per area."""
    head = ("area", "cases", "right", "wrong", "untested", "undecided: adversarial", "ordinary",
            "seconds")  # fmt: skip
    lines = [head]
    for tally in tallies:
        shares = (f"{tally.share(kind):.2f} %" for kind in KINDS.values())
        counts = (f"{getattr(tally, name):,}" for name in COUNTS)
        lines.append((tally.area, *counts, *shares, f"{tally.seconds:.0f}"))  # type: ignore[arg-type]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(w) if i == 0 else cell.rjust(w)
                  for i, (cell, w) in enumerate(zip(line, widths, strict=True)))
        for line in lines
    )  # fmt: skip


def tallies_of(found: Sweep, areas: list[str]) -> list[Tally]:
    """Add up the parts of every area."""
    tallies = {area: Tally(area) for area in areas}
    for settings, arrays in found.arrays():
        kinds = KINDS.values()
        own = Tally(settings["area"])
        for name in COUNTS:
            setattr(own, name, int(arrays[name][0]))
        own.seconds = float(arrays["seconds"][0])
        own.asked = {kind: int(arrays[f"asked {kind}"][0]) for kind in kinds}
        own.undecided = {kind: int(arrays[f"undecided {kind}"][0]) for kind in kinds}
        tallies[own.area].join(own)
    return list(tallies.values())


def record(path: Path, tallies: list[Tally], seed: int, order: list[str]) -> None:
    """Write the rows of these areas; rows of others stay."""
    rows = json.loads(path.read_text()) if path.exists() else {}
    rows |= {tally.area: tally.record() | {"seed": seed} for tally in tallies}
    ordered = {area: rows[area] for area in order if area in rows}
    path.write_text(json.dumps(ordered, indent=1) + "\n")
