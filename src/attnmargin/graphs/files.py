"""Next-token data from files: JSON lines, or plain text whose last word is the label."""

import json
from collections.abc import Iterator
from itertools import tee
from pathlib import Path
from typing import Any

from attnmargin.base.errors import InputError
from attnmargin.base.jsonl import json_lines, text_lines
from attnmargin.base.streams import plain_suffix
from attnmargin.graphs.collection import TokenGraphs, token_graphs

_NEEDS = "a .jsonl or text file"
_JSON = (".jsonl", ".ndjson", ".json")
_LINE = '{"tokens": ["a", "b"], "next": "a"}'


def read_sequences(
    path: str | Path, encoding: str | None = None
) -> Iterator[tuple[list[str], str]]:
    """Yield the sequences of a file, each with the token that follows it; tokens are names.

    ``.jsonl`` holds one object per line, ``{"tokens": [...], "next": ...}``. Any other file, and
    any pipe such as ``/dev/stdin``, is plain text: the last word of each line is the label, the
    words before it the sequence. Empty lines are skipped. Files may be compressed by gzip, and be
    in UTF-16 with a byte order mark; ``encoding`` names any other encoding than UTF-8.

    Example:
        >>> import attnmargin as am, pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp(), "words.txt")
        >>> _ = path.write_text("the cat sat the\\n")
        >>> list(am.graphs.read_sequences(path))
        [(['the', 'cat', 'sat'], 'the')]
    """
    path = Path(path)
    if plain_suffix(path) in _JSON:
        record, keys = f"lines such as {_LINE}", ("tokens", "next")
        for number, row in json_lines(path, _NEEDS, record, keys, encoding):
            yield _sequence(row, f"{path}, line {number}")
    else:
        for number, line in text_lines(path, _NEEDS, encoding):
            yield _words(line, f"{path}, line {number}")


def _words(line: str, where: str) -> tuple[list[str], str]:
    words = line.split()
    if len(words) < 2:
        raise InputError("file", f"{where} with one word", "words, and the next one, per line")
    return words[:-1], words[-1]


def _sequence(row: dict[str, Any], where: str) -> tuple[list[str], str]:
    tokens, label = row["tokens"], row["next"]
    if not isinstance(tokens, list) or not tokens or not all(map(_plain, (*tokens, label))):
        got = f"{where} with {json.dumps(row)[:80]}"
        raise InputError("file", got, "at least one token, all of them words or whole numbers")
    return [str(token) for token in tokens], str(label)


def _plain(token: Any) -> bool:
    return isinstance(token, str | int) and not isinstance(token, bool)


def read_graphs(
    path: str | Path, *, unrealisable: str = "drop", encoding: str | None = None
) -> TokenGraphs:
    """Build the token-priority graphs of a file, read as a stream; see :func:`token_graphs`.

    By default, samples whose label is not in their sequence are dropped: attention cannot produce
    a token that it does not see, so they exert no pull.

    Example:
        >>> import attnmargin as am, pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp(), "next.jsonl")
        >>> _ = path.write_text('{"tokens": ["a", "b"], "next": "a"}\\n')
        >>> print(am.graphs.Automaton(am.graphs.read_graphs(path)).next("b a b"))
        a: retrieval of a over b
    """
    first, second = tee(read_sequences(path, encoding))
    return token_graphs(
        (tokens for tokens, _ in first), (label for _, label in second), unrealisable=unrealisable
    )
