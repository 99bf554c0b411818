"""Fuzz the readers: ``python -m tests.campaigns.fuzz.run --minutes 60``.

Every reader gets files made from valid ones by mutations that know the format. With atheris,
mutations that reach new lines of the package are kept and mutated further. A reader must answer or
say one sentence: no traceback, no warning, no hang, no more than 3 GiB. Each defect is saved with
its input, once per cause.
"""

import argparse
import hashlib
import json
import os
import platform
import resource
import shutil
import subprocess
import sys
import time
from collections import Counter, deque
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any, final

from tests.campaigns.fuzz.values import changed_bytes

NAMES = ("npz", "solutions", "sequences", "tables", "parquet", "safetensors", "specs", "sweeps",
         "models")  # fmt: skip
_LONGEST_INPUT = 1 << 17
_INSTRUMENTED = ["attnmargin", "zipfile", "json", "csv", "tomllib", "numpy.lib._format_impl"]


@final
@dataclass
class Tally:
    """What one process counted, saved every few seconds."""

    path: Path
    guided: bool
    kinds: Counter[str] = field(default_factory=Counter)
    defects: Counter[str] = field(default_factory=Counter)
    saved: float = 0.0

    def save(self) -> None:
        """Write the counts."""
        used = resource.getrusage(resource.RUSAGE_SELF)
        record = {
            "executions": sum(self.kinds.values()), **self.kinds,
            "cpu_minutes": (used.ru_utime + used.ru_stime) / 60, "guided": self.guided,
            "peak_mib": used.ru_maxrss / 1024, "defects": self.defects,
        }  # fmt: skip
        self.path.with_suffix(".new").write_text(json.dumps(record))
        self.path.with_suffix(".new").rename(self.path)
        self.saved = time.monotonic()


@final
class Worker:
    """Fuzzes one reader until its time is over."""

    def __init__(self, given: argparse.Namespace) -> None:
        from tests.campaigns.fuzz.judge import bound_memory
        from tests.campaigns.fuzz.readers import READERS

        self.name, self.files, self.out = given.reader[0], given.files, given.out
        self.reader, self.seed = READERS[self.name], given.seed
        self.end, self.rng = time.monotonic() + given.seconds, Random(self.seed)
        self.place = self.out / f"{self.name}-{self.seed}"
        shutil.rmtree(self.place, ignore_errors=True)
        self.place.mkdir(parents=True)
        own = [] if given.seeds is None else sorted((given.seeds / self.name).iterdir())
        self.seeds = [path.read_bytes() for path in own] or self.reader.seeds()
        for data in self.seeds:
            self.one(data, first=True)
        if not self.files:
            self._warm_up()
        bound_memory()

    def _warm_up(self) -> None:
        """Run every command once, which compiles its kernels."""
        from tests.campaigns.fuzz.judge import run_command

        path = self.reader.write(self.seeds[0], self.place)
        for line in self.reader.commands:
            run_command(line, path)

    def begin(self, guided: bool) -> None:
        """Start to count."""
        self.tally = Tally(self.out / f"{self.place.name}.json", guided)

    def one(self, data: bytes, first: bool = False) -> None:
        """Judge one case, and save it if it is a defect."""
        from tests.campaigns.fuzz.judge import ANSWER, DEFECT, judge

        if not first and time.monotonic() > self.end:
            self.tally.save()
            shutil.rmtree(self.place)
            os._exit(0)
        (self.out / f"{self.place.name}.current").write_bytes(data)
        verdict = judge(self.reader, data, self.place, None if self.files else self.rng)
        if first:
            if verdict.kind != ANSWER:
                raise AssertionError(f"a valid file of {self.name}: {verdict}")
            return
        self.tally.kinds[verdict.kind] += 1
        if verdict.kind == DEFECT:
            self.tally.defects[verdict.about] += 1
            if self.tally.defects[verdict.about] == 1:
                self._save(data, verdict.about, verdict.trace)
        if time.monotonic() > self.tally.saved + 2.0:
            self.tally.save()

    def _save(self, data: bytes, about: str, trace: str) -> None:
        mark = hashlib.blake2b(about.encode(), digest_size=6).hexdigest()
        path = self.out / f"{self.name}-{mark}{self.reader.suffix or '.folder'}"
        path.write_bytes(data)
        path.with_suffix(".trace").write_text(f"{about}\n{trace}", errors="replace")

    def mutated(self, data: bytes, rng: Random) -> bytes:
        """Change a case; sometimes begin again with a valid file."""
        start = rng.choice(self.seeds) if rng.random() < 0.5 or not data else data
        try:
            return self.reader.mutate(start, rng)[:_LONGEST_INPUT]
        except Exception:  # what was mutated before may make no sense to a mutation
            return changed_bytes(start, rng)

    def plain(self) -> None:
        """Fuzz by mutations alone."""
        self.begin(guided=False)
        held: deque[bytes] = deque(self.seeds, maxlen=200)
        while True:
            data = self.mutated(self.rng.choice(held), self.rng)
            if self.rng.random() < 0.05:
                held.append(data)
            self.one(data)

    def guided(self, atheris: Any) -> None:
        """Fuzz by mutations, keeping those that reach new lines."""
        self.begin(guided=True)
        corpus = self.place / "corpus"
        corpus.mkdir()
        for k, data in enumerate(self.seeds):
            (corpus / str(k)).write_bytes(data)

        def mutate(data: bytes, most: int, number: int) -> bytes:
            return self.mutated(data, Random(number))[:most]

        words = [str(corpus), f"-seed={self.seed + 1}", f"-max_len={_LONGEST_INPUT}", "-timeout=0",
                 "-rss_limit_mb=0", "-verbosity=0", "-handle_segv=0", "-handle_abrt=0",
                 "-len_control=0"]  # fmt: skip
        atheris.Setup([sys.argv[0], *words], self.one, custom_mutator=mutate)
        atheris.Fuzz()


