"""Files that are made to fill the memory, to hang a reader, or to run code: one sentence each."""

import io
import json
import os
import pickle
import struct
import tracemalloc
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import attnmargin as am
from attnmargin.base import files
from attnmargin.base.jsonl import json_lines, text_lines
from attnmargin.base.npz import read_npy, read_npz, write_npz
from attnmargin.base.safetensors import read_notes, read_tensors, write_tensors
from attnmargin.text.pieces import read_vocabulary

MB = 1 << 20


@contextmanager
def within(megabytes: int) -> Iterator[None]:
    """Check that a part of a test takes no more memory."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < megabytes * MB
    finally:
        tracemalloc.stop()


def array(header: str, data: bytes = b"") -> bytes:
    """An array in numpy's format, with any header."""
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data


def archive(path: Path, *members: tuple[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with warnings.catch_warnings(), zipfile.ZipFile(path, "w", method) as stored:
        warnings.simplefilter("ignore")
        for name, data in members:
            stored.writestr(name, data)
    return path


def refused(read: Callable[[], Any]) -> str:
    with within(64), pytest.raises(am.InputError) as caught:
        read()
    said = str(caught.value)
    assert said.isprintable()
    assert len(said) < 1500
    return said


PLAIN = io.BytesIO()
np.save(PLAIN, np.arange(3.0))
THREE = PLAIN.getvalue()
HEADERS = {
    "2^60 numbers": "{'descr': '<f8', 'fortran_order': False, 'shape': (1152921504606846976,), }",
    "no shape": "{'descr': '<f8', 'fortran_order': False, 'shape': (-1, -1), }",
    "long words": "{'descr': '<U2000000000', 'fortran_order': False, 'shape': (1,), }",
    "objects": "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
    "hidden objects": "{'descr': [('a', '|O')], 'fortran_order': False, 'shape': (1,), }",
    "deep": "(" * 5000,
    "Python 2": "{'descr': '<f8', 'fortran_order': False, 'shape': (3L,), }",
    "an escape": "{'descr': '\\d', 'fortran_order': False, 'shape': (3,), }",
    "a call": "__import__('os').system('true')",
}


@pytest.mark.parametrize("name", HEADERS)
def test_headers_of_arrays_that_lie(name: str, tmp_path: Path) -> None:
    data = array(HEADERS[name], pickle.dumps([1]))
    path = archive(tmp_path / "x.npz", ("X.npy", data))
    said = refused(lambda: read_npz(path))
    assert ("pickled objects" in said) == ("objects" in name)
    (tmp_path / "x.npy").write_bytes(data)
    refused(lambda: read_npy(tmp_path / "x.npy"))


def test_zip_bombs_are_refused_before_they_are_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_LEAST_ROOM", MB)
    zeros = np.zeros(16 * MB // 8)
    np.savez_compressed(tmp_path / "x.npz", X=zeros)
    said = refused(lambda: read_npz(tmp_path / "x.npz"))
    assert "bytes in a small file" in said
    whole = write_npz(tmp_path / "own.npz", {"X": zeros})  # what is written can be read
    assert read_npz(whole)["X"].shape == zeros.shape


def test_members_that_claim_four_gigabytes(tmp_path: Path) -> None:
    path = archive(tmp_path / "x.npz", ("X.npy", THREE))
    data = bytearray(path.read_bytes())
    place = data.index(b"PK\x01\x02") + 24
    data[place : place + 4] = b"\xfe\xff\xff\xff"
    path.write_bytes(bytes(data))
    assert "4,294,967,294 bytes in a small file" in refused(lambda: read_npz(path))


def test_odd_members(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    twice = archive(path, ("X.npy", THREE), ("X.npy", THREE))
    assert "two arrays named 'X'" in refused(lambda: read_npz(twice))
    many = archive(path, *((f"a{k}.npy", THREE) for k in range(2000)))
    assert len(read_npz(many)) == 2000
    outside = archive(path, ("../../x.npy", THREE), ("/etc/y.npy", THREE), ("readme", b"words"))
    assert sorted(read_npz(outside)) == ["../../x", "/etc/y"]  # names; no file is written
    assert os.listdir(tmp_path) == ["x.npz"]
    odd = archive(path, ("X.npy", THREE), method=zipfile.ZIP_LZMA)
    assert "a way that numpy does not write" in refused(lambda: read_npz(odd))
    path.write_bytes(path.read_bytes()[:-30])
    refused(lambda: read_npz(path))


def test_words_of_characters_that_do_not_exist(tmp_path: Path) -> None:
    for code in (0x110000, 0xD800, 0xFFFFFFFF):
        words = np.array([code, 0x61], dtype=np.uint32).view("U2")
        np.savez(tmp_path / "x.npz", words=words)
        assert "characters that do not exist" in refused(lambda: read_npz(tmp_path / "x.npz"))
    np.savez(tmp_path / "x.npz", words=np.array([["añ😀", ""]]), none=np.array([""]))
    assert read_npz(tmp_path / "x.npz")["words"].tolist() == [["añ😀", ""]]


SIZES = (0, 1, 2**31, 2**60, 2**64 - 1)


@pytest.mark.parametrize("size", SIZES)
def test_headers_of_tensors_that_claim_other_lengths(size: int, tmp_path: Path) -> None:
    path = write_tensors(tmp_path / "x.safetensors", {"a": torch.ones(3)}, {"b": "c"})
    path.write_bytes(size.to_bytes(8, "little") + path.read_bytes()[8:])
    for read in (read_tensors, read_notes):
        assert "needs a whole .safetensors file" in refused(partial(read, path))


ENTRIES: dict[str, Any] = {
    "over another": {"a": [0, 8], "b": [0, 8]},
    "beyond the end": {"a": [0, 1 << 60]},
    "backwards": {"a": [8, 0]},
    "after a gap": {"a": [4, 8]},
    "below zero": {"a": [-8, 0]},
    "words": {"a": ["0", "8"]},
}


@pytest.mark.parametrize("name", ENTRIES)
def test_tensors_that_are_not_in_the_file(name: str, tmp_path: Path) -> None:
    header = {
        key: {"dtype": "F32", "shape": [2], "data_offsets": place}
        for key, place in ENTRIES[name].items()
    }
    text = json.dumps(header).encode()
    path = tmp_path / "x.safetensors"
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(8))
    refused(lambda: read_tensors(path))


def test_empty_tensors_of_every_kind_are_read(tmp_path: Path) -> None:
    own = {"a": torch.zeros(0, 3, dtype=torch.int64), "b": torch.ones(2)}
    found, notes = read_tensors(write_tensors(tmp_path / "x.safetensors", own, {}))
    assert found["a"].shape == (0, 3)
    assert found["a"].dtype == torch.int64
    assert notes == {}


@pytest.mark.parametrize("text", [b"[" * 100_000, b'{"__metadata__": [1]}', b"null", b'{"a": 1}'])
def test_odd_headers_of_tensors(text: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(len(text).to_bytes(8, "little") + text)
    refused(lambda: read_tensors(path))


def test_a_line_of_a_gigabyte(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    with path.open("wb") as stream:
        stream.write(b'{"text": "' + b"a" * (17 * MB))
        stream.truncate(1 << 30)  # sparse: it takes no room on the disk
    with within(150), pytest.raises(am.InputError, match="line 1 with more than 16,777,216 char"):
        list(json_lines(path, "x"))
    with within(1), pytest.raises(am.InputError, match="/dev/zero with bytes of zero"):
        list(text_lines("/dev/zero", "x"))


def read_all(path: Path) -> None:
    """Call every reader that takes a file."""
    for read in (read_npz, read_npy, read_tensors, read_notes, am.text.read_corpus,
                 read_vocabulary):  # fmt: skip
        refused(partial(read, path))


def test_what_is_not_a_regular_file_is_never_opened(tmp_path: Path) -> None:
    pipe, link, loop = tmp_path / "pipe.csv", tmp_path / "zero.csv", tmp_path / "loop.csv"
    os.mkfifo(pipe)
    link.symlink_to("/dev/zero")
    loop.symlink_to(loop)
    for path in (pipe, link, loop):
        read_all(path)


def test_whole_files_have_a_largest_size(tmp_path: Path) -> None:
    path = tmp_path / "x"
    with path.open("wb") as stream:
        stream.truncate(1 << 40)
    said = refused(lambda: files.read_whole(path, "file", "a file"))
    assert "with more than 268,435,456 bytes" in said
    refused(lambda: read_vocabulary(path))


def test_sentences_stay_on_one_line_and_short() -> None:
    said = str(am.InputError("x\n", "\x1b[31m" + "y" * 5000, "z\u2028" * 500))
    assert said.isprintable()
    assert len(said) < 1500
