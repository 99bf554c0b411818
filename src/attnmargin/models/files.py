"""Files that the study of heads reads: texts, and wanted pairs."""

from pathlib import Path

from attnmargin.base.errors import InputError
from attnmargin.base.files import check_file, read_whole
from attnmargin.base.jsonl import json_lines

_TEXTS = "one text per line, or .jsonl with a field text"
_PAIRS = 'lines {"text": 0, "query": 3, "token": 2}, counted from 0'


def read_texts(path: str | Path) -> list[str]:
    """Read a text per line; ``.jsonl`` files have a field ``text``. An empty line is an error."""
    path = check_file(path, "file")
    if path.suffix == ".jsonl":
        texts = [row["text"] for _, row in json_lines(path, _TEXTS, _TEXTS, ("text",))]
    else:
        texts = _lines(path)
    for k, text in enumerate(texts, 1):
        if not isinstance(text, str) or not text.strip():
            kind = "an empty text" if isinstance(text, str) else f"a {type(text).__name__}"
            raise InputError("file", f"{path}, {kind} at place {k}", _TEXTS)
    if not texts:
        raise InputError("file", f"{path}, without any text", _TEXTS)
    return texts


def _lines(path: Path) -> list[str]:
    """Read all lines but the blank ones at the end."""
    try:
        return read_whole(path, "file", _TEXTS).decode("utf-8-sig").rstrip().splitlines()
    except UnicodeDecodeError:
        raise InputError("file", f"{path} with bytes that are not UTF-8", "text in UTF-8") from None


def read_pairs(path: str | Path) -> list[tuple[int, int, int]]:
    """Read wanted pairs: in text ``text``, the query at one position selects the token at another.

    Positions count from 0 and include special tokens such as [CLS].
    """
    path = check_file(path, "want", "a .jsonl file, or previous, same or next")
    pairs = []
    for number, row in json_lines(path, _PAIRS, _PAIRS, ("text", "query", "token")):
        own = (row["text"], row["query"], row["token"])
        if any(isinstance(x, bool) or not isinstance(x, int) for x in own):
            raise InputError("want", f"{path}, line {number}", _PAIRS)
        pairs.append(own)
    if not pairs:
        raise InputError("want", f"{path}, without any pair", _PAIRS)
    return pairs
