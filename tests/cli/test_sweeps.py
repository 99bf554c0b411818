"""attnmargin sweep and collect."""

import csv
import json
import shutil
from pathlib import Path

import pytest

from tests.commands import command, write

Capture = pytest.CaptureFixture[str]
SPEC = ['compute = "solve"', "trials = 2", "[grid]", "n = 3", "T = 4", "d = [4, 6, 8]"]


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    return write(tmp_path / "margins.toml", SPEC)


def test_a_sweep_writes_table_and_picture_beside_its_specification(
    capsys: Capture, spec: Path
) -> None:
    code, out, err = command(capsys, "sweep", spec, "--jobs", "1")
    folder = spec.with_suffix("")
    assert (code, err) == (0, "")
    assert "3 of 3 points are finished" in out
    assert (folder / "picture.png").read_bytes().endswith(b"IEND\xaeB`\x82")
    rows = list(csv.DictReader((folder / "table.csv").read_text().splitlines()))
    assert [(row["d"], row["trial"]) for row in rows] == [(d, k) for d in "468" for k in "01"]
    assert (folder / "table.parquet").is_file()


def test_shards_are_collected(capsys: Capture, spec: Path, tmp_path: Path) -> None:
    command(capsys, "sweep", spec, "--jobs", "1", "--out", tmp_path / "whole")
    for i in (1, 3):
        code, out, _ = command(capsys, "sweep", spec, "--jobs", "1", "--shard", f"{i}/3",
                               "--out", tmp_path / str(i), "--json")  # fmt: skip
        assert (code, json.loads(out)["shard"], json.loads(out)["points"]) == (0, f"{i}/3", 1)
    code, out, _ = command(capsys, "collect", tmp_path / "1", tmp_path / "3")
    assert (code, "2 of 3 points are finished" in out) == (1, True)
    assert "missing: n = 3, T = 4, d = 6" in out
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLURM_ARRAY_TASK_ID", "1")
        patch.setenv("SLURM_ARRAY_TASK_COUNT", "3")
        command(capsys, "sweep", spec, "--jobs", "1", "--out", tmp_path / "2")
    assert len(list((tmp_path / "2").rglob("*.npz"))) == 1
    folders = [tmp_path / name for name in ("1", "2", "3")]
    code, out, _ = command(capsys, "collect", *folders, "--out", tmp_path / "all", "--json")
    assert (code, json.loads(out)["missing"]) == (0, [])
    assert [(tmp_path / name / "table.csv").read_bytes() for name in ("all", "whole")] == [
        (tmp_path / "whole" / "table.csv").read_bytes()
    ] * 2


def test_failed_points_are_named(capsys: Capture, tmp_path: Path) -> None:
    lines = ['command = "attnmargin-none {d}"', "[grid]", "d = [1, 2, 3, 4, 5, 6, 7]"]
    path = write(tmp_path / "s.toml", lines)
    code, out, _ = command(capsys, "sweep", path, "--jobs", "1")
    assert (code, "failed: d = 1: InputError: command: got 'attnmargin-none'" in out) == (1, True)
    assert "and 2 more that are failed" in out
    code, out, _ = command(capsys, "collect", path.with_suffix(""), "--json")
    assert (code, len(json.loads(out)["failed"]), json.loads(out)["files"]) == (1, 7, [])


def test_options_replace_what_the_file_says(capsys: Capture, spec: Path) -> None:
    words = ("sweep", spec, "--jobs", "1", "--trials", "1", "--seed", "3", "--json")
    record = json.loads(command(capsys, *words)[1])
    assert (record["trials"], record["seed"], record["done"]) == (1, 3, 3)
    assert record["means"]["names"][0] == "d"
    code, _, err = command(capsys, "sweep", spec, "--jobs", "1")
    assert (code, "--out: got" in err, "a folder of its own" in err) == (2, True, True)
    shutil.rmtree(spec.with_suffix(""))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--shard", "4/3"), "--shard: got 4/3; needs i/n"),
        (("--jobs", "0"), "--jobs: got 0; needs a whole number"),
        (("--engine", "cloud"), "--engine: got 'cloud'; needs one of local, ray, dask"),
        (("--address", "here"), "--address: got 'here'; needs engine 'ray' or 'dask'"),
        (("--time-limit", "0"), "--time-limit: got 0; needs a positive number"),
        (("--trials", "0"), "--trials: got 0"),
    ],
)
def test_bad_options(capsys: Capture, spec: Path, words: tuple[str, str], said: str) -> None:
    code, out, err = command(capsys, "sweep", spec, *words)
    assert (code, out) == (2, "")
    assert said in err


def test_what_is_not_a_sweep(capsys: Capture, tmp_path: Path) -> None:
    code, _, err = command(capsys, "collect", tmp_path)
    assert (code, "sweep.json, which does not exist" in err) == (2, True)
    code, _, err = command(capsys, "sweep", tmp_path / "no.toml")
    assert (code, "which does not exist" in err) == (2, True)


def test_figures_in_shards(capsys: Capture, tmp_path: Path) -> None:
    """Two shards of a figure leave nothing to compute; the whole command then judges it."""
    words = ("reproduce", "D:lemma2", "--trials", "1", "--out", tmp_path)
    code, out, _ = command(capsys, *words, "--shard", "1/2", "--json")
    assert (code, len(json.loads(out)["points"])) == (0, 3)
    code, out, _ = command(capsys, *words, "--shard", "2/2", "--jobs", "2")
    assert "2 points of shard 2/2 are saved in" in out
    times = {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*.npz")}
    assert len(times) == 5
    record = json.loads(command(capsys, *words, "--json")[1])
    assert len(record["points"]) == 5
    assert all(p.stat().st_mtime_ns == t for p, t in times.items())
