"""Tensors in the safetensors format: plain bytes behind a JSON header, written atomically.

The format is https://github.com/huggingface/safetensors, whose library reads the files. Nothing in
them is executed.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from torch import Tensor

from attnmargin.base.errors import InputError
from attnmargin.base.files import check_file, write_whole

_KINDS = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}
# Parsed JSON takes up to 25 times as many bytes.
_LONGEST_HEADER = 1 << 24
_NAMES = {kind: name for name, kind in _KINDS.items()}


def write_tensors(path: str | Path, tensors: dict[str, Tensor], notes: dict[str, str]) -> Path:
    """Save tensors by name, with notes."""
    header: dict[str, Any] = {"__metadata__": notes}
    parts, end = [], 0
    for name, tensor in tensors.items():
        plain = tensor.detach().cpu().contiguous()
        data = plain.flatten().view(torch.uint8).numpy().tobytes()
        header[name] = {
            "dtype": _NAMES[plain.dtype],
            "shape": list(plain.shape),
            "data_offsets": [end, end + len(data)],
        }
        parts.append(data)
        end += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    whole = [len(text).to_bytes(8, "little"), text, *parts]
    return write_whole(path, lambda stream: stream.writelines(whole))


def read_tensors(path: str | Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Read the tensors and notes of a file; they take as much memory as the file is long."""
    with _opened(path) as (stream, size):
        header, start = _header(stream, size)
        notes = _notes(header)
        return _tensors(header, stream, size - start), notes


def read_notes(path: str | Path) -> dict[str, str]:
    """Read the notes of a file, without its tensors."""
    with _opened(path) as (stream, size):
        return _notes(_header(stream, size)[0])


@contextmanager
def _opened(path: str | Path) -> Iterator[tuple[IO[bytes], int]]:
    """Open a file with its size; turn what a damaged one leads to into InputError."""
    path = check_file(path, needs="a .safetensors file")
    try:
        with path.open("rb") as stream:
            yield stream, path.stat().st_size
    except OSError as error:
        raise InputError("file", f"{path} ({error.strerror})", "a .safetensors file") from None
    except (ValueError, KeyError, TypeError, AttributeError, RuntimeError, MemoryError) as error:
        got = f"{path} ({error!s:.60})"
        raise InputError("file", got, "a whole .safetensors file") from None


def _header(stream: IO[bytes], size: int) -> tuple[dict[str, Any], int]:
    """Read the header, and where the tensors begin."""
    length = int.from_bytes(stream.read(8), "little")
    if length > min(size - 8, _LONGEST_HEADER):
        raise ValueError(f"a header of {length:,} bytes")
    return dict(json.loads(stream.read(length))), 8 + length


def _notes(header: dict[str, Any]) -> dict[str, str]:
    """Take the notes out of a header."""
    notes = dict(header.pop("__metadata__", {}))
    if not all(isinstance(part, str) for note in notes.items() for part in note):
        raise ValueError("notes that are no words")
    return notes


def _tensors(header: dict[str, Any], stream: IO[bytes], size: int) -> dict[str, Tensor]:
    """Read tensors that lie one after the other, which no file can make larger than itself."""
    tensors, end = {}, 0
    for name, entry in sorted(header.items(), key=lambda own: own[1]["data_offsets"]):
        first, last = entry["data_offsets"]
        if first != end or last < first:
            raise ValueError(f"{name!r:.20} lies over another tensor, or after a gap")
        if last > size:
            raise ValueError("cut short")
        tensors[name], end = _tensor(stream.read(last - first), entry), last
    return {name: tensors[name] for name in header}


def _tensor(data: bytes, entry: dict[str, Any]) -> Tensor:
    kind = _KINDS[entry["dtype"]]
    if not data:
        return torch.empty(0, dtype=kind).reshape(entry["shape"])
    raw = torch.from_numpy(np.frombuffer(data, dtype=np.uint8).copy())
    return raw.view(kind).reshape(entry["shape"])
