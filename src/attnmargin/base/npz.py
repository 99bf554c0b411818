"""``.npz`` and ``.npy`` files without pickles, written atomically, read in bounded memory."""

import warnings
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from attnmargin.base.errors import InputError
from attnmargin.base.files import check_file, most_bytes, write_whole

# What numpy writes. Others would decompress with as much memory as they ask for.
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)

Arrays = Mapping[str, "NDArray[Any] | Tensor | str"]


def write_npz(path: str | Path, arrays: Arrays, *, sync: bool = True) -> Path:
    """Save arrays by name, copying tensors to the CPU; ``sync`` as in write_whole.

    Arrays so large that a reader could take the compressed file for a bomb are not compressed.
    """
    plain: dict[str, Any] = {
        name: value.cpu().numpy() if isinstance(value, Tensor) else np.asarray(value)
        for name, value in arrays.items()
    }
    for name, array in plain.items():
        if array.dtype.hasobject:  # numpy would write a pickle
            got = f"objects for {name!r:.80}"
            raise InputError("arrays", got, "numbers, words or truth values")
    small = sum(array.nbytes for array in plain.values()) < most_bytes(0) // 2
    save = np.savez_compressed if small else np.savez
    return write_whole(path, lambda stream: save(stream, **plain), sync=sync)


def _kind(path: Path) -> str:
    """Guess from its first bytes what a file is that is not an archive."""
    with path.open("rb") as stream:
        head = stream.read(6)
    if head.startswith(b"\x93NUMPY"):
        return "a single array"
    return "pickled objects" if head.startswith(b"\x80") else "not an .npz file"


def read_npz(path: str | Path, needs: tuple[str, ...] = ()) -> dict[str, NDArray[Any]]:
    """Read all arrays of an ``.npz`` file; raise InputError on pickled content.

    Arrays of more than 1 GiB, or 100 times the size of the file if that is more, are refused:
    compressed data of that kind are made to fill the memory.
    """
    path = check_file(path, needs="an .npz file")
    with _refused("file", path, "an .npz file of plain arrays"):
        arrays = _members(path)
    for name in needs:
        if name not in arrays:
            found = ", ".join(sorted(arrays)) or "nothing"
            raise InputError("file", f"{path} with {found:.300}", f"an array named {name!r}")
    return arrays


def read_npy(path: str | Path, argument: str = "file") -> NDArray[Any]:
    """Read the array of an ``.npy`` file; raise InputError on pickled content."""
    path = check_file(path, argument, needs="an .npy file")
    with _refused(argument, path, "a plain array"), path.open("rb") as stream:
        return _array(stream)


@contextmanager
def _refused(argument: str, path: Path, needs: str) -> Iterator[None]:
    """Turn what numpy and zipfile raise on damaged files, which may be anything, into InputError.

    Their warnings about odd headers go unsaid: the array is read, or refused.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except Exception as error:
        said = str(error).strip() or type(error).__name__
        reason = "pickled objects" if "pickle" in said.lower() else said.splitlines()[0]
        raise InputError(argument, f"{path!s:.200} ({reason:.160})", needs) from error


def _members(path: Path) -> dict[str, NDArray[Any]]:
    """Read the arrays of an archive; members that are no arrays are left alone."""
    if not zipfile.is_zipfile(path):
        raise ValueError(_kind(path))
    arrays: dict[str, NDArray[Any]] = {}
    with zipfile.ZipFile(path) as archive:
        members = [own for own in archive.infolist() if own.filename.endswith(".npy")]
        _refuse_bombs(members, path)
        for own in members:
            name = own.filename.removesuffix(".npy")
            if name in arrays:
                raise ValueError(f"two arrays named {name!r:.60}")
            with archive.open(own) as stream:
                arrays[name] = _array(stream)
    return arrays


def _array(stream: IO[bytes]) -> NDArray[Any]:
    """Read an array; its words must be made of characters that exist."""
    array: NDArray[Any] = np.lib.format.read_array(stream, allow_pickle=False)
    if array.dtype.kind == "U" and array.size and array.dtype.itemsize:
        native = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("="), copy=False))
        codes = native.reshape(-1).view(np.uint32)
        if bool(((codes > 0x10FFFF) | ((codes >= 0xD800) & (codes <= 0xDFFF))).any()):
            raise ValueError("words with characters that do not exist")
    return array


def _refuse_bombs(members: list[zipfile.ZipInfo], path: Path) -> None:
    claimed, most = sum(own.file_size for own in members), most_bytes(path.stat().st_size)
    if claimed > most:
        raise ValueError(f"arrays of {claimed:,} bytes in a small file")
    if any(own.compress_type not in _METHODS for own in members):
        raise ValueError("compressed in a way that numpy does not write")
