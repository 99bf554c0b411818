"""Folders as one string of bytes, and mutations of the files in them."""

import base64
import json
import os
import shutil
from pathlib import Path
from random import Random

from tests.campaigns.fuzz.arrays import change_npz, change_tensors
from tests.campaigns.fuzz.tables import change_jsonl
from tests.campaigns.fuzz.values import changed, changed_bytes, json_text

Files = dict[str, bytes]
_CHANGES = {".npz": change_npz, ".safetensors": change_tensors, ".txt": change_jsonl}
_SPECIAL = ("folder", "link to itself", "pipe", "link to /dev/zero", "unreadable")


def packed(files: Files) -> bytes:
    """Write files as JSON."""
    return json.dumps({k: base64.b85encode(v).decode() for k, v in files.items()}).encode()


def unpacked(data: bytes) -> Files:
    """Read what :func:`packed` wrote; anything else is an empty folder."""
    try:
        return {str(k): base64.b85decode(v) for k, v in json.loads(data).items()}
    except Exception:
        return {}


def read_folder(path: Path) -> Files:
    """Read all files of a folder."""
    files = sorted(own for own in path.rglob("*") if own.is_file())
    return {str(own.relative_to(path)): own.read_bytes() for own in files}


def write_folder(data: bytes, path: Path) -> None:
    """Create a folder; a file that begins with ``special:`` becomes no regular file."""
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()
    for name, content in unpacked(data).items():
        place = path / name.replace("..", "_").lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        if content.startswith(b"special:"):
            _special(place, content.removeprefix(b"special:").decode(errors="replace"))
        else:
            place.write_bytes(content)


def _special(place: Path, kind: str) -> None:
    if kind == "folder":
        place.mkdir()
    elif kind == "link to itself":
        place.symlink_to(place)
    elif kind == "pipe":
        os.mkfifo(place)
    elif kind == "link to /dev/zero":
        place.symlink_to("/dev/zero")
    else:
        place.write_bytes(b"{}")
        place.chmod(0)


def change_folder(data: bytes, rng: Random) -> bytes:
    """Change one file of a folder by its kind, or what the folder holds."""
    files = unpacked(data)
    if not files:
        return data
    name = rng.choice(sorted(files))
    kind = rng.randrange(16)
    if kind == 0:
        del files[name]
    elif kind == 1:
        files[name] = f"special:{rng.choice(_SPECIAL)}".encode()
    elif kind == 2:
        other = rng.choice(sorted(files))
        files[name], files[other] = files[other], files[name]
    elif kind == 3:
        files[name] = rng.choice((b"", b"{}", b"null", b"[]", b"\x80\x04N.", b"[" * 100_000))
    else:
        files[name] = _changed(Path(name).suffix, files[name], rng)
    return packed(files)


def _changed(suffix: str, data: bytes, rng: Random) -> bytes:
    if suffix in _CHANGES:
        return _CHANGES[suffix](data, rng)
    if suffix == ".json" and rng.random() < 0.9:
        try:
            return json_text(changed(json.loads(data), rng, rng.choice((1, 1, 2))), rng).encode()
        except Exception:
            return changed_bytes(data, rng)
    return changed_bytes(data, rng)
