"""``.npz`` files without pickles, written atomically."""

import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from attnmargin.base.errors import InputError
from attnmargin.base.files import check_file, write_whole

# numpy and zipfile raise these on files that are damaged, encrypted or lie about their size.
_UNREADABLE = (
    ValueError, OSError, EOFError, RuntimeError, MemoryError, OverflowError, KeyError,
    zipfile.BadZipFile, zlib.error,
)  # fmt: skip

Arrays = Mapping[str, "NDArray[Any] | Tensor | str"]


def write_npz(path: str | Path, arrays: Arrays, *, sync: bool = True) -> Path:
    """Save arrays by name, copying tensors to the CPU; ``sync`` as in write_whole."""
    plain: dict[str, Any] = {
        name: value.cpu().numpy() if isinstance(value, Tensor) else np.asarray(value)
        for name, value in arrays.items()
    }
    return write_whole(path, lambda stream: np.savez_compressed(stream, **plain), sync=sync)


def _kind(path: Path) -> str:
    """Guess from its first bytes what a file is that is not an archive."""
    with path.open("rb") as stream:
        head = stream.read(6)
    if head.startswith(b"\x93NUMPY"):
        return "a single array"
    return "pickled objects" if head.startswith(b"\x80") else "not an .npz file"


def read_npz(path: str | Path, needs: tuple[str, ...] = ()) -> dict[str, NDArray[Any]]:
    """Read all arrays of an ``.npz`` file; raise InputError on pickled content."""
    path = check_file(path, needs="an .npz file")
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
