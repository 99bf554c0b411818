"""A command, the folder that it runs in, and what an undisturbed run of it writes."""

import io
import json
import os
import shutil
import subprocess
import time
from collections.abc import Mapping
from contextlib import chdir, redirect_stdout
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, final

import numpy as np

from tests.campaigns.kills.children import Child, Hook, fork, run_here, start_program
from tests.campaigns.kills.oracle import TornError, digest, files_of, history, leftovers, numbers
from tests.campaigns.kills.targets import Target

Random = np.random.Generator
_CHECKPOINT = ("model.safetensors", "run.json")


@final
@dataclass
class Counts:
    """What was seen after the events of one kind.

    Attributes:
        files: files with a final name that were read to their end.
        torn: files that were not whole.
        lost: finished work that was gone, or computed again.
        different: files or answers with other numbers than those of an undisturbed run.
        unclear: ends with a traceback, more than one sentence or an unexpected status.
        orphans: processes that outlived their killed parent by a minute.
        outlived: the seconds by which the slowest other process outlived its parent.
        refused: errors in one sentence, with status 2.
        leftovers: the most temporary files that were there at once.
    """

    runs: int = 0
    killed: int = 0
    files: int = 0
    torn: int = 0
    lost: int = 0
    different: int = 0
    unclear: int = 0
    orphans: int = 0
    outlived: float = 0.0
    refused: int = 0
    leftovers: int = 0
    notes: list[str] = field(default_factory=list)

    @property
    def wrong(self) -> int:
        """How often something was not as it must be."""
        return self.torn + self.lost + self.different + self.unclear + self.orphans

    def note(self, what: str, words: str) -> None:
        """Count something that must not be."""
        setattr(self, what, getattr(self, what) + 1)
        self.notes.append(f"{what}: {words:.500}")

    def record(self) -> dict[str, Any]:
        """Return the counts by name; the notes only where there are some."""
        own = asdict(self) | {"outlived": round(self.outlived, 1)}
        return {name: value for name, value in own.items() if name != "notes" or value}


@final
@dataclass(frozen=True)
class Whole:
    """What an undisturbed run wrote and said."""

    folder: Path
    code: int
    numbers: Any
    digests: Mapping[str, str]
    epochs: list[Any]
    steps: int
    bytes: int


