"""Attack every command that writes: ``python -m tests.campaigns.kills.run --kills 100``.

One process imports everything once, and forks a child per run. The same seed draws the same
moments; what is under way at a moment depends on the machine.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch

from attnmargin.base.files import write_whole
from attnmargin.base.seeds import seed_of
from attnmargin.version import VERSION
from tests.campaigns.kills.arena import Arena, Counts, dump
from tests.campaigns.kills.events import CLOCK, EVENTS
from tests.campaigns.kills.targets import TARGETS, Target, write_inputs

_RESULTS = Path(__file__).parents[1] / "results" / "kills.json"
_FAKETIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1")
_COLUMNS = ("runs", "killed", "files", "torn", "lost", "different", "unclear", "orphans",
            "refused", "leftovers")  # fmt: skip


def main() -> int:
    """Run the campaign; the exit code is 1 if anything was not as it must be."""
    given = _parser().parse_args()
    torch.set_num_threads(1)  # threads do not survive a fork
    wrong = 0
    with tempfile.TemporaryDirectory(dir=given.scratch) as folder:
        for target in TARGETS:
            if target.name in given.commands:
                rows = _attack(target, given, Path(folder))
                wrong += sum(row["wrong"] for row in rows.values())
    if "clock set" in given.events and given.faketime.is_file() and CLOCK not in os.environ:
        wrong += _with_faketime(given)
    print(f"{wrong} wrong: {given.out}")
    return int(wrong > 0)


def _save(given: argparse.Namespace, rows: dict[str, dict[str, Any]]) -> None:
    """Write the rows of these commands and events; other rows of the file stay."""
    old = json.loads(given.out.read_text()) if given.out.exists() else {"commands": {}}
    known = old["commands"]
    for name, events in rows.items():
        known[name] = known.get(name, {}) | events
    record = _about(given) | {"commands": known}
    given.out.parent.mkdir(parents=True, exist_ok=True)
    write_whole(given.out, lambda stream: stream.write(dump(record).encode()))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    names = [target.name for target in TARGETS]
    parser.add_argument("--commands", nargs="+", choices=names, default=names)
    parser.add_argument("--events", nargs="+", choices=list(EVENTS), default=list(EVENTS))
    parser.add_argument("--kills", type=int, default=100, help="per command, two times")
    parser.add_argument(
        "--programs",
        type=int,
        default=1,
        help="programs killed per command, four times as many with helpers",
    )
    parser.add_argument("--rounds", type=int, default=12, help="of each other event")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--scratch", type=Path, help="where the commands write")
    parser.add_argument("--faketime", type=Path, default=_FAKETIME, help="sets the clock, if there")
    parser.add_argument("--out", type=Path, default=_RESULTS)
    return parser


def _attack(target: Target, given: argparse.Namespace, scratch: Path) -> dict[str, Any]:
    """Let all events happen to one command."""
    inputs, older = (_inputs(scratch, seed, target.name) for seed in (0, 1))
    arena = Arena(target, inputs, older, scratch)
    rows = {}
    for event in given.events:
        start = time.monotonic()
        random = np.random.default_rng(seed_of("campaign", target.name, event, base=given.seed))
        counts = EVENTS[event](arena, _count(event, target, given), random)
        seconds = round(time.monotonic() - start, 1)
        about = {"wrong": counts.wrong, "seconds": seconds, "date": _today()}
        rows[event] = counts.record() | about
        _save(given, {target.name: {event: rows[event]}})
        _tell(target.name, event, counts, seconds)
    return rows


def _count(event: str, target: Target, given: argparse.Namespace) -> int:
    if event == "killed programs":
        return int(given.programs * (4 if target.parallel else 1))
    return int(given.kills if event.startswith("killed") else given.rounds)


def _inputs(scratch: Path, seed: int, name: str) -> Path:
    """Write the inputs once; those of heads only where they are needed, for they take long."""
    folder = scratch / f"inputs-{seed}{'-heads' * (name == 'heads')}"
    if not folder.exists():
        write_inputs(folder, seed, heads=name == "heads")
    return folder


def _tell(name: str, event: str, counts: Counts, seconds: float) -> None:
    cells = ", ".join(f"{column} {getattr(counts, column)}" for column in _COLUMNS)
    print(f"{name}, {event}: {cells} ({seconds:.0f} s)", flush=True)
    for note in counts.notes[:5]:
        print(f"    {note}", flush=True)


def _today() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d")


def _about(given: argparse.Namespace) -> dict[str, Any]:
    return {
        "date": _today(),
        "seed": given.seed,
        "system": f"{platform.system()} {platform.release()}, {os.cpu_count()} cores",
        "versions": {"attnmargin": VERSION, "torch": torch.__version__, "numpy": np.__version__,
                     "python": platform.python_version()},
    }  # fmt: skip


def _with_faketime(given: argparse.Namespace) -> int:
    """Repeat the clock's event in a process whose clock libfaketime sets; count what is wrong."""
    with _clock_file(given.faketime) as (path, clock):
        words = ["--events", "clock set", "--commands", *given.commands, "--seed", str(given.seed),
                 "--rounds", str(given.rounds), "--out", str(path)]  # fmt: skip
        program = [sys.executable, "-m", "tests.campaigns.kills.run", *words]
        done = subprocess.run(program, env=os.environ | clock, check=False)
        if done.returncode not in (0, 1):
            raise RuntimeError(f"status {done.returncode} with libfaketime")
        found = json.loads(path.read_text())["commands"]
    today = {"date": _today()}  # the clock of that process was wrong
    rows = {n: {"clock set, by libfaketime": e["clock set"] | today} for n, e in found.items()}
    _save(given, rows)
    return sum(row["wrong"] for events in rows.values() for row in events.values())


@contextmanager
def _clock_file(library: Path) -> Iterator[tuple[Path, dict[str, str]]]:
    """Yield a place for results, and the environment in which a file sets the clock."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "clock")
        file.write_text("+0\n")
        yield Path(folder, "results.json"), {
            CLOCK: str(file), "LD_PRELOAD": str(library), "FAKETIME_TIMESTAMP_FILE": str(file),
            "FAKETIME_NO_CACHE": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }  # fmt: skip


if __name__ == "__main__":
    raise SystemExit(main())
