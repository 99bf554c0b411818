"""Mutations of ``.npz`` and ``.safetensors`` files: members, headers, shapes, numbers, lengths."""

import io
import json
import struct
import warnings
import zipfile
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.campaigns.fuzz.values import NUMBERS, WORDS, changed, changed_bytes, json_text

_DTYPES = ("f8", "f4", "f2", ">f8", "i8", "i4", "u1", "?", "c16", "U5", "S3", "M8[s]", "m8", "V3",
           "g", "u8", "U0")  # fmt: skip
_HEADER_WORDS = (
    "'|O'", "'<f8'", "'|V1000000000'", "'<U1000000000'", "(1152921504606846976,)", "(3,)", "()",
    "(-1,)", "(0,)", "(2, 2**70)", "True", "False", "None", "[('a', '<f8')]", "'<f8', 'x': 1",
    "(1L,)", "(" * 90, "'\\d'", "0777", "{}", "'<M8[s]'", "(99999999999999999999,)",
)  # fmt: skip
_NAMES = ("X", "z", "y", "v", "mask", "words", "left", "query", "bound", "equality", "W", "dual",
          "status", "norm", "iterations", "rank_limit", "outside", "sequence", "position", "chosen",
          "other", "selection", "../../x", "/etc/x", "", "a\x00b", "X.npy", "é")  # fmt: skip


def npz(arrays: dict[str, Any]) -> bytes:
    """Write an ``.npz`` file."""
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def change_npz(data: bytes, rng: Random) -> bytes:
    """Change members of an archive, or its bytes."""
    if rng.random() < 0.15:
        return changed_bytes(data, rng)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = [(own.filename, archive.read(own)) for own in archive.infolist()]
    except Exception:
        return changed_bytes(data, rng)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        if members:
            _change_member(members, rng)
    return _archive(members, rng)


def _change_member(members: list[tuple[str, bytes]], rng: Random) -> None:
    place = rng.randrange(len(members))
    name, data = members[place]
    kind = rng.randrange(14)
    if kind == 0:
        del members[place]
    elif kind == 1:
        members.append((rng.choice((name, f"{rng.choice(_NAMES)}.npy")), data))
    elif kind == 2:
        members[place] = (rng.choice((f"{rng.choice(_NAMES)}.npy", rng.choice(_NAMES))), data)
    elif kind == 3:
        members[place] = (name, changed_bytes(data, rng))
    elif kind < 7:
        members[place] = (name, _changed_header(data, rng))
    else:
        members[place] = (name, _changed_array(data, rng))


def _changed_header(data: bytes, rng: Random) -> bytes:
    """Change the text of an array's header, which Python parses."""
    length = int.from_bytes(data[8:10], "little")
    head, rest = data[10 : 10 + length].decode("latin-1"), data[10 + length :]
    parts = head.split(":")
    place = rng.randrange(len(parts))
    if rng.random() < 0.7 and place:
        parts[place] = f" {rng.choice(_HEADER_WORDS)}" + parts[place][parts[place].find(",") :]
        head = ":".join(parts)
    else:
        head = changed_bytes(head.encode(), rng).decode("latin-1")
    version = rng.choice((1, 1, 1, 2, 3, 4))
    own = head.encode("latin-1")
    size = struct.pack("<H" if version == 1 else "<I", len(own) & 0xFFFF)
    return b"\x93NUMPY" + bytes((version, 0)) + size + own + rest


def _changed_array(data: bytes, rng: Random) -> bytes:
    """Change shape, dtype or numbers of an array that is well written."""
    try:
        array = np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            array = _another(array, rng)
        stream = io.BytesIO()
        np.lib.format.write_array(stream, array, allow_pickle=rng.random() < 0.5)
    except Exception:
        return changed_bytes(data, rng)
    return stream.getvalue()


def _another(array: NDArray[Any], rng: Random) -> NDArray[Any]:
    kind = rng.randrange(12)
    if kind == 0:
        return array.astype(rng.choice(_DTYPES))
    if kind == 1:
        return np.empty(rng.choice(((), (0,), (0, 3), (1, 0, 2), (2, 0, 3, 4))), array.dtype)
    if kind == 2:
        return array[rng.choice((None, 0, slice(0, 1), slice(0, 0), Ellipsis))]
    if kind == 3:
        return np.moveaxis(array, rng.randrange(array.ndim), 0) if array.ndim else array
    if kind == 4:
        return np.concatenate([array, array], axis=rng.randrange(max(array.ndim, 1)))
    if kind == 5:
        return np.array(rng.choice((*WORDS[:10], *NUMBERS[:9], {"a": 1}, [{}])))
    if kind == 6:
        return array * rng.choice((0, -1, 1e-300, 1e99, 1e-160, 1e300, 1e8))
    if kind == 7 and array.ndim:
        return np.repeat(array[:1], len(array), 0)
    if kind == 8:
        return array.reshape(rng.choice(((-1,), (1, -1), (-1, 1), (1, 1, *array.shape))))
    own = np.array(array)
    for _ in range(rng.choice((1, 1, 3))):
        own.reshape(-1)[rng.randrange(max(own.size, 1))] = rng.choice((*NUMBERS, "a", -3))
    return own


def _archive(members: list[tuple[str, bytes]], rng: Random) -> bytes:
    """Write an archive, at times with odd methods, flags or sizes."""
    stream = io.BytesIO()
    method = rng.choice((*(zipfile.ZIP_STORED,) * 4, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2))
    with warnings.catch_warnings(), zipfile.ZipFile(stream, "w", method) as archive:
        warnings.simplefilter("ignore")
        for name, content in members:
            archive.writestr(name or "x", content)
    whole = stream.getvalue()
    if rng.random() < 0.1 and members:  # a field of the directory
        place = whole.find(b"PK\x01\x02") + rng.choice((8, 10, 16, 20, 24, 28, 30, 42))
        whole = whole[:place] + rng.randbytes(rng.choice((1, 2, 4))) + whole[place + 2 :]
    return whole


def tensors(header: dict[str, Any], data: bytes) -> bytes:
    """Write a ``.safetensors`` file."""
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def change_tensors(data: bytes, rng: Random) -> bytes:
    """Change the header of a safetensors file, its length, or its bytes."""
    kind = rng.randrange(8)
    if kind == 0:
        return changed_bytes(data, rng)
    size = int.from_bytes(data[:8], "little")
    if kind == 1:
        claim = rng.choice((0, 1, size + 1, 2**31, 2**60, 2**64 - 1, len(data)))
        return (claim % 2**64).to_bytes(8, "little") + data[8:]
    try:
        header = json.loads(data[8 : 8 + size])
        text = json_text(changed(header, rng, rng.choice((1, 1, 2, 4))), rng).encode(
            "utf-8", "surrogatepass")  # fmt: skip
    except Exception:
        return changed_bytes(data, rng)
    return len(text).to_bytes(8, "little") + text + data[8 + size :]
