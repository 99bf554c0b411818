"""Source: the columns of a file of labelled texts, read when they are asked for."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from attnmargin.base.errors import InputError, MissingPackageError
from attnmargin.base.files import most_bytes
from attnmargin.base.jsonl import json_lines

NEEDS = "a file of texts"
Columns = list[list[Any]]
# Bytes that a row of a table takes in memory beside its words.
_ROW = 100
# Number of rows that tell what the columns hold.
HEAD = 1000


@final
@dataclass(frozen=True, eq=False)
class Source:
    """A table on disk: names of its columns, their first values, and a way to read some of them."""

    path: Path
    names: list[str]
    head: Columns  # up to HEAD values per column
    read: Callable[[list[int]], Columns]


def json_source(path: Path, encoding: str | None = None) -> Source:
    """Open a file with one JSON object per line; the keys of the first lines are the columns."""
    first = [row for row, _ in zip(_objects(path, encoding), range(HEAD), strict=False)]
    names = list(dict.fromkeys(key for row in first for key in row))

    def read(places: list[int]) -> Columns:
        found: Columns = [[] for _ in places]
        wanted = [(names[place], column) for place, column in zip(places, found, strict=True)]
        for row in _objects(path, encoding):
            for name, column in wanted:
                column.append(row.get(name))
        return found

    return Source(path, names, [[row.get(name) for row in first] for name in names], read)


def _objects(path: Path, encoding: str | None) -> Iterator[dict[str, Any]]:
    return (row for _, row in json_lines(path, NEEDS, encoding=encoding))


def parquet_source(path: Path) -> Source:
    """Open a ``.parquet`` file."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingPackageError("reading .parquet", "attnmargin[text]") from error

    def read(places: list[int], most: int | None = None) -> Columns:
        found: Columns = [[] for _ in places]
        room, batches = most_bytes(path.stat().st_size), _batches(pyarrow.parquet, path, places)
        while (batch := _next(batches, path)) is not None:
            size, columns = batch
            room -= size
            if room < 0:
                got = f"{path!s:.200}, a small file of too many rows"
                raise InputError("file", got, "a .parquet file")
            for column, own in zip(found, columns, strict=True):
                column += own
            if most is not None and len(found[0]) >= most:
                break
        return found

    names = _next(_plain(pyarrow.parquet, path), path) or []
    return Source(path, names, read(list(range(len(names))), HEAD) if names else [], read)


def _plain(parquet: Any, path: Path) -> Iterator[list[str]]:
    """Yield the names of the columns that hold no lists or records, which nobody reads."""
    with parquet.ParquetFile(path) as stored:
        yield [own.name for own in stored.schema_arrow if own.type.num_fields == 0]


def _batches(parquet: Any, path: Path, places: list[int]) -> Iterator[tuple[int, Columns]]:
    """Yield some rows of some columns at a time, and the bytes that they take."""
    names = next(_plain(parquet, path))
    with parquet.ParquetFile(path) as stored:
        for batch in stored.iter_batches(1024, columns=[names[place] for place in places]):
            columns = [column.to_pylist() for column in batch.columns]
            if len(columns) != len(places):
                raise ValueError("two columns of one name")
            yield batch.nbytes + _ROW * batch.num_rows, columns


def _next(given: Iterator[Any], path: Path) -> Any:
    """Return the next item, or None at the end."""
    try:
        return next(given, None)
    except Exception as error:  # pyarrow raises nearly anything on damaged files
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise InputError("file", f"{path!s:.200} ({reason:.80})", "a .parquet file") from None
