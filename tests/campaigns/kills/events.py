"""What happens to commands: kills, full disks, lost folders, company, clocks that jump."""

import os
import resource
import shutil
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from tests.campaigns.kills.arena import Arena, Counts, Random, can_mount, mount, unmount
from tests.campaigns.kills.children import Child, pause, session

Event = Callable[[Arena, int, Random], Counts]
# A file that libfaketime reads; without it the clock of Python alone jumps.
CLOCK = "CAMPAIGN_CLOCK"
_WRITING = 0.003  # seconds within which a kill follows a change of the folder
_OFTEN = 5  # every so many kills, the command may run to its end
_PATIENCE = 60.0  # seconds: on a busy machine, a process takes long to import what it needs
_YEARS = 10 * 365 * 86400


def kills(arena: Arena, count: int, random: Random) -> Counts:
    """Kill at moments drawn uniformly from the time that the command takes."""

    def moment(child: Child) -> None:
        pause(random.uniform(0.0, 1.05 * arena.seconds))

    return _chain(arena, count, random, moment)


def kills_while_writing(arena: Arena, count: int, random: Random) -> Counts:
    """Kill within milliseconds of a change of the folder, any of them."""

    def moment(child: Child) -> None:
        child.wait_for_step(int(random.integers(1, arena.whole.steps + 1)))
        pause(random.uniform(0.0, _WRITING))

    return _chain(arena, count, random, moment)


def killed_programs(arena: Arena, count: int, random: Random) -> Counts:
    """Kill programs of their own, with processes that help, soon after they begin to write."""
    counts = Counts()
    for k in range(count):
        if k % 3 == 0 or not arena.target.resumes:
            arena.clear(older=True)
        before, seen = arena.finished(), _inodes(arena.out)
        child = arena.start_program(arena.target.parallel or "")
        while _inodes(arena.out) == seen and session(child.pid):
            pause(0.01)
        pause(random.uniform(0.0, arena.seconds))
        counts.killed += child.kill()
        _judge_orphans(child, counts)
        _judge_kill(arena, before, counts)
        before = arena.finished()
        if k % 3 == 2 or k == count - 1:
            arena.end(arena.start(), counts)
            _judge_kept(arena, before, counts)
    return counts


def full_disks(arena: Arena, count: int, random: Random) -> Counts:
    """Let the disk be full at any size, or out of files, or files limited in size."""
    counts, mounts = Counts(), can_mount(arena.folder / "out")
    need = 4096 + 2 * arena.whole.bytes
    for k in range(count):
        arena.clear()
        size = int(random.integers(0, need))
        if mounts and k % 3 < 2:
            _on_small_disk(arena, size if k % 3 == 0 else need, k, counts, random)
        else:
            limit = int(random.integers(0, max(arena.whole.bytes, 1)))
            _end_or_error(arena, arena.start(partial(_limit, limit)), counts)
            arena.end(arena.start(), counts)
    return counts


def lost_folders(arena: Arena, count: int, random: Random) -> Counts:
    """Remove the folder of the output while the command runs."""
    counts = Counts()
    for k in range(count):
        arena.clear(older=k % 2 == 0)
        child = arena.start()
        pause(random.uniform(0.0, arena.seconds))
        _remove(arena.out, at_once=k % 2 == 0)
        code = child.wait()
        counts.runs += 1
        if code != arena.whole.code and not arena.is_partial(child, code):
            arena.judge_error(child, code, counts)
        arena.out.mkdir(exist_ok=True)
        arena.end(arena.start(), counts)
    return counts


def company(arena: Arena, count: int, random: Random) -> Counts:
    """Run two processes with the same output; every second time, kill one of them."""
    counts = Counts()
    for k in range(count):
        arena.clear(older=k % 4 == 0)
        first = arena.start(name="first")
        pause(random.uniform(0.0, 0.5 * arena.seconds))
        second = arena.start(name="second")
        if k % 2:
            pause(random.uniform(0.0, arena.seconds))
            counts.killed += second.kill()
            arena.judge_files(counts)
            arena.judge_whole(first, first.wait(), counts, spare=1)
        else:
            codes = first.wait(), second.wait()
            for child, code in zip((first, second), codes, strict=True):
                arena.judge_whole(child, code, counts)
        before = arena.finished()
        arena.end(arena.start(), counts)
        if not before <= arena.finished():
            counts.note("lost", "finished work after two processes")
    return counts


def clocks(arena: Arena, count: int, random: Random) -> Counts:
    """Set the clock forwards and backwards by years, and the times of files with it."""
    counts = Counts()
    for k in range(count):
        arena.clear(older=k % 2 == 0)
        child = arena.start(_jumping)
        pause(random.uniform(0.0, arena.seconds))
        _set_clock(int(random.integers(-_YEARS, _YEARS)))
        counts.killed += child.kill()
        _shift_times(arena.out, random)
        before = arena.finished()
        child = arena.start(_jumping)
        for _ in range(3):
            pause(random.uniform(0.0, arena.seconds / 3))
            _set_clock(int(random.integers(-_YEARS, _YEARS)))
        arena.end(child, counts)
        if not before <= arena.finished():
            counts.note("lost", "finished work after the clock was set")
    return counts


