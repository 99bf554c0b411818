"""Temporary files, locked while a process writes them: what is unlocked was left behind.

The lock ends with the process, however it ends. Neither clocks nor process numbers are compared,
which machines that share a folder do not share.
"""

import os
import secrets
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

# Nobody reads files of this name.
PREFIX = ".attnmargin-"


def create_temporary(folder: Path) -> tuple[int, Path]:
    """Create and lock a temporary file; return its handle, open for writing, and its path."""
    while True:
        path = folder / f"{PREFIX}{secrets.token_hex(8)}"
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666)
        lock(handle, wait=True)
        if os.fstat(handle).st_nlink:
            return handle, path
        os.close(handle)  # another process took it for a leftover before it was locked


def remove_leftovers(folder: Path) -> None:
    """Remove the temporary files in a folder that killed processes left."""
    with os.scandir(folder) as entries:
        found = [entry.path for entry in entries if entry.name.startswith(PREFIX)]
    for path in found:
        with suppress(OSError):  # it was renamed or removed meanwhile, or belongs to somebody else
            _remove_unlocked(path)


@lru_cache(1024)
def tidy(folder: Path) -> None:
    """Remove what killed processes left in a folder, once for this process.

    Every look reads the whole folder: with one for every file, many files would take the square of
    their number.
    """
    remove_leftovers(folder)


def _remove_unlocked(path: str) -> None:
    handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        if lock(handle, wait=False):
            os.unlink(path)
    finally:
        os.close(handle)


def lock(handle: int, wait: bool) -> bool:
    """Lock an open file or folder until it is closed; False if another process has it locked.

    False, too, where the file system or the operating system has no locks.
    """
    try:
        from fcntl import LOCK_EX, LOCK_NB, flock

        flock(handle, LOCK_EX if wait else LOCK_EX | LOCK_NB)
    except (ImportError, OSError):
        return False
    return True
