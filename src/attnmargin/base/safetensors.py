"""Tensors in the safetensors format: plain bytes behind a JSON header, written atomically.

The format is https://github.com/huggingface/safetensors, whose library reads the files. Nothing in
them is executed.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attnmargin.base.errors import InputError
from attnmargin.base.files import write_whole

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
    """Read the tensors and notes of a file."""
    path = Path(path)
    try:
        data = path.read_bytes()
        size = int.from_bytes(data[:8], "little")
        header = json.loads(data[8 : 8 + size])
        notes = header.pop("__metadata__", {})
        return {name: _tensor(data[8 + size :], entry) for name, entry in header.items()}, notes
    except OSError as error:
        raise InputError("file", f"{path} ({error.strerror})", "a .safetensors file") from None
    except (ValueError, KeyError, TypeError, AttributeError, RuntimeError) as error:
        got = f"{path} ({error!s:.60})"
        raise InputError("file", got, "a whole .safetensors file") from None


def read_notes(path: str | Path) -> dict[str, str]:
    """Read the notes of a file, without its tensors."""
    try:
        with Path(path).open("rb") as stream:
            size = int.from_bytes(stream.read(8), "little")
            header = stream.read(min(size, Path(path).stat().st_size))
        return dict(json.loads(header).get("__metadata__", {}))
    except OSError as error:
        raise InputError("file", f"{path} ({error.strerror})", "a .safetensors file") from None
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        got = f"{path} ({error!s:.60})"
        raise InputError("file", got, "a whole .safetensors file") from None


def _tensor(data: bytes, entry: dict[str, Any]) -> Tensor:
    first, last = entry["data_offsets"]
    if last > len(data):
        raise ValueError("cut short")
    raw = torch.from_numpy(np.frombuffer(data[first:last], dtype=np.uint8).copy())
    return raw.view(_KINDS[entry["dtype"]]).reshape(entry["shape"])
