"""Next-token data from files: JSON lines, or plain text whose last word is the label."""

import json
from collections.abc import Iterator
from itertools import tee
from pathlib import Path
from typing import Any

from attnmargin.base.errors import InputError
from attnmargin.graphs.collection import TokenGraphs, token_graphs

_JSON = (".jsonl", ".ndjson", ".json")
_LINE = '{"tokens": ["a", "b"], "next": "a"}'


def read_sequences(path: str | Path) -> Iterator[tuple[list[str], str]]:
    """Sequences of a file and what follows them, one by one; tokens are names.

    ``.jsonl``: one object per line, ``{"tokens": [...], "next": ...}``. Any other file, and what
    comes through a pipe such as ``/dev/stdin``, is plain text: words of a line, and its last word
    as the label. Empty lines are skipped.

    Example:
        >>> import attnmargin as am, pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp(), "words.txt")
        >>> _ = path.write_text("the cat sat the\\n")
        >>> list(am.graphs.read_sequences(path))
        [(['the', 'cat', 'sat'], 'the')]
    """
    path = Path(path)
    read = _json_line if path.suffix.lower() in _JSON else _text_line
    number = 0
    try:
        with path.open(encoding="utf-8-sig") as stream:
            for number, line in enumerate(stream, 1):
                if line.strip():
                    yield read(line, f"{path}, line {number}")
    except UnicodeDecodeError as error:
        where = f"{path}, after line {number} ({error.reason})"
        raise InputError("file", where, "text in UTF-8") from None
    except OSError as error:
        raise InputError(
            "file", f"{path!s:.200} ({error.strerror})", "a .jsonl or text file"
        ) from None


def _text_line(line: str, where: str) -> tuple[list[str], str]:
    words = line.split()
    if len(words) < 2:
        raise InputError("file", f"{where} with one word", "words, and the next one, per line")
    return words[:-1], words[-1]


def _json_line(line: str, where: str) -> tuple[list[str], str]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError("file", f"{where} ({error!s:.80})", f"lines such as {_LINE}") from None
    if not isinstance(record, dict) or not {"tokens", "next"} <= record.keys():
        raise InputError("file", f"{where} without tokens and next", f"lines such as {_LINE}")
    tokens, label = record["tokens"], record["next"]
    if not isinstance(tokens, list) or not tokens or not all(map(_plain, (*tokens, label))):
        got = f"{where} with {json.dumps(record)[:80]}"
        raise InputError("file", got, "at least one token, all of them words or whole numbers")
    names = [str(token) for token in (*tokens, label)]
    if not all(map(_written, names)):
        raise InputError("file", f"{where} with half of a character", "text that can be written")
    return names[:-1], names[-1]


def _written(name: str) -> bool:
    """Whether a name can be written: JSON may escape half of a surrogate pair."""
    return not any("\ud800" <= character <= "\udfff" for character in name)


def _plain(token: Any) -> bool:
    return isinstance(token, str | int) and not isinstance(token, bool)


def read_graphs(path: str | Path, *, unrealisable: str = "drop") -> TokenGraphs:
    """Token-priority graphs of a file, read as a stream; see :func:`token_graphs`.

    Samples whose label is not in their sequence are dropped unless told otherwise: attention
    cannot produce a token that it does not see, and they do not pull.

    Example:
        >>> import attnmargin as am, pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp(), "next.jsonl")
        >>> _ = path.write_text('{"tokens": ["a", "b"], "next": "a"}\\n')
        >>> print(am.graphs.Automaton(am.graphs.read_graphs(path)).next("b a b"))
        a: retrieval of a over b
    """
    first, second = tee(read_sequences(path))
    return token_graphs(
        (tokens for tokens, _ in first), (label for _, label in second), unrealisable=unrealisable
    )
