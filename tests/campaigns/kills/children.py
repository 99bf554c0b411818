"""Runs of the command line in children of one warm process, and in programs of their own."""

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import final

from attnmargin.cli import main as cli

Hook = Callable[[], object]
# Events of the interpreter that change the folder.
_CHANGES = ("os.rename", "os.mkdir", "os.remove", "os.rmdir")


@final
@dataclass
class Child:
    """A command on its way."""

    pid: int
    started: float
    said: Path  # the stem of the files of standard output and standard error
    steps: int  # a pipe with one byte per change of the folder; -1 without

    def kill(self) -> bool:
        """Kill it; return whether it was still running."""
        os.kill(self.pid, signal.SIGKILL)
        return self.wait() == -signal.SIGKILL

    def wait(self) -> int:
        """Wait for its end; return its status, negative after a signal."""
        _, status = os.waitpid(self.pid, 0)
        if self.steps >= 0:
            os.close(self.steps)
        return os.waitstatus_to_exitcode(status)

    def wait_for_step(self, number: int) -> None:
        """Wait until it begins its change of that number, or ends."""
        while number > 0:
            seen = os.read(self.steps, number)
            if not seen:
                return
            number -= len(seen)

    @property
    def out(self) -> str:
        """What it wrote on standard output."""
        return self.said.with_suffix(".out").read_text(encoding="utf-8", errors="replace")

    @property
    def err(self) -> str:
        """What it wrote on standard error."""
        return self.said.with_suffix(".err").read_text(encoding="utf-8", errors="replace")


def run_here(words: list[str]) -> int:
    """Run a command in this process, so that its children find everything imported."""
    before, sys.argv = sys.argv, ["attnmargin", *words]
    try:
        cli.main()
    except SystemExit as stopped:
        return int(str(stopped.code or 0))
    finally:
        sys.argv = before
    raise AssertionError("the command line always exits")


def fork(words: list[str], folder: Path, name: str = "child", first: Hook | None = None) -> Child:
    """Start a command in a child of this process, in a session of its own.

    Args:
        folder: where it runs.
        first: called in the child before the command begins.
    """
    said, (read, steps) = folder / name, os.pipe()
    started = time.monotonic()
    pid = os.fork()
    if pid == 0:
        status = 70
        try:
            os.setsid()
            os.close(read)
            _redirect(said)
            os.chdir(folder)
            sys.addaudithook(_Teller(steps))
            if first is not None:
                first()
            status = run_here(words)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    os.close(steps)
    return Child(pid, started, said, read)


def start_program(words: list[str], folder: Path, name: str = "program") -> Child:
    """Start a command as users do, as a program in a session of its own."""
    said = folder / name
    with said.with_suffix(".out").open("wb") as out, said.with_suffix(".err").open("wb") as err:
        program = [sys.executable, "-m", "attnmargin", *words]
        started = time.monotonic()
        process = subprocess.Popen(
            program, cwd=folder, stdout=out, stderr=err, stdin=subprocess.DEVNULL,
            start_new_session=True, env=_environment(),
        )  # fmt: skip
    process.returncode = 0  # its end is waited for elsewhere
    return Child(process.pid, started, said, -1)


def pause(seconds: float) -> None:
    """Wait; unlike time.sleep, which waits for a point in time, also while the clock is changed."""
    select.poll().poll(1000.0 * seconds)


def session(sid: int) -> list[int]:
    """List the living processes of a session."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == sid and fields[0] not in "ZX":
                found.append(int(entry.name))
    return found


def _environment() -> dict[str, str]:
    """Return the environment with the paths of this process."""
    return os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


def _redirect(said: Path) -> None:
    for number, suffix in ((1, ".out"), (2, ".err")):
        handle = os.open(said.with_suffix(suffix), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        os.dup2(handle, number)
        os.close(handle)
    # Streams of their own: those of this process may hold text that was not written yet.
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False)


@final
class _Teller:
    """Writes a byte before every change of the folder."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe

    def __call__(self, event: str, arguments: tuple[object, ...]) -> None:
        if event in _CHANGES or (event == "open" and _writes(arguments)):
            os.write(self._pipe, b".")


def _writes(arguments: tuple[object, ...]) -> bool:
    flags = arguments[2]
    return isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR))
