"""Tables of sweeps as files: csv and parquet."""

import csv
import io
from pathlib import Path
from typing import Any

from attnmargin.base.errors import InputError, MissingPackageError
from attnmargin.base.files import write_whole
from attnmargin.sweeps.sweep import Table

# With what a formula begins, in one spreadsheet or another.
_FORMULAS = ("=", "+", "-", "@", "\t", "\r")


def write_table(table: Table, path: str | Path) -> Path:
    """Write a table as ``.csv`` or ``.parquet``, by the file's name."""
    path = Path(path)
    if not table:
        raise InputError("table", "no row", "a sweep with a finished point")
    if path.suffix == ".csv":
        return _write_csv(table, path)
    if path.suffix == ".parquet":
        return _write_parquet(table, path)
    raise InputError("path", str(path), "a name that ends in .csv or .parquet")


def _write_csv(table: Table, path: Path) -> Path:
    """Write numbers with all their digits, so that they are read back as they were.

    Words that a spreadsheet would take for a formula get an apostrophe.
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text)  # ends lines by \r\n, so that a word with either is quoted
    writer.writerow(map(_inert, table))
    columns = (map(_inert, column.tolist()) for column in table.values())
    writer.writerows(zip(*columns, strict=True))
    return write_whole(path, lambda stream: stream.write(text.getvalue().encode(errors="replace")))


def _inert(cell: Any) -> Any:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULAS) else cell


def _write_parquet(table: Table, path: Path) -> Path:
    try:
        import pyarrow as arrow
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise MissingPackageError("a table in parquet", "attnmargin[text]") from error
    plain = arrow.table({name: column.tolist() for name, column in table.items()})
    return write_whole(path, lambda stream: parquet.write_table(plain, stream))
