"""Tables of texts: delimiter, quotes and header are found, and checked on every row."""

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import final

from attnmargin.base.errors import InputError
from attnmargin.base.streams import LONGEST, lines_of
from attnmargin.text.source import HEAD, NEEDS, Columns, Source

_DELIMITERS = (",", ";", "\t", "|")
_SPOKEN = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|"}
_BETWEEN = "the character between columns, and quotes around cells that contain it"
_NAMES = {"\t": "a tab", " ": "a blank"}
# Characters that are looked at to find the style.
_SAMPLE = 1 << 20
_CHUNK = 1 << 14
# Longest name of a column.
_LONGEST = 60
# Columns that say that the first row is a header.
_USUAL = {"text", "label"}


@final
@dataclass(frozen=True)
class Style:
    """How a table is written: what stands between cells, and around those that contain it."""

    delimiter: str
    quote: str | None = '"'
    escape: str | None = None  # before a quote within a cell; None: it is doubled
    blank: bool = False  # whether blanks follow delimiters

    def rows(self, lines: Iterable[str]) -> Iterator[list[str]]:
        """Split lines into rows of cells; blank lines are skipped."""
        reader = csv.reader(
            lines,
            delimiter=self.delimiter,
            quotechar=self.quote,
            quoting=csv.QUOTE_MINIMAL if self.quote else csv.QUOTE_NONE,
            doublequote=self.escape is None,
            escapechar=self.escape,
            skipinitialspace=self.blank,
            strict=True,
        )
        return filter(None, reader)


def table_source(
    path: Path,
    *,
    wanted: set[str],
    delimiter: str | None = None,
    encoding: str | None = None,
    header: bool | None = None,
) -> Source:
    """Open a table of cells.

    Args:
        wanted: names of columns that are asked for; a first row with one of them is a header.
        delimiter, encoding, header: what is known; the rest is found.
    """
    csv.field_size_limit(LONGEST)
    lines, cut = _sample(lines_of(path, NEEDS, encoding, ""))
    if not any(map(str.strip, lines)):
        raise InputError("file", f"{path!s:.200}, which is empty", "a table of texts")
    styles, rows = _found(path, lines, cut, wanted, delimiter)
    titled = _titled(rows, wanted) if header is None else header
    width = len(rows[0])
    names = [cell.strip() for cell in rows[0]] if titled else [f"{k + 1}" for k in range(width)]
    head: Columns = [list(column) for column in zip(*rows[titled : HEAD + titled], strict=True)]

    def read(places: list[int]) -> Columns:
        failures: list[tuple[int, InputError]] = []
        for style in styles:
            found, seen, error = _cells(path, style, encoding, width, places)
            if error is None:
                return [column[titled:] for column in found]
            failures.append((seen, error))
        raise max(failures, key=lambda failure: failure[0])[1]

    return Source(path, names, head or [[] for _ in names], read)


def _sample(lines: Iterator[str]) -> tuple[list[str], bool]:
    """Return the first lines, and whether there are more."""
    taken, size = [], 0
    for line in lines:
        taken.append(line)
        size += len(line)
        if size > _SAMPLE or len(taken) > 4 * HEAD:
            return taken, next(lines, None) is not None
    return taken, False


def _found(
    path: Path, lines: list[str], cut: bool, wanted: set[str], delimiter: str | None
) -> tuple[list[Style], list[list[str]]]:
    """Find the styles, the likeliest first, that split the sample into the same first rows."""
    marks = _DELIMITERS if delimiter is None else (_mark(delimiter),)
    fits: dict[str, list[tuple[Style, list[list[str]]]]] = {}
    for style in _styles(marks):
        rows, _ = _parsed(style, lines, cut)
        if rows and _even(rows) and not _torn(rows, style):
            fits.setdefault(style.delimiter, []).append((style, rows))
    chosen = _likeliest({mark: own[0][1] for mark, own in fits.items()}, path, wanted)
    if chosen is None:
        raise _uneven(path, lines, cut, marks)
    rows = fits[chosen][0][1]
    return [style for style, own in fits[chosen] if own[:1] == rows[:1]], rows


def _mark(delimiter: str) -> str:
    found = _SPOKEN.get(delimiter.lower(), delimiter)
    if len(found) != 1 or found in '\r\n"':
        raise InputError("delimiter", repr(delimiter)[:40], "one character, or the word tab")
    return found


def _styles(marks: Iterable[str]) -> Iterator[Style]:
    for mark in marks:
        plain = Style(mark)
        yield plain
        yield replace(plain, blank=True)
        yield replace(plain, escape="\\")
        if mark != "'":
            yield replace(plain, quote="'")
            yield replace(plain, quote="'", blank=True)
        yield replace(plain, quote=None)


