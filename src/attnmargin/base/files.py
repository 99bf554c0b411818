"""``.npz`` files without pickles, written whole or not at all."""

import os
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from attnmargin.base.errors import InputError

# What damaged, encrypted or boastful files make numpy and zipfile raise.
_UNREADABLE = (
    ValueError, OSError, EOFError, RuntimeError, MemoryError, OverflowError, KeyError,
    zipfile.BadZipFile, zlib.error,
)  # fmt: skip

Arrays = Mapping[str, "NDArray[Any] | Tensor | str"]


def write_whole(path: str | Path, write: Callable[[IO[bytes]], object]) -> Path:
    """Write to a temporary file beside ``path``, then rename: never half a file."""
    path = Path(path)
    target = check_place(path, "path")
    try:
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{path.name[:32]}.")
    except OSError as error:
        raise _unwritable(error, path, "path") from error
    try:
        with os.fdopen(handle, "wb") as stream:
            write(stream)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, target)
    except BaseException as error:
        os.unlink(temporary)
        if isinstance(error, OSError):
            raise InputError("path", f"{path} ({error.strerror})", "a file to write") from error
        raise
    return path


def check_place(path: str | Path, argument: str) -> Path:
    """Refuse what cannot be a file, before the work is done; what a link points to."""
    path = Path(path)
    try:
        target = path.resolve()  # what a link points to is replaced, not the link
        if not target.parent.is_dir():
            raise InputError(argument, f"{path}, whose folder does not exist", "an existing folder")
        if path.exists() and not path.is_file():
            raise InputError(argument, f"{path}, which is not a regular file", "the name of a file")
    except (OSError, RuntimeError) as error:  # a loop of links is the latter
        raise _unwritable(error, path, argument) from error
    return target


def _unwritable(error: Exception, path: Path, argument: str) -> InputError:
    reason = getattr(error, "strerror", None) or error
    return InputError(argument, f"{path!s:.200} ({reason})", "a folder to write to")


def make_folder(path: str | Path, argument: str) -> Path:
    """A folder to write to, made if it is missing."""
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(argument, f"{path} ({error.strerror})", "a folder to write to") from error
    return Path(path)


def write_npz(path: str | Path, arrays: Arrays) -> Path:
    """Save arrays by name; tensors are copied to the CPU."""
    plain: dict[str, Any] = {
        name: value.cpu().numpy() if isinstance(value, Tensor) else np.asarray(value)
        for name, value in arrays.items()
    }
    return write_whole(path, lambda stream: np.savez_compressed(stream, **plain))


def _kind(path: Path) -> str:
    """What a file that is not an archive seems to be."""
    with path.open("rb") as stream:
        head = stream.read(6)
    if head.startswith(b"\x93NUMPY"):
        return "a single array"
    return "pickled objects" if head.startswith(b"\x80") else "not an .npz file"


def read_npz(path: str | Path, needs: tuple[str, ...] = ()) -> dict[str, NDArray[Any]]:
    """All arrays of an ``.npz`` file; pickled content is refused, not executed."""
    path = Path(path)
    if not path.is_file():
        raise InputError("file", f"{path}, which does not exist", "an .npz file")
    try:
        if not zipfile.is_zipfile(path):
            raise ValueError(_kind(path))
        with np.load(path, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
    except _UNREADABLE as error:
        reason = "pickled objects" if "pickle" in str(error).lower() else str(error)
        raise InputError("file", f"{path} ({reason})", "an .npz file of plain arrays") from error
    for name in needs:
        if name not in arrays:
            found = ", ".join(sorted(arrays)) or "nothing"
            raise InputError("file", f"{path} with {found}", f"an array named {name!r}")
    return arrays
