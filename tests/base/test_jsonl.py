"""One reader of JSON lines: texts and sequences are read, and refused, in the same way."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import attnmargin as am
from attnmargin.base.jsonl import json_lines, text_lines

TEXTS = [{"text": "fine", "label": 1}, {"text": "bad", "label": 0}]
SEQUENCES = [{"tokens": ["a", "b"], "next": "a"}, {"tokens": ["b"], "next": "b"}]


def corpus(path: Path) -> object:
    return am.text.read_corpus(path).texts


def sequences(path: Path) -> object:
    return list(am.graphs.read_sequences(path))


BOTH = pytest.mark.parametrize(("read", "rows"), [(corpus, TEXTS), (sequences, SEQUENCES)])
Read = Callable[[Path], object]


def lines(rows: list[dict[str, Any]]) -> list[bytes]:
    return [json.dumps(row, ensure_ascii=False).encode() for row in rows]


@BOTH
def test_marks_and_blank_lines_are_skipped(
    read: Read, rows: list[dict[str, Any]], tmp_path: Path
) -> None:
    plain, odd = tmp_path / "plain.jsonl", tmp_path / "odd.jsonl"
    first, second = lines(rows)
    plain.write_bytes(first + b"\n" + second)
    odd.write_bytes(b"\xef\xbb\xbf" + first + b"\r\n\n  \n" + second + b"\n\n")
    assert read(odd) == read(plain)


@BOTH
@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"{", r"file: got .*bad\.jsonl, line 4 \(.*\); needs "),
        (b"[1]", r"file: got .*bad\.jsonl, line 4.*; needs "),
        (b"[" * 100_000, r"line 4 \(.*\); needs "),
        (b'{"x": "\xff"}', "line 4 with bytes that are not UTF-8; needs text in UTF-8"),
        (b'{"x": "\xed\xa0\x80"}', "line 4 with bytes that are not UTF-8; needs text in UTF-8"),
    ],
)
def test_broken_lines_are_refused_by_number(
    read: Read, rows: list[dict[str, Any]], line: bytes, words: str, tmp_path: Path
) -> None:
    path = tmp_path / "bad.jsonl"
    first, second = lines(rows)
    path.write_bytes(b"\n".join([first, b"", second, line, first]))
    with pytest.raises(am.InputError, match=words) as caught:
        read(path)
    assert "\n" not in str(caught.value)


@BOTH
@pytest.mark.parametrize("half", ["\\ud800", "\\udc00", "x\\ud800y", "\\ude00\\ud83d"])
def test_halves_of_characters_are_refused_by_number(
    read: Read, rows: list[dict[str, Any]], half: str, tmp_path: Path
) -> None:
    path = tmp_path / "half.jsonl"
    first, second = (line.decode() for line in lines(rows))
    word = "fine" if "fine" in first else '"a"'
    wrong = first.replace(word, half if word == "fine" else f'"{half}"')
    path.write_text("\n".join([first, second, wrong]))
    with pytest.raises(am.InputError, match="line 3 with half of a character; needs text in UTF-8"):
        read(path)


@BOTH
def test_whole_pairs_of_escapes_are_read(
    read: Read, rows: list[dict[str, Any]], tmp_path: Path
) -> None:
    path = tmp_path / "whole.jsonl"
    first, second = (line.decode() for line in lines(rows))
    word = "fine" if "fine" in first else "b"
    path.write_text("\n".join([first.replace(word, "\\ud83d\\ude00"), second]))
    assert "😀" in str(read(path))


@BOTH
def test_missing_files_get_one_sentence(
    read: Read, rows: list[dict[str, Any]], tmp_path: Path
) -> None:
    with pytest.raises(am.InputError, match=r"no\.jsonl \(No such file or directory\); needs a "):
        read(tmp_path / "no.jsonl")


def test_keys_that_must_be_there(tmp_path: Path) -> None:
    path = tmp_path / "keys.jsonl"
    path.write_text('{"a": 1}\n\n{"a": 1, "b": 2}')
    assert list(json_lines(path, "x")) == [(1, {"a": 1}), (3, {"a": 1, "b": 2})]
    with pytest.raises(am.InputError, match=r"line 1 without a and b; needs two keys"):
        list(json_lines(path, "x", "two keys", ("a", "b")))


def test_plain_lines_name_the_line_that_is_not_in_utf_8(tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    path.write_bytes(b"a b\n\nc d\ncaf\xe9 e\n")
    with pytest.raises(am.InputError, match="line 4 with bytes that are not UTF-8"):
        list(text_lines(path, "x"))
    with pytest.raises(am.InputError, match="line 4 with bytes that are not UTF-8"):
        sequences(path)
