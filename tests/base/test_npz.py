"""Files of arrays: never pickles."""

import pickle
from pathlib import Path

import numpy as np
import pytest

import attnmargin as am
from attnmargin.base.npz import read_npz, write_npz


def test_round_trip(tmp_path: Path) -> None:
    path = write_npz(tmp_path / "x.npz", {"a": np.arange(3), "word": "fro"})
    read = read_npz(path, needs=("a",))
    assert read["a"].tolist() == [0, 1, 2]
    assert str(read["word"]) == "fro"


def _pickled_array(path: Path) -> None:
    np.savez(path, X=np.array([{"a": 1}], dtype=object), allow_pickle=True)


BAD = {
    "missing": (lambda path: None, "which does not exist"),
    "text": (lambda path: path.write_text("hello"), "not an .npz file"),
    "empty": (lambda path: path.write_bytes(b""), "not an .npz file"),
    "pickle": (lambda path: path.write_bytes(pickle.dumps([1, 2])), "pickled objects"),
    "pickled array": (_pickled_array, "pickled objects"),
    "truncated": (lambda path: path.write_bytes(b"PK\x03\x04"), "not an .npz file"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_file_is_one_sentence(name: str, tmp_path: Path) -> None:
    make, words = BAD[name]
    path = tmp_path / "x.npz"
    make(path)
    with pytest.raises(am.InputError) as caught:
        read_npz(path)
    assert words in str(caught.value)
    assert str(path) in str(caught.value)


def test_single_array_is_not_an_npz(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(3))
    with pytest.raises(am.InputError, match="a single array"):
        read_npz(tmp_path / "x.npy")


def test_missing_array_is_named(tmp_path: Path) -> None:
    path = write_npz(tmp_path / "x.npz", {"a": np.arange(3)})
    with pytest.raises(am.InputError, match="with a; needs an array named 'X'"):
        read_npz(path, needs=("X",))


def test_other_byte_orders_are_read(tmp_path: Path) -> None:
    data = am.random_data(2, 3, 4)
    big = {"X": data.X.numpy().astype(">f8"), "z": data.z.numpy().astype(">f8")}
    loaded = am.AttentionData.load(write_npz(tmp_path / "big.npz", big))
    assert bool((loaded.X == data.X).all())
