"""Files: whole or not at all."""

import os
import resource
import shutil
from pathlib import Path

import numpy as np
import pytest

import attnmargin as am
from attnmargin.base.files import write_whole
from attnmargin.base.npz import read_npz, write_npz


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = write_npz(tmp_path / "x.npz", {"a": np.arange(3)})

    def fail(stream: object) -> None:
        raise RuntimeError("disk full")

    with pytest.raises(RuntimeError, match="disk full"):
        write_whole(path, fail)
    assert [p.name for p in tmp_path.iterdir()] == ["x.npz"]
    assert read_npz(path)["a"].tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("error", "reason"),
    [(OSError(28, "No space left on device"), "No space left on device"),
     (OSError("encoder error -2"), "encoder error -2")],
)  # fmt: skip
def test_a_full_disk_gets_one_sentence(tmp_path: Path, error: OSError, reason: str) -> None:
    def fail(stream: object) -> None:
        raise error

    with pytest.raises(am.InputError) as caught:
        write_whole(tmp_path / "x", fail)
    assert str(caught.value) == f"path: got {tmp_path / 'x'} ({reason}); needs a file to write"
    assert list(tmp_path.iterdir()) == []


def test_what_fits_only_the_buffer_does_not_count_as_written(tmp_path: Path) -> None:
    """A disk that is full is noticed when the last bytes leave the buffer."""
    path = write_whole(tmp_path / "x", lambda stream: stream.write(b"old"))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, before[1]))
    try:
        with pytest.raises(am.InputError, match="File too large"):
            write_whole(path, lambda stream: stream.write(b"x" * 20))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert [(own.name, own.read_bytes()) for own in tmp_path.iterdir()] == [("x", b"old")]


def test_the_data_are_on_the_disk_before_the_file_has_its_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen: list[bool] = []
    sync = os.fsync

    def look(handle: int) -> None:
        sync(handle)
        seen.append((tmp_path / "x").exists())

    monkeypatch.setattr(os, "fsync", look)
    write_whole(tmp_path / "x", lambda stream: stream.write(b"x"))
    assert seen == [False]


def test_a_folder_that_is_removed_meanwhile_gets_one_sentence(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(am.InputError, match="No such file or directory"):
        write_whole(folder / "x", lambda stream: shutil.rmtree(folder))


def test_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(am.InputError, match="whose folder does not exist"):
        write_npz(tmp_path / "no" / "x.npz", {"a": np.arange(3)})


def test_only_regular_files_are_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(am.InputError, match="which is not a regular file"):
        write_npz(folder, {"a": np.arange(3)})
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(am.InputError, match="which is not a regular file"):
        write_npz(tmp_path / "pipe", {"a": np.arange(3)})
    with pytest.raises(am.InputError, match="File name too long"):
        write_npz(tmp_path / ("x" * 300), {"a": np.arange(3)})


def test_what_a_link_points_to_is_replaced(tmp_path: Path) -> None:
    target, link = tmp_path / "target.npz", tmp_path / "link.npz"
    write_npz(target, {"a": np.zeros(1)})
    link.symlink_to(target)
    write_npz(link, {"a": np.ones(1)})
    assert link.is_symlink()
    assert read_npz(target)["a"].tolist() == [1.0]


def test_ctrl_c_after_the_renaming_leaves_the_whole_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    rename = os.replace

    def interrupted(source: str, target: str) -> None:
        rename(source, target)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_whole(tmp_path / "file", lambda stream: stream.write(b"whole"))
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("file", b"whole")]


@pytest.mark.parametrize("sync", [True, False])
def test_a_file_is_on_disk_before_its_renaming_unless_nobody_needs_that(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, sync: bool
) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    write_whole(tmp_path / "x", lambda stream: stream.write(b"whole"), sync=sync)
    assert len(synced) == sync