def work(given: argparse.Namespace, guided: bool) -> None:
    """Fuzz one reader in this process, which ends with it."""
    if not guided:
        Worker(given).plain()
    import atheris

    with atheris.instrument_imports(include=_INSTRUMENTED, exclude=_kernels()):
        import tests.campaigns.fuzz.judge  # noqa: F401 - and with it the package
    Worker(given).guided(atheris)


def _kernels() -> list[str]:
    """Name the modules of compiled functions: numba does not compile what is instrumented."""
    found = find_spec("attnmargin")
    assert found is not None
    home = Path((found.submodule_search_locations or [""])[0])
    paths = [p for p in home.rglob("*.py") if "attnmargin.base.kernels import" in p.read_text()]
    parts = [path.relative_to(home.parent).with_suffix("").parts for path in paths]
    # What kernels compile of plain Python stands in the schedule.
    others = ["attnmargin.base.kernels", "attnmargin.solvers.interior.schedule"]
    return [*others, *map(".".join, parts)]


def _fuzz(name: str, given: argparse.Namespace, guided: bool) -> list[dict[str, Any]]:
    """Fuzz one reader in processes of its own: one that dies is a defect, and another follows."""
    end, seed, parts = time.monotonic() + given.seconds, given.seed, []
    while (left := end - time.monotonic()) > 1.0:
        words = ["--worker", "--reader", name, "--seconds", left, "--seed", seed, "--out",
                 given.out, "--engine", "atheris" if guided else "plain"]  # fmt: skip
        with (given.out / f"{name}-{seed}.log").open("wb") as log:
            line = [sys.executable, "-m", "tests.campaigns.fuzz.run", *map(str, words)]
            line += ["--files"] * given.files
            line += [] if given.seeds is None else ["--seeds", str(given.seeds)]
            done = subprocess.run(line, check=False, stderr=log, stdout=log)
        counts = given.out / f"{name}-{seed}.json"
        record = json.loads(counts.read_text()) if counts.exists() else {}
        if done.returncode:
            with suppress(FileNotFoundError):
                (given.out / f"{name}-{seed}.current").rename(given.out / f"{name}-{seed}.died")
            record.setdefault("defects", {})[f"the process died: {done.returncode}"] = 1
        parts.append(record)
        seed += 1000
    return parts


def joined(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Add the counts of several processes of one reader."""
    total: dict[str, Any] = {"executions": 0, "answer": 0, "sentence": 0, "defect": 0,
                             "cpu_minutes": 0.0, "guided_executions": 0, "peak_mib": 0}  # fmt: skip
    defects: Counter[str] = Counter()
    for part in parts:
        for key in ("executions", "answer", "sentence", "defect", "cpu_minutes"):
            total[key] += part.get(key, 0)
        guided = part.get("executions", 0) if part.get("guided") else 0
        total["guided_executions"] += part.get("guided_executions", guided)
        total["peak_mib"] = max(total["peak_mib"], round(part.get("peak_mib", 0)))
        defects.update(part.get("defects", {}))
    total["cpu_minutes"] = round(total["cpu_minutes"], 1)
    return total | {"defects": dict(defects)}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reader", action="append", choices=NAMES, help="all by default")
    parser.add_argument("--minutes", type=float, default=1.0, help="for each reader")
    parser.add_argument("--seconds", type=float, help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--engine", choices=("atheris", "plain"), help="atheris if it is installed")
    parser.add_argument("--files", action="store_true", help="read files, and run no commands")
    parser.add_argument("--seeds", type=Path, help="folder of valid files; made anew by default")
    parser.add_argument("--out", type=Path, default=Path("fuzz"), help="folder for the defects")
    parser.add_argument("--json", type=Path, help="file of the table, to which counts are added")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    return parser


def main() -> int:
    """Fuzz; the exit code is 1 if there is a defect."""
    given = _parser().parse_args()
    guided = (given.engine or ("atheris" if find_spec("atheris") else "plain")) == "atheris"
    given.seconds = 60.0 * given.minutes if given.seconds is None else given.seconds
    given.out.mkdir(parents=True, exist_ok=True)
    if given.worker:
        work(given, guided)
    table = {}
    for name in given.reader or NAMES:
        table[name] = joined(_fuzz(name, given, guided))
        print(name, json.dumps(table[name]), flush=True)
    if given.json is not None:
        record(given.json, table)
    return int(any(row["defects"] for row in table.values()))


def record(path: Path, table: dict[str, Any]) -> None:
    """Add counts to a table on disk."""
    before = json.loads(path.read_text()) if path.exists() else {"readers": {}}
    rows = before["readers"]
    for name, row in table.items():
        rows[name] = joined([rows[name], row]) if name in rows else row
    own = {"date": f"{datetime.now(UTC):%Y-%m-%d}", "python": platform.python_version()}
    ordered = {name: rows[name] for name in NAMES if name in rows}
    path.write_text(json.dumps(own | {"readers": ordered}, indent=1) + "\n")


if __name__ == "__main__":
    raise SystemExit(main())
