"""Numbered lines of text files: plain, or one JSON object per line."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from attnmargin.base.errors import InputError
from attnmargin.base.streams import lines_of, whole


def text_lines(
    path: str | Path, needs: str, encoding: str | None = None
) -> Iterator[tuple[int, str]]:
    """Read lines with their numbers, from 1 on; skip blank lines and a byte order mark.

    Args:
        needs, encoding: as in :func:`attnmargin.base.streams.lines_of`.

    Raises:
        InputError: if the file cannot be read, or a line is not text.
    """
    for number, line in enumerate(lines_of(path, needs, encoding), 1):
        if not line.isspace():
            yield number, line


def json_lines(
    path: str | Path,
    needs: str,
    record: str = "one JSON object per line",
    keys: tuple[str, ...] = (),
    encoding: str | None = None,
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Read one JSON object per line, with its number.

    Lone surrogates, such as ``\\ud800``, are errors: no UTF-8 file can contain them.

    Args:
        needs: what the error message asks for if the file cannot be read.
        record: what it asks for if a line is not such an object.
        keys: names that every object must have.
        encoding: name of the encoding, for files without a mark.

    Raises:
        InputError: with file and line.
    """
    for number, line in text_lines(path, needs, encoding):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InputError("file", f"{path}, line {number} ({error!s:.80})", record) from None
        if not isinstance(row, dict) or not row.keys() >= set(keys):
            without = f" without {' and '.join(keys)}" if keys else ""
            raise InputError("file", f"{path}, line {number}{without}", record)
        if "\\u" in line and not whole(json.dumps(row, ensure_ascii=False)):
            got = f"{path}, line {number} with half of a character"
            raise InputError("file", got, "text in UTF-8")
        yield number, row
