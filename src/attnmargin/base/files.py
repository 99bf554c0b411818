"""Atomic writes, and checks of paths."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO

from attnmargin.base.errors import InputError
from attnmargin.base.temporary import create_temporary, tidy

# What a file may become in memory: so many bytes, or so many times its size.
_LEAST_ROOM, _MOST_TIMES = 1 << 30, 100
# Files that are read in one piece: settings, records, vocabularies.
_MOST_WHOLE = 1 << 28


def write_whole(
    path: str | Path, write: Callable[[IO[bytes]], object], *, sync: bool = True
) -> Path:
    """Write to a temporary file beside ``path``, then rename it: no partial file is ever seen.

    What was written is on the disk before the renaming, so that a power failure too leaves the old
    file or the new one. That waits for the disk: with ``sync=False``, for many small files that
    can be made again, a power failure may leave a file cut short. Temporary files of processes that
    were killed are removed.
    """
    path = Path(path)
    target = check_place(path, "path")
    try:
        tidy(target.parent)
        handle, temporary = create_temporary(target.parent)
    except OSError as error:
        raise _unwritable(error, path, "path") from error
    try:
        with os.fdopen(handle, "wb") as stream:
            write(stream)
            stream.flush()
            if sync:
                os.fsync(handle)
            os.replace(temporary, target)  # before the lock is lost
    except BaseException as error:
        with suppress(OSError):  # Ctrl-C can come after the renaming, or the folder be gone
            os.unlink(temporary)
        if isinstance(error, OSError):
            reason = error.strerror or error
            raise InputError("path", f"{path} ({reason})", "a file to write") from error
        raise
    return path


def check_file(path: str | Path, argument: str = "file", needs: str = "an existing file") -> Path:
    """Raise InputError unless ``path`` is a regular file."""
    path = Path(path)
    try:
        if path.is_file():
            return path
        kind = "which is a folder" if path.is_dir() else "which is not a regular file"
        got = kind if path.exists() else "which does not exist"
    except OSError as error:
        got = f"({error.strerror})"
    raise InputError(argument, f"{path!s:.200}, {got}", needs)


def most_bytes(size: int) -> int:
    """Return how many bytes the contents of a file of some size may take in memory.

    >>> most_bytes(0), most_bytes(10**9)
    (1073741824, 100000000000)
    """
    return max(_LEAST_ROOM, _MOST_TIMES * size)


def read_whole(path: str | Path, argument: str, needs: str, most: int = _MOST_WHOLE) -> bytes:
    """Read a regular file of at most ``most`` bytes, or raise InputError."""
    path = check_file(path, argument, needs)
    try:
        with path.open("rb") as stream:
            size = path.stat().st_size
            data = stream.read(size + 1) if size <= most else b""
            if max(size, len(data)) > most:
                got = f"{path!s:.200} with more than {most:,} bytes"
                raise InputError(argument, got, needs)
    except OSError as error:
        got = f"{path!s:.200} ({error.strerror or error})"
        raise InputError(argument, got, needs) from None
    return data


def check_place(path: str | Path, argument: str) -> Path:
    """Raise InputError early if ``path`` cannot be written; return it with links resolved."""
    path = Path(path)
    try:
        target = path.resolve()  # replace the target of a link, not the link
        if not target.parent.is_dir():
            raise InputError(argument, f"{path}, whose folder does not exist", "an existing folder")
        if path.exists() and not path.is_file():
            raise InputError(argument, f"{path}, which is not a regular file", "the name of a file")
    except (OSError, RuntimeError) as error:  # a loop of links raises RuntimeError
        raise _unwritable(error, path, argument) from error
    return target


def own_place(folder: str | Path, name: str) -> Path:
    """Return where a file of our naming lies in a folder, or raise InputError if a link is there.

    A link in a folder that somebody else made would let us overwrite what it points to.
    """
    path = Path(folder) / name
    if path.is_symlink():
        raise InputError("out", f"{path!s:.200}, which is a link", "a folder of plain files")
    return path


def _unwritable(error: Exception, path: Path, argument: str) -> InputError:
    reason = getattr(error, "strerror", None) or error
    return InputError(argument, f"{path!s:.200} ({reason})", "a folder to write to")


def make_folder(path: str | Path, argument: str) -> Path:
    """Create a folder unless it exists."""
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(argument, f"{path} ({error.strerror})", "a folder to write to") from error
    return Path(path)
