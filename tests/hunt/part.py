"""One part of a hunt: some cases of an area, as a point of a sweep."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
import torch

from tests.hunt import AREAS
from tests.hunt.answers import Answer, Case
from tests.hunt.tally import COUNTS, KINDS, Tally


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


def save(case: Case, folder: Path, name: str) -> None:
    """Write the instance and one line about it."""
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / f"{name}.npz", **case.arrays)  # type: ignore[arg-type]
    line = {"file": f"{name}.npz", "family": case.family, "about": case.about}
    with (folder / "disagreements.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")


@final
@dataclass(frozen=True)
class Part:
    """Hunts in one area; the k-th part has seed + k. Disagreements go to the folder ``out``."""

    out: Path | None = None

    @property
    def identity(self) -> str:
        """The name for points, which do not depend on where disagreements go."""
        return "tests.hunt"

    def __call__(
        self, *, area: str, part: int, cases: int, seconds: float | None, trials: int, seed: int
    ) -> dict[str, Any]:
        """Ask all questions of the part; return the counts, ``(1,)`` each."""
        tally, start = Tally(area), time.monotonic()
        limit = float("inf") if seconds is None else seconds
        for case in cases_of(area, seed + part, cases, limit):
            tally.add(case)
            if case.answer == Answer.WRONG and self.out is not None:
                save(case, self.out, f"{area}-{seed + part}-{tally.cases - 1}")
        found: dict[str, Any] = {name: getattr(tally, name) for name in COUNTS}
        for kind in KINDS.values():
            found |= {f"asked {kind}": tally.asked[kind]}
            found |= {f"undecided {kind}": tally.undecided[kind]}
        found["seconds"] = time.monotonic() - start
        return {name: np.array([value] * trials) for name, value in found.items()}
