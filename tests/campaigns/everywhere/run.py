"""The same answers everywhere: ``python -m tests.campaigns.everywhere.run``.

Every setting answers the battery in a process of its own, and is compared with the first. Other
Pythons and packages are environments on this machine: ``--environment NAME=PROGRAM``, where PROGRAM
is a Python or a command that runs one. Answers from elsewhere, such as a GPU, are compared from
their files: ``--file NAME=PART.npz,PART.npz``. Rows of settings that are not run again stay in the
table.
"""

import argparse
import json
import os
import platform
import shlex
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from attnmargin.base.files import write_whole
from tests.campaigns.everywhere.compare import compare, read_answers

RESULTS = Path(__file__).parents[1] / "results" / "everywhere.json"
PROGRAM = ["-m", "tests.campaigns.everywhere.answers"]
REFERENCE = "1 thread, whole batches"
# What differs from the reference, by name.
SETTINGS: dict[str, list[str]] = {
    REFERENCE: ["--threads", "1"],
    "the same again": ["--threads", "1"],
    "2 threads": ["--threads", "2"],
    "4 threads": ["--threads", "4"],
    "batches of 1": ["--threads", "1", "--chunk", "1"],
    "batches of 7": ["--threads", "1", "--chunk", "7"],
    "batches of 64": ["--threads", "1", "--chunk", "64"],
    "numba absent": ["--threads", "1", "--without", "numba"],
}


def answers(folder: Path, name: str, words: list[str], python: str = "") -> Path:
    """Answer the battery in a process; return the file."""
    out = folder / f"{name.replace(' ', '-').replace('/', '-')}.npz"
    program = shlex.split(python) if python else [sys.executable]
    places = {"NUMBA_CACHE_DIR": str(folder / "cache" / name)} if python else {}
    subprocess.run([*program, *PROGRAM, "--out", str(out), *words],
                   check=True, env={**os.environ, **places})  # fmt: skip
    return out


def row(reference: Path, files: list[Path], command: str) -> dict[str, Any]:
    """Compare one setting with the reference."""
    own = read_answers(*files)
    about = {name[1:]: str(value) for name, value in own.items() if name[0] == "_"}
    return {**compare(read_answers(reference), own).record(), "versions": about, "command": command,
            "when": datetime.now(UTC).strftime("%Y-%m-%d")}  # fmt: skip


def main() -> int:
    """Run settings; the exit code is 1 if an answer differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--setting", action="append", choices=list(SETTINGS), help="all by default")
    parser.add_argument("--environment", action="append", default=[], metavar="NAME=PROGRAM")
    parser.add_argument("--file", action="append", default=[], metavar="NAME=FILES")
    parser.add_argument("--folder", type=Path, help="keep the answers here")
    parser.add_argument("--small", action="store_true", help="a smaller battery, saved nowhere")
    parser.add_argument("--jobs", type=int, default=1, help="settings that answer at a time")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        rows = _rows(given, given.folder or Path(temporary))
    return int(any(own["wrong"] for own in rows.values()))


def _rows(given: argparse.Namespace, folder: Path) -> dict[str, Any]:
    folder = folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    plain, size = " ".join(["python", *PROGRAM]), ["--small"] if given.small else []
    asked = {name: (SETTINGS[name], "") for name in (REFERENCE, *(given.setting or SETTINGS))}
    for pair in given.environment:
        name, _, python = pair.partition("=")
        asked[name] = SETTINGS[REFERENCE], python
    rows: dict[str, Any] = {}

    def add(name: str, command: str, *own: Path) -> None:
        rows[name] = row(reference, list(own), command)
        print(f"{name}: {_words(rows[name])}", flush=True)
        if not given.small:
            _save(rows)

    with ThreadPoolExecutor(given.jobs) as pool:
        files = {
            name: pool.submit(answers, folder, name, [*words, *size], python)
            for name, (words, python) in asked.items()
        }
        reference = files[REFERENCE].result()
        for name, (words, _) in asked.items():
            add(name, f"{plain} {shlex.join(words)}", files[name].result())
    for pair in given.file:
        name, _, own = pair.partition("=")
        add(name, plain, *map(Path, own.split(",")))
    return rows


def _words(own: dict[str, Any]) -> str:
    """Say what differs."""
    counts = f"{own['words']:,} words and {own['numbers']:,} numbers"
    lines = [f"  {line}" for line in own["wrong"]]
    missing = f", {len(own['missing'])} answers missing" if own["missing"] else ""
    said = f"{counts}, numbers at most {own['worst']:.1e} apart ({own['where']}){missing}"
    return "\n".join([said, *lines])


def _save(rows: dict[str, Any]) -> None:
    """Write the rows of these settings; others stay."""
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"rows": {}}
    record = {"processor": platform.processor() or platform.machine(),
              "reference": REFERENCE, "rows": {**known["rows"], **rows}}  # fmt: skip
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(record, indent=1, ensure_ascii=False) + "\n"
    write_whole(RESULTS, lambda stream: stream.write(text.encode()))


if __name__ == "__main__":
    raise SystemExit(main())
