"""Files as lines of text: plain or gzip, in UTF-8, UTF-16, or an encoding that is named."""

import codecs
import gzip
import io
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TextIO, final

from attnmargin.base.errors import InputError
from attnmargin.base.files import most_bytes

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

# Characters of one line: a text or a sequence. Parsed JSON takes up to 25 times as many bytes.
LONGEST = 1 << 24
_GZIP = b"\x1f\x8b"
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # begins like UTF-16
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_ARCHIVES = {b"PK\x03\x04": "zip", b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"\x28\xb5\x2f\xfd": "zstd"}
_FIRST = 5  # bytes that tell what a file is
_NAMED = "text in UTF-8, or the name of its encoding, such as latin-1"


def lines_of(
    path: str | Path, needs: str, encoding: str | None = None, newline: str | None = None
) -> Iterator[str]:
    """Read the lines of a text file with their ends, without a byte order mark.

    gzip is found by its first bytes, UTF-16 and UTF-32 by their marks; else text is in UTF-8.

    Args:
        needs: what the error message asks for if the file cannot be read.
        encoding: name of the encoding, for files without a mark.
        newline: as in :func:`open`.

    Raises:
        InputError: if the file cannot be read, is not text, or would fill the memory.

    Example:
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp(), "words.txt")
        >>> _ = path.write_bytes("für\\n".encode("utf-16"))
        >>> list(lines_of(path, "words"))
        ['für\\n']
    """
    path = Path(path)
    try:
        with _opened(path, encoding, newline) as stream:
            yield from _bounded_lines(stream, path)
    except UnicodeError:
        raise _undecodable(path, encoding) from None
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise InputError("file", f"{path!s:.200}, a broken gzip file", needs) from None
    except OSError as error:
        raise InputError("file", f"{path!s:.200} ({error.strerror or error})", needs) from None


def _bounded_lines(stream: TextIO, path: Path) -> Iterator[str]:
    """Yield the lines of a stream; raise InputError at one that would fill the memory."""
    number = 0
    while line := stream.readline(LONGEST):
        number += 1
        if len(line) == LONGEST and line[-1] not in "\r\n":
            got = f"{path!s:.200}, line {number} with more than {LONGEST:,} characters"
            raise InputError("file", got, "shorter lines")
        yield line


def plain_suffix(path: Path) -> str:
    """Return the ending that says what a file holds, in lower case, without ``.gz``.

    >>> plain_suffix(Path("reviews.CSV.gz"))
    '.csv'
    """
    return Path(path.stem if path.suffix.lower() == ".gz" else path.name).suffix.lower()


@contextmanager
def _opened(
    path: Path, encoding: str | None, newline: str | None, errors: str = "strict"
) -> Iterator[TextIO]:
    with path.open("rb") as raw:
        plain = _unpacked(raw, path)
        found = _encoding(plain.peek(_FIRST)[:_FIRST], encoding, path)
        with io.TextIOWrapper(plain, found, errors, newline) as stream:
            yield stream


def _unpacked(raw: io.BufferedReader, path: Path) -> io.BufferedReader:
    """Return the bytes of a plain file, or those that a gzip file holds."""
    first = raw.peek(_FIRST)[:_FIRST]
    if first.startswith(_GZIP):
        plain = _Bounded(
            gzip.GzipFile(fileobj=raw), most_bytes(os.fstat(raw.fileno()).st_size), path
        )
        return io.BufferedReader(plain, 1 << 16)
    for mark, kind in _ARCHIVES.items():
        if first.startswith(mark):
            raise InputError("file", f"{path!s:.200}, a {kind} archive", "what it holds, or gzip")
    return raw


def _encoding(first: bytes, given: str | None, path: Path) -> str:
    """Name the encoding of a file that begins with these bytes."""
    if given is not None:
        try:
            "".encode(given)
            b"".decode(given)
        except (LookupError, ValueError, TypeError):
            needs = "the name of an encoding, such as utf-8, utf-16 or latin-1"
            raise InputError("encoding", repr(given)[:80], needs) from None
    for mark, name in _MARKS:
        if first.startswith(mark):
            return name
    if given is None and b"\0" in first:
        got = f"{path!s:.200} with bytes of zero, as UTF-16 without a mark has"
        raise InputError("encoding", got, "text in UTF-8, or utf-16-le or utf-16-be")
    return given or "utf-8"


def _undecodable(path: Path, encoding: str | None) -> InputError:
    """Name the first line that does not fit the encoding, where it can be found."""
    where, name = f"{path!s:.200}", encoding or "UTF-8"
    try:
        if path.is_file():
            # The handler keeps invalid bytes as lone surrogates, so that their line is known.
            with _opened(path, encoding, None, "surrogateescape") as stream:
                number = next(n for n, line in enumerate(stream, 1) if not whole(line))
                where = f"{where}, line {number}"
    except (UnicodeError, StopIteration, OSError, EOFError, zlib.error):
        pass
    return InputError("encoding", f"{where} with bytes that are not {name}", _NAMED)


def whole(text: str) -> bool:
    """Check that a text has no lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


@final
class _Bounded(io.RawIOBase):
    """A stream of bytes that refuses to grow beyond a size."""

    def __init__(self, inner: BinaryIO | gzip.GzipFile, most: int, path: Path) -> None:
        self._inner, self._left, self._path = inner, most, path

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        view = memoryview(buffer).cast("B")
        part = self._inner.read(len(view))
        view[: len(part)] = part
        self._left -= len(part)
        if self._left < 0:
            got = f"{self._path!s:.200}, a small file of too much text"
            raise InputError("file", got, "a file that it is safe to unpack")
        return len(part)