def _parsed(style: Style, lines: list[str], cut: bool) -> tuple[list[list[str]], str]:
    """Split the sample; return the rows, and what is wrong with the next one."""
    rows: list[list[str]] = []
    try:
        rows.extend(style.rows(lines))
    except csv.Error as error:
        if not (cut and "end of data" in str(error)):
            return [], str(error)
    return rows, ""


def _even(rows: list[list[str]]) -> bool:
    return len(rows[0]) > 1 and all(len(row) == len(rows[0]) for row in rows)


def _torn(rows: list[list[str]], style: Style) -> bool:
    """Tell whether quotes of another style stand in most cells of a column."""
    for column in zip(*rows, strict=True):
        cells = [cell.strip() for cell in column]
        for quote in "\"'":
            begun = [cell for cell in cells if cell.startswith(quote)]
            ended = sum(len(cell) > 1 and cell.endswith(quote) for cell in begun)
            within = ended if style.quote is None or style.quote != quote else 0
            if 2 * max(len(begun) - ended, within) > len(cells):
                return True
    return False


def _likeliest(fits: dict[str, list[list[str]]], path: Path, wanted: set[str]) -> str | None:
    """Choose among delimiters that all split the sample evenly; None if there is none."""
    if len(fits) > 1:
        named = [mark for mark, rows in fits.items() if _named(rows[0], wanted)]
        marks = named or [mark for mark, rows in fits.items() if _repeats(rows)] or list(fits)
        if len(marks) > 1:
            shown = " and ".join(map(_spoken, marks))
            got = f"{path!s:.200}, which both {shown} split evenly"
            raise InputError("delimiter", got, "the character between columns")
        return marks[0]
    return next(iter(fits), None)


def _named(first: list[str], wanted: set[str]) -> bool:
    names = {cell.strip().casefold() for cell in first}
    return bool(names & {name.casefold() for name in wanted if not name.isdigit()} | names & _USUAL)


def _repeats(rows: list[list[str]]) -> bool:
    """Tell whether some column repeats its values, as labels do."""
    return any(2 * len(set(column)) <= len(column) for column in zip(*rows[1:], strict=True))


def _titled(rows: list[list[str]], wanted: set[str]) -> bool:
    """Decide whether the first row names the columns.

    It does if a wanted name stands in it. It does not if one of its cells occurs again below, as
    labels do, or is a number, long, or missing.
    """
    first = [cell.strip() for cell in rows[0]]
    if _named(first, wanted):
        return True
    for cell, column in zip(first, zip(*rows[1:], strict=True), strict=False):
        if cell and any(cell == other.strip() for other in column):
            return False
    return first.count("") <= 1 and all(
        len(cell) <= _LONGEST and not _number(cell) for cell in first
    )


def _number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _uneven(path: Path, lines: list[str], cut: bool, marks: Iterable[str]) -> InputError:
    """Say where the likeliest delimiter fails."""
    splits = [(mark, *_parsed(Style(mark), lines, cut)) for mark in marks]
    mark, rows, wrong = max(splits, key=lambda found: len(found[1][0]) if found[1] else 0)
    if not rows:
        return InputError("delimiter", f"{path!s:.200} ({wrong})", _BETWEEN)
    if len(rows[0]) < 2:
        got = f"{path!s:.200} with one column at {_spoken(mark)}"
        return InputError("delimiter", got, _BETWEEN)
    if len({len(row) for row in rows}) == 1:
        got = f"{path!s:.200} ({wrong or 'with quotes that do not enclose cells'})"
        return InputError("delimiter", got, _BETWEEN)
    return _ragged(path, rows, len(rows[0]), 0, mark)


def _cells(
    path: Path, style: Style, encoding: str | None, width: int, places: list[int]
) -> tuple[Columns, int, InputError | None]:
    """Read some columns while all rows have the same number of cells; say where they do not."""
    found: Columns = [[] for _ in places]
    reader, seen = style.rows(lines_of(path, NEEDS, encoding, "")), 0
    try:
        while rows := list(islice(reader, _CHUNK)):
            if set(map(len, rows)) != {width}:
                error = _ragged(path, rows, width, seen, style.delimiter)
                return found, seen + _odd(rows, width), error
            for place, column in zip(places, found, strict=True):
                column += [row[place] for row in rows]
            seen += len(rows)
    except csv.Error as error:
        got = f"{path!s:.200} after row {seen} ({error})"
        return found, seen, InputError("file", got, "a table of texts")
    return found, seen, None


def _ragged(path: Path, rows: list[list[str]], width: int, seen: int, mark: str) -> InputError:
    place = _odd(rows, width)
    got = (
        f"{path!s:.200}, row {seen + place + 1} with {len(rows[place])} cells where the first has "
        f"{width}, split at {_spoken(mark)}"
    )
    return InputError("delimiter", got, _BETWEEN)


def _odd(rows: list[list[str]], width: int) -> int:
    return next(i for i, row in enumerate(rows) if len(row) != width)


def _spoken(mark: str) -> str:
    return _NAMES.get(mark, repr(mark))
