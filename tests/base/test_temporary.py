"""Temporary files: what is being written stays, what was left behind goes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from attnmargin.base import temporary
from attnmargin.base.files import write_whole
from attnmargin.base.temporary import PREFIX, create_temporary, lock, remove_leftovers


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_that_is_being_written_stays_until_its_process_ends(tmp_path: Path) -> None:
    handle, path = create_temporary(tmp_path)
    remove_leftovers(tmp_path)
    assert names(tmp_path) == [path.name]
    os.close(handle)
    remove_leftovers(tmp_path)
    assert names(tmp_path) == []


def test_the_next_write_removes_what_a_killed_process_left(tmp_path: Path) -> None:
    code = (
        "import os, signal\n"
        "from attnmargin.base.files import write_whole\n"
        f"write_whole({str(tmp_path / 'x')!r}, lambda stream: os.kill(os.getpid(), signal.SIGKILL))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -9
    left = names(tmp_path)
    assert len(left) == 1
    assert left[0].startswith(PREFIX)
    write_whole(tmp_path / "y", lambda stream: stream.write(b"whole"))
    assert names(tmp_path) == ["y"]


def test_a_process_looks_for_leftovers_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    looked: list[Path] = []
    monkeypatch.setattr(temporary, "remove_leftovers", looked.append)
    for name in "abc":
        write_whole(tmp_path / name, lambda stream: stream.write(b"whole"))
    assert looked == [tmp_path]


def test_one_process_never_takes_the_file_that_another_writes(tmp_path: Path) -> None:
    """Both write the same file, one inside of the other."""

    def inner(stream: object) -> None:
        write_whole(tmp_path / "x", lambda other: other.write(b"inner"))
        stream.write(b"outer")  # type: ignore[attr-defined]

    write_whole(tmp_path / "x", inner)
    assert names(tmp_path) == ["x"]
    assert (tmp_path / "x").read_bytes() == b"outer"


def test_a_file_that_was_taken_before_it_was_locked_is_made_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    taken: list[str] = []

    def late(handle: int, wait: bool) -> bool:
        if not taken:
            taken.extend(names(tmp_path))
            os.unlink(tmp_path / taken[0])
        return lock(handle, wait)

    monkeypatch.setattr(temporary, "lock", late)
    handle, path = create_temporary(tmp_path)
    os.close(handle)
    assert len(taken) == 1
    assert names(tmp_path) == [path.name] != taken


def test_only_files_are_leftovers(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("kept")
    (tmp_path / f"{PREFIX}link").symlink_to(tmp_path / "other")
    (tmp_path / f"{PREFIX}folder").mkdir()
    remove_leftovers(tmp_path)
    assert names(tmp_path) == [f"{PREFIX}folder", f"{PREFIX}link", "other"]


def test_files_have_the_rights_that_the_user_gives_to_new_files(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        path = write_whole(tmp_path / "x", lambda stream: stream.write(b"x"))
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o640
