"""What a folder holds: every file read by an own reader, without the library's help where it can.

A file with a final name must be whole. Its digest leaves out timings, and nothing else.
"""

import hashlib
import json
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pyarrow.parquet as parquet

from attnmargin.base.safetensors import read_tensors
from attnmargin.base.temporary import PREFIX

_CLOCK = re.compile(r"seconds|version")
# Seconds of computation in SUMMARY.md: the sum, and a column of numbers before "3 of 4".
_SECONDS = re.compile(r"\d+ s of computation|\| [\d.e+-]+ \| (?=\d+ of \d+ \|)")


class TornError(Exception):
    """A file that is not whole."""


def files_of(out: Path) -> dict[str, Path]:
    """Return the files under a folder that have a final name."""
    found = sorted(path for path in out.rglob("*") if path.is_file())
    return {str(p.relative_to(out)): p for p in found if not p.name.startswith(PREFIX)}


def leftovers(out: Path) -> int:
    """Count temporary files."""
    return sum(1 for _ in out.rglob(f"{PREFIX}*"))


def digest(path: Path) -> str:
    """Read a file to its end, and return a fingerprint of its numbers.

    Raises:
        TornError: the file is not whole.
    """
    try:
        value = _READERS[path.suffix](path)
    except FileNotFoundError:
        raise
    except Exception as error:
        raise TornError(f"{path.name}: {type(error).__name__}: {error!s:.200}") from error
    return hashlib.sha256(repr(value).encode()).hexdigest()[:16]


def numbers(text: str) -> Any:
    """Read JSON without timings."""
    return json.loads(text, object_pairs_hook=_untimed)


def history(path: Path) -> list[str]:
    """Return the epochs of a checkpoint; their seconds tell one computation from another."""
    if not path.is_file():
        return []
    return [json.dumps(row) for row in json.loads(read_tensors(path)[1]["run"])["history"]]


def _untimed(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return {name: value for name, value in pairs if not _CLOCK.search(name)}


def _npz(path: Path) -> Any:
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
    with np.load(path, allow_pickle=False) as stored:
        own = {name: stored[name] for name in sorted(stored.files) if not _CLOCK.search(name)}
    return [(name, x.dtype.str, x.shape, x.tobytes()) for name, x in own.items()]


def _json(path: Path) -> Any:
    return numbers(path.read_text(encoding="utf-8"))


def _safetensors(path: Path) -> Any:
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    notes = header.pop("__metadata__")
    ends = [entry["data_offsets"][1] for entry in header.values()]
    assert len(data) == 8 + size + max(ends)
    assert set(read_tensors(path)[0]) == set(header)
    return sorted(header.items()), data[8 + size :], numbers(notes["run"])


def _html(path: Path) -> Any:
    text = path.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert text.endswith("</html>\n")
    return text


def _png(path: Path) -> Any:
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    assert data.endswith(b"IEND\xaeB`\x82")
    return data


def _lines(path: Path) -> Any:
    text = path.read_text(encoding="utf-8")
    assert text.endswith("\n")
    return _SECONDS.sub("", text)


def _parquet(path: Path) -> Any:
    return parquet.read_table(path).to_pydict()


def _xml(path: Path) -> Any:
    return ElementTree.canonicalize(path.read_text(encoding="utf-8"))


_READERS: dict[str, Callable[[Path], Any]] = {
    ".npz": _npz, ".json": _json, ".safetensors": _safetensors, ".html": _html, ".png": _png,
    ".csv": _lines, ".md": _lines, ".graphml": _xml,
    ".parquet": _parquet,
}  # fmt: skip