EVENTS: dict[str, Event] = {
    "killed": kills,
    "killed while writing": kills_while_writing,
    "killed programs": killed_programs,
    "disk full": full_disks,
    "folder removed": lost_folders,
    "two processes": company,
    "clock set": clocks,
}


def _chain(arena: Arena, count: int, random: Random, moment: Callable[[Child], None]) -> Counts:
    """Kill, check, go on in the same folder; sometimes run to the end, compare, and begin anew."""
    counts, ended = Counts(), True
    while counts.killed < count:
        if ended or not arena.target.resumes:
            arena.clear(older=bool(random.integers(2)))
        before = arena.finished()
        child = arena.start()
        moment(child)
        os.kill(child.pid, signal.SIGKILL)
        code = child.wait()
        ended = code != -signal.SIGKILL
        counts.killed += not ended
        if ended:
            arena.judge_whole(child, code, counts)
        _judge_orphans(child, counts)
        _judge_kill(arena, before, counts)
        if not ended and counts.killed % _OFTEN == 0:
            before = arena.finished()
            arena.end(arena.start(), counts)
            _judge_kept(arena, before, counts)
            ended = True
    return counts


def _judge_kill(arena: Arena, before: set[str], counts: Counts) -> None:
    arena.judge_files(counts)
    _judge_kept(arena, before, counts)


def _judge_kept(arena: Arena, before: set[str], counts: Counts) -> None:
    """Check that finished work is there, and was not computed again."""
    gone = before - arena.finished()
    if gone:
        counts.note("lost", f"{len(gone)} of {len(before)}: {min(gone)}")


def _judge_orphans(child: Child, counts: Counts) -> None:
    """Check that no process of the session outlives its leader; one that only begins may begin."""
    start = time.monotonic()
    while alive := session(child.pid):
        counts.outlived = max(counts.outlived, time.monotonic() - start)
        if counts.outlived > _PATIENCE:
            counts.note("orphans", f"{len(alive)} processes")
            for pid in alive:
                os.kill(pid, signal.SIGKILL)
            return
        pause(0.1)


def _on_small_disk(arena: Arena, size: int, k: int, counts: Counts, random: Random) -> None:
    """Run on a disk that is too small, or has room for few files, then with enough room."""
    files = 0 if k % 3 == 0 else int(random.integers(2, 6))
    mount(arena.out, size, files)
    try:
        older = arena.older.bytes < size and not files and not arena.target.resumes
        if older:
            shutil.copytree(arena.older.folder, arena.out, dirs_exist_ok=True)
        _end_or_error(arena, arena.start(), counts)
        if older and not set(arena.older.digests) <= {*_names(arena.out)}:
            counts.note("lost", "the older output, on a full disk")
        mount(arena.out, 1 << 26, 0, again=True)
        arena.end(arena.start(), counts)
    finally:
        unmount(arena.out)


def _inodes(out: Path) -> set[int]:
    """Name what is in a folder, so that a file that was written again has another name."""
    found = set()
    for path in out.rglob("*"):
        with suppress(FileNotFoundError):
            found.add(path.lstat().st_ino)
    return found


def _names(out: Path) -> list[str]:
    return [str(path.relative_to(out)) for path in out.rglob("*")]


def _end_or_error(arena: Arena, child: Child, counts: Counts) -> None:
    code = child.wait()
    if code == arena.whole.code:
        arena.judge_whole(child, code, counts)
    else:
        arena.judge_error(child, code, counts)


def _limit(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def _remove(folder: Path, at_once: bool) -> None:
    """Remove a folder while somebody writes in it, by one renaming or file by file."""
    if at_once:
        away = folder.with_name("away")
        os.rename(folder, away)
        folder = away
    while folder.exists():
        shutil.rmtree(folder, ignore_errors=True)


def _jumping() -> None:
    """Let the clock of this process jump at every look, unless libfaketime sets it."""
    if CLOCK in os.environ:
        return
    import random

    clock = time.time
    time.time = lambda: clock() + random.uniform(-_YEARS, _YEARS)
    time.time_ns = lambda: int(1e9 * time.time())


def _set_clock(offset: int) -> None:
    if CLOCK in os.environ:
        Path(os.environ[CLOCK]).write_text(f"{offset:+d}\n")


def _shift_times(out: Path, random: Random) -> None:
    """Give all files times in the past or in the future."""
    for path in out.rglob("*"):
        when = time.time() + random.uniform(-_YEARS, _YEARS)
        os.utime(path, (when, when))
