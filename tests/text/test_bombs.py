"""Tables of texts that are made to fill the memory, or to hang: one sentence each."""

import gzip
import os
import tracemalloc
from contextlib import suppress
from pathlib import Path

import pytest

import attnmargin as am
from attnmargin.base import files
from attnmargin.text import source

MB = 1 << 20


@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
def test_a_field_of_a_gigabyte(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"x{suffix}"
    mark = "," if suffix == ".csv" else "\t"
    with path.open("wb") as stream:
        stream.write(f'text{mark}label\nfine{mark}1\n"'.encode() + b"a" * (17 * MB))
        stream.truncate(1 << 30)  # sparse: it takes no room on the disk
    tracemalloc.start()
    with pytest.raises(am.InputError, match="line 3 with more than 16,777,216 characters"):
        am.text.read_corpus(path)
    assert tracemalloc.get_traced_memory()[1] < 250 * MB
    tracemalloc.stop()


def test_a_field_over_many_lines(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(b'text,label\nfine,1\n"' + (b"a" * 1000 + b"\n") * 17_000)
    with pytest.raises(am.InputError, match=r"x\.csv"):
        am.text.read_corpus(path)


def test_small_packed_files_of_many_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_LEAST_ROOM", 1000)
    (tmp_path / "x.csv.gz").write_bytes(gzip.compress(b"text,label\n" + b"fine,1\nbad,0\n" * 10**5))
    with pytest.raises(am.InputError, match=r"x\.csv\.gz"):
        am.text.read_corpus(tmp_path / "x.csv.gz")


def parquet(path: Path, columns: dict[str, object]) -> Path:
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    return path


def test_parquet_of_too_many_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = parquet(
        tmp_path / "x.parquet", {"text": ["fine", "bad"] * 20_000, "label": [1, 0] * 20_000}
    )
    assert len(am.text.read_corpus(path)) == 40_000
    monkeypatch.setattr(source, "most_bytes", lambda size: 10**6)
    with pytest.raises(am.InputError, match="a small file of too many rows"):
        am.text.read_corpus(path)


def test_parquet_whose_pages_claim_other_lengths(tmp_path: Path) -> None:
    path = parquet(tmp_path / "x.parquet", {"text": ["fine", "bad"] * 50, "label": [1, 0] * 50})
    data = path.read_bytes()
    for place in range(4, len(data) - 8, 7):  # lengths of pages, dictionaries and the footer
        path.write_bytes(data[:place] + b"\xfe\xff\xff\xff\x0f" + data[place + 5 :])
        with suppress(am.InputError):  # and nothing else
            am.text.read_corpus(path)


def test_parquet_of_dates_and_bytes_that_python_does_not_have(tmp_path: Path) -> None:
    import pyarrow

    days = pyarrow.array([2**31 - 1, 0], pyarrow.date32())
    broken = pyarrow.StringArray.from_buffers(
        2, pyarrow.py_buffer(b"\0\0\0\0\1\0\0\0\2\0\0\0"), pyarrow.py_buffer(b"\xff\xfe")
    )
    for column in (days, broken):
        path = parquet(tmp_path / "x.parquet", {"text": column, "label": [1, 0]})
        with pytest.raises(am.InputError, match=r"x\.parquet \(.*\); needs a .parquet file"):
            am.text.read_corpus(path)


def test_quotes_that_do_not_enclose_cells(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("9\t[1\n\", 2, '', \"'\"]\n")
    with pytest.raises(am.InputError, match=r"x\.csv"):
        am.text.read_corpus(path)


def test_pipes_within_a_folder_of_texts(tmp_path: Path) -> None:
    for name in ("pos", "neg"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "0.txt").write_text("fine")
    os.mkfifo(tmp_path / "pos" / "1.txt")
    with pytest.raises(am.InputError, match="not a regular file"):
        am.text.read_corpus(tmp_path)
