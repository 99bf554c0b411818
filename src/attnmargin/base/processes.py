"""Processes that work for another one."""

import os
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path


def end_with(parent: int) -> None:
    """End this process within a second of its parent, however that ends, a kill included.

    The programs that this process runs end too, where ``/proc`` names them.
    """
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    for pid in [*_descendants(os.getpid()), os.getpid()]:
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def _descendants(pid: int) -> list[int]:
    """List the children of a process, and theirs."""
    parents = _parents()
    found = [pid]
    for own in found:  # it grows meanwhile
        found += [child for child, parent in parents.items() if parent == own]
    return found[1:]


def _parents() -> dict[int, int]:
    """Return the parent of every process of this machine."""
    found = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it ended meanwhile
            found[int(file.parent.name)] = int(file.read_text().rpartition(")")[2].split()[1])
    return found
