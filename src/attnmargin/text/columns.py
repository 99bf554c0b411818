"""Which column of a table holds the texts, and which one the labels."""

from collections.abc import Sequence
from typing import Any

from attnmargin.base.errors import InputError
from attnmargin.text.source import Source

# A guessed label has at most so many values, of so many characters, and of fewer words on average.
_FEW, _LONGEST, _WORDS = 20, 40, 3
_SPLIT = "split"


def choose_columns(source: Source, text: str | None, label: str | None) -> tuple[int, int]:
    """Find the columns of texts and labels: by name, by number from 1 on, or by what they hold.

    Without a name, the columns are ``text`` and ``label``, or the only one with texts and the only
    one with few different values.
    """
    texts = _named(source, "text", text)
    labels = _named(source, "label", label)
    taken = [texts, labels, _place(source.names, _SPLIT)]
    free = [place for place in range(len(source.names)) if place not in taken]
    if labels is None:
        own = [place for place in free if place != texts]
        labels = _only(source, "label", own, _labels(source, own))
    if texts is None:
        own = [place for place in free if place != labels]
        texts = _only(source, "text", own, [k for k in own if _is_text(source.head[k])])
    if texts == labels:
        raise InputError("label", f"the column {source.names[texts]!r} twice", "another column")
    return texts, labels


def split_column(source: Source) -> int | None:
    """Find the column that names the split of each text."""
    return _place(source.names, _SPLIT)


def _named(source: Source, role: str, name: str | None) -> int | None:
    found = _place(source.names, role if name is None else name)
    if name is None or found is not None:
        return found
    got = f"{name!r} for {source.path!s:.200} with columns {_listed(source.names)}"
    raise InputError(role, got, "one of them")


def _place(names: Sequence[str], name: str) -> int | None:
    """Find a column by its name, whatever the case if that is enough, or by its number."""
    for own, wanted in ((list(names), name), ([n.casefold() for n in names], name.casefold())):
        if own.count(wanted) == 1:
            return own.index(wanted)
    if name.isdecimal() and 1 <= int(name) <= len(names):
        return int(name) - 1
    return None


def _only(source: Source, role: str, free: list[int], likely: list[int]) -> int:
    if len(likely) == 1:
        return likely[0]
    names = source.names
    if likely:
        got = f"{source.path!s:.200}, where {_listed([names[k] for k in likely])} are likely"
        raise InputError(role, got, f"the name of the column of {role}s")
    shown = _listed(names) or "nothing"
    raise InputError(role, f"{source.path!s:.200} with columns {shown}", f"the column of {role}s")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"{name:.40}" for name in names[:12]) + (", …" if len(names) > 12 else "")


def _labels(source: Source, free: list[int]) -> list[int]:
    """List the columns with few different values; those of a sorted file are read to the end."""
    likely = [k for k in free if _is_label(source.head[k], least=1)]
    if len(likely) == 1 and _is_label(source.head[likely[0]]):
        return likely
    columns = source.read(likely) if likely else []
    return [k for k, column in zip(likely, columns, strict=True) if _is_label(column)]


def _is_label(column: list[Any], least: int = 2) -> bool:
    values = [str(value).strip() for value in column if value is not None]
    distinct = {value for value in values if value}
    if not least <= len(distinct) <= min(_FEW, len(values) // 2):
        return False
    words = sum(len(value.split()) for value in distinct)
    return words < _WORDS * len(distinct) and max(map(len, distinct)) <= _LONGEST


def _is_text(column: list[Any]) -> bool:
    """Tell whether most values are different words, two or more."""
    given = [value for value in column if value is not None and value != ""]
    if not given or not all(isinstance(value, str) for value in given):
        return False
    worded = sum(len(value.split(None, 2)) > 1 for value in given)
    return 2 * worded >= len(given) and 2 * len(set(given)) >= len(given)