@final
class Arena:
    """A folder in which a command runs again and again."""

    def __init__(self, target: Target, inputs: Path, older_inputs: Path, scratch: Path) -> None:
        self.target, self._inputs, self._scratch = target, inputs, scratch / target.name
        self._warm(inputs)
        self.older = self._undisturbed(older_inputs, "older")
        self.whole = self._undisturbed(inputs, "whole")
        self.folder = self._scratch / "work"

    @property
    def out(self) -> Path:
        """Where the command writes."""
        return self.folder / "out"

    def clear(self, older: bool = False) -> None:
        """Begin anew, with the output of an older run or without."""
        _prepare(self.folder, self._inputs)
        if older and not self.target.resumes:
            shutil.copytree(self.older.folder, self.out, dirs_exist_ok=True)

    def start(self, first: Hook | None = None, name: str = "child", more: str = "") -> Child:
        """Start the command in a child."""
        return fork(self._words(more), self.folder, name, first)

    def start_program(self, more: str = "") -> Child:
        """Start the command as a program."""
        return start_program(self._words(more), self.folder)

    def end(self, child: Child, counts: Counts) -> None:
        """Wait for a run that nothing disturbs, and compare with the undisturbed one."""
        code = child.wait()
        self.seconds += 0.2 * (time.monotonic() - child.started - self.seconds)
        self.judge_whole(child, code, counts)

    def judge_whole(self, child: Child, code: int, counts: Counts, spare: int = 0) -> None:
        """Compare what a finished run wrote and said; ``spare`` temporary files may be left."""
        counts.runs += 1
        if code != self.whole.code:
            counts.note("unclear", f"status {code}: {child.err[-400:]}")
            return
        if numbers(child.out) != self.whole.numbers:
            counts.note("different", f"said {child.out:.300}")
        self.judge_files(counts)
        missing = self.whole.digests.keys() - files_of(self.out).keys()
        for name in missing:
            counts.note("lost", f"no {name}")
        if len(self.epochs()) != len(self.whole.epochs):
            counts.note("lost", f"{len(self.epochs())} epochs")
        if leftovers(self.out) > spare:
            counts.note("unclear", f"{leftovers(self.out)} temporary files after a whole run")

    def is_partial(self, child: Child, code: int) -> bool:
        """Test whether a run says that its answer is no, and names what is missing."""
        return code == 1 and bool(self.target.resumes and json.loads(child.out).get("missing"))

    def judge_error(self, child: Child, code: int, counts: Counts) -> None:
        """Check that a run that could not write ended with one sentence, and what it left."""
        counts.runs += 1
        counts.refused += 1
        said = child.err
        plain = said.startswith("attnmargin: ") and said.count("\n") == 1
        if code != 2 or not plain:
            counts.note("unclear", f"status {code}: {said[-400:]}")
        if self.out.is_dir():
            self.judge_files(counts)
            if leftovers(self.out):
                counts.note("unclear", "a temporary file after an error")

    def judge_files(self, counts: Counts) -> None:
        """Read every file with a final name: is it whole, and of this run or of the older one?"""
        counts.leftovers = max(counts.leftovers, leftovers(self.out))
        for name, path in files_of(self.out).items():
            counts.files += 1
            try:
                found = digest(path)
            except TornError as error:
                counts.note("torn", str(error))
                continue
            if self._is_checkpoint(name):
                continue
            if found not in (self.whole.digests.get(name), self.older.digests.get(name)):
                counts.note("different", name)
        epochs = [numbers(row) for row in self.epochs()]
        if epochs != self.whole.epochs[: len(epochs)]:
            counts.note("different", "epochs")

    def finished(self) -> set[str]:
        """Name the finished work, so that what is computed again has another name."""
        files = {path for pattern in self.target.finished for path in self.out.glob(pattern)}
        kept = {f"{p} {s.st_ino} {s.st_mtime_ns}" for p in files for s in [p.stat()]}
        return kept | {f"{k} {row}" for k, row in enumerate(self.epochs())}

    def epochs(self) -> list[str]:
        """Return the rows of the checkpoint, if there is one."""
        if self.target.training is None:
            return []
        return history(self.out / self.target.training / _CHECKPOINT[0])

    def _is_checkpoint(self, name: str) -> bool:
        own = self.target.training
        return own is not None and name in [f"{own}/{file}" for file in _CHECKPOINT]

    def _words(self, more: str = "") -> list[str]:
        return [*self.target.words.split(), *more.split(), "--json"]

    def _warm(self, inputs: Path) -> None:
        """Run once in this process: what it imports and compiles is there in all children."""
        self.folder = self._scratch / "warm"
        _prepare(self.folder, inputs)
        with chdir(self.folder), redirect_stdout(io.StringIO()):
            run_here(self._words())

    def _undisturbed(self, inputs: Path, name: str) -> Whole:
        self.folder = self._scratch / name
        _prepare(self.folder, inputs)
        child = fork(self._words(), self.folder)
        steps = 0
        while seen := os.read(child.steps, 1 << 16):
            steps += len(seen)
        code = child.wait()
        self.end_of_first(code, name)
        self.seconds = time.monotonic() - child.started
        files = files_of(self.out)
        return Whole(
            self.out, code, numbers(child.out), {k: digest(path) for k, path in files.items()},
            [numbers(row) for row in self.epochs()], steps,
            sum(path.stat().st_size for path in files.values()),
        )  # fmt: skip

    def end_of_first(self, code: int, name: str) -> None:
        """Stop the campaign if a command cannot even run undisturbed."""
        if code not in (0, 1):
            said = (self.folder / "child.err").read_text()
            raise RuntimeError(f"{self.target.name}, {name}: status {code}\n{said}")


def _prepare(folder: Path, inputs: Path) -> None:
    """Empty a folder, but for ``in``, a link, and an empty ``out``."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "out").mkdir(parents=True)
    (folder / "in").symlink_to(inputs.resolve())


def can_mount(folder: Path) -> bool:
    """Test whether this user may mount file systems."""
    folder.mkdir(parents=True, exist_ok=True)
    if not mount(folder, 1 << 16):
        return False
    unmount(folder)
    return True


def mount(folder: Path, size: int, files: int = 0, again: bool = False) -> bool:
    """Mount a small disk of a size in bytes, or change the size of the one that is mounted."""
    options = f"{'remount,' if again else ''}size={max(size, 4096)},nr_inodes={files}"
    words = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


def unmount(folder: Path) -> None:
    """Take a small disk away, at the latest when the last reader closes its file."""
    subprocess.run(["umount", "-l", str(folder)], check=True)


def dump(record: Any) -> str:
    """Write a record as text."""
    return json.dumps(record, indent=1, ensure_ascii=False) + "\n"
