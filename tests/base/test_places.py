"""Names that come from users and files: nothing is written outside of the folder that was named."""

import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import attnmargin as am
from attnmargin.base.npz import read_npz, write_npz
from attnmargin.base.safetensors import write_tensors
from attnmargin.papers.engine.reproduce import reproduce
from attnmargin.papers.registry import find
from attnmargin.report.pages.demo import write_demo
from attnmargin.report.sweeps import write_sweep
from attnmargin.text.checkpoint import Checkpoint
from attnmargin.text.download import download_reviews
from tests.campaigns.fuzz.arrays import npz
from tests.commands import command

PLACES = ("../../out", "/etc/passwd", "..", ".", "", "a/../../b", "~/x", "C:\\x", "a\x00b",
          "x" * 500, "con", "../../../../../../../../tmp/evil.npz")  # fmt: skip


def inside(folder: Path) -> set[str]:
    """All that lies in a folder and beside it."""
    return {str(own.relative_to(folder.parent)) for own in folder.parent.rglob("*")}


def named(x: int, word: str) -> dict[str, Any]:
    if x == 2:
        raise ValueError(word)
    return {"value": 1.0, "said": word}


def half(x: int) -> float:
    return 0.5 * x


def test_settings_are_no_part_of_a_path(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    found = am.sweep(named, {"x": [1, 2], "word": list(PLACES)}, out=folder, jobs=1)
    write_sweep(found, folder)
    assert (len(found.done), len(found.failed)) == (len(PLACES), len(PLACES))
    names = {own.name for own in folder.rglob("*") if own.is_file()}
    assert all(name.split(".")[0].isalnum() for name in names)
    assert {path.split("/")[0] for path in inside(folder)} == {"out"}
    plan = json.loads((folder / "sweep.json").read_text())
    plan["points"] = [{"x": "../../../x"}]
    (folder / "sweep.json").write_text(json.dumps(plan))
    assert am.collect(folder).missing == [{"x": "../../../x"}]


@pytest.mark.parametrize("name", ["a/b", "../x", "/x", "_x", ""])
def test_results_are_named_by_plain_words(name: str, tmp_path: Path) -> None:
    found = am.sweep(lambda x: {name: 1.0}, {"x": [1]}, out=tmp_path / "out", jobs=1)
    assert "needs words that do not begin with _" in found.failed[0][1]


@pytest.mark.parametrize("name", PLACES[:7])
def test_figures_and_points_are_those_that_are_known(
    name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    for words in ((name,), ("A:fig3", "--point", name), (f"A:{name}",)):
        code, _, err = command(capsys, "reproduce", *words, "--out", out)
        assert (code, len(err.splitlines())) == (2, 1)
    code, _, err = command(capsys, "reproduce", "A:fig3", "--shard", name, "--out", out)
    assert (code, "--shard: got" in err) == (2, True)
    assert not [path for path in inside(out) if path != "out"]


def test_members_of_archives_are_only_names(tmp_path: Path) -> None:
    path = write_npz(tmp_path / "x.npz", {"a": np.ones(1)})
    path.write_bytes(npz({name: np.ones(1) for name in PLACES[:4]}))
    assert set(PLACES[:4]) <= set(read_npz(path)) | {"", "."}
    assert inside(tmp_path / "x.npz") == {"x.npz"}


def member(kind: bytes, name: str, target: str = "") -> tarfile.TarInfo:
    own = tarfile.TarInfo(name)
    own.type, own.linkname, own.size = kind, target, 1 if kind == tarfile.REGTYPE else 0
    return own


MEMBERS = {
    "above": member(tarfile.REGTYPE, "aclImdb/../../../out"),
    "absolute link": member(tarfile.SYMTYPE, "aclImdb/link", "/etc"),
    "link above": member(tarfile.SYMTYPE, "aclImdb/link", "../../../.."),
    "hard link": member(tarfile.LNKTYPE, "aclImdb/link", "../../../etc/passwd"),
    "device": member(tarfile.CHRTYPE, "aclImdb/zero"),
}


@pytest.mark.parametrize("name", MEMBERS)
def test_archives_of_reviews_stay_in_their_folder(name: str, tmp_path: Path) -> None:
    path = tmp_path / "reviews.tar.gz"
    with tarfile.open(path, "w:gz") as stored:
        stored.addfile(MEMBERS[name], io.BytesIO(b"x"))
    digest = hashlib.md5(path.read_bytes()).hexdigest()
    with pytest.raises(am.InputError, match=r"needs a \.tar\.gz of reviews"):
        download_reviews(tmp_path / "data", path.as_uri(), digest)
    assert inside(tmp_path / "data") == {"data", "reviews.tar.gz"}


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A file that no command was told of."""
    path = tmp_path / "elsewhere"
    path.write_text("mine")
    return path


def refused(write: Any, elsewhere: Path) -> None:
    """Check that a link is refused, and that the file at its end stays."""
    with pytest.raises(am.InputError, match="which is a link; needs a folder of plain files"):
        write()
    assert elsewhere.read_text() == "mine"


def test_links_in_folders_are_never_written_through(elsewhere: Path, tmp_path: Path) -> None:
    folder = tmp_path / "sweep"
    found = am.sweep(half, {"x": [1]}, out=folder, jobs=1)
    for name in ("table.csv", "table.parquet", "picture.png"):
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(elsewhere)
        refused(lambda: write_sweep(found, folder), elsewhere)
        (folder / name).unlink()
    mark = next((folder / "points").rglob("*.npz"))
    mark.unlink()
    mark.symlink_to(elsewhere)
    refused(lambda: am.sweep(half, {"x": [1]}, out=folder, jobs=1), elsewhere)
    (tmp_path / "plan").mkdir()
    (tmp_path / "plan" / "sweep.json").symlink_to(elsewhere)
    with pytest.raises(am.InputError):
        am.sweep(half, {"x": [1]}, out=tmp_path / "plan", jobs=1)
    assert elsewhere.read_text() == "mine"


@pytest.mark.parametrize("name", ["index.html", "data.npz", "solution.npz"])
def test_links_in_the_folder_of_the_demo(name: str, elsewhere: Path, tmp_path: Path) -> None:
    (tmp_path / name).symlink_to(elsewhere)
    refused(lambda: write_demo(tmp_path), elsewhere)


@pytest.mark.parametrize("name", ["result.json", "fig3.png"])
def test_links_among_results(name: str, elsewhere: Path, tmp_path: Path) -> None:
    folder = tmp_path / "A" / "fig3"
    folder.mkdir(parents=True)
    (folder / name).symlink_to(elsewhere)
    refused(lambda: reproduce(find("A:fig3"), out=tmp_path), elsewhere)


@pytest.mark.parametrize("name", ["model.safetensors", "run.json"])
def test_links_among_checkpoints(name: str, elsewhere: Path, tmp_path: Path) -> None:
    write_tensors(elsewhere, {}, {})
    elsewhere.write_text("mine")
    run = Checkpoint.at(tmp_path / "run")
    (run.folder / name).symlink_to(elsewhere)
    record = {"recipe": {}, "data": "", "history": []}
    if name == "model.safetensors":
        with pytest.raises(am.InputError):
            run.save({}, record)
        assert elsewhere.read_text() == "mine"
    else:
        refused(lambda: run.save({}, record), elsewhere)
