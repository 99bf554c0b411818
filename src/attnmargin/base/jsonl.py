"""Numbered lines of UTF-8 text files: plain, or one JSON object per line."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from attnmargin.base.errors import InputError

# Characters of one line: a text or a sequence. Parsed JSON takes up to 25 times as many bytes.
LONGEST = 1 << 24


def text_lines(path: str | Path, needs: str) -> Iterator[tuple[int, str]]:
    """Read lines with their numbers, from 1 on; skip blank lines and a byte order mark.

    Args:
        needs: what the error message asks for if the file cannot be read.

    Raises:
        InputError: if the file cannot be read, or a line is not UTF-8.
    """
    path = Path(path)
    try:
        # surrogateescape keeps invalid bytes as lone surrogates, so that their line is known.
        with path.open(encoding="utf-8-sig", errors="surrogateescape") as stream:
            for number, line in enumerate(bounded_lines(stream, path), 1):
                if not _whole(line):
                    got = f"{_where(path, number)} with bytes that are not UTF-8"
                    raise InputError("file", got, "text in UTF-8")
                if line.strip():
                    yield number, line
    except OSError as error:
        raise InputError("file", f"{path!s:.200} ({error.strerror or error})", needs) from None


def bounded_lines(stream: IO[str], path: Path) -> Iterator[str]:
    """Yield the lines of a stream; raise InputError at one that would fill the memory."""
    number = 0
    while line := stream.readline(LONGEST):
        number += 1
        if len(line) == LONGEST and not line.endswith("\n"):
            got = f"{_where(path, number)} with more than {LONGEST:,} characters"
            raise InputError("file", got, "shorter lines")
        yield line


def json_lines(
    path: str | Path,
    needs: str,
    record: str = "one JSON object per line",
    keys: tuple[str, ...] = (),
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Read one JSON object per line, with its number.

    Lone surrogates, such as ``\\ud800``, are errors: no UTF-8 file can contain them.

    Args:
        needs: what the error message asks for if the file cannot be read.
        record: what it asks for if a line is not such an object.
        keys: names that every object must have.

    Raises:
        InputError: with file and line.
    """
    for number, line in text_lines(path, needs):
        where = _where(Path(path), number)
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InputError("file", f"{where} ({error!s:.80})", record) from None
        if not isinstance(row, dict) or not row.keys() >= set(keys):
            without = f" without {' and '.join(keys)}" if keys else ""
            raise InputError("file", f"{where}{without}", record)
        if "\\u" in line and not _whole(json.dumps(row, ensure_ascii=False)):
            raise InputError("file", f"{where} with half of a character", "text in UTF-8")
        yield number, row


def _where(path: Path, number: int) -> str:
    return f"{path}, line {number}"


def _whole(text: str) -> bool:
    """Check that a text has no lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
