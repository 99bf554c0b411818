"""The kill campaign in small, and proof that it sees what it looks for."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from attnmargin.base.npz import write_npz
from attnmargin.base.safetensors import write_tensors
from attnmargin.base.temporary import PREFIX
from attnmargin.report.pages.html import page, write_page
from attnmargin.sweeps.table import write_table
from tests.campaigns.kills.oracle import TornError, digest, files_of, leftovers
from tests.campaigns.kills.table import tables

# A writer that keeps none of its promises: readers see the file while it is written.
BROKEN = """
import runpy, time
from attnmargin.base import files

def careless(path, write, *, sync=True):
    with open(path, "wb") as stream:
        time.sleep(0.005)
        write(stream)
    return path

files.write_whole = careless
runpy.run_module("tests.campaigns.kills.run", run_name="__main__", alter_sys=True)
"""


def campaign(folder: Path, program: list[str], *words: str) -> dict[str, dict[str, dict[str, int]]]:
    out = folder / "kills.json"
    more = ["--faketime", "none", "--scratch", str(folder), "--out", str(out)]
    done = subprocess.run(
        [sys.executable, *program, *words, *more], capture_output=True, text=True, check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )  # fmt: skip
    assert out.is_file(), done.stderr
    record = json.loads(out.read_text())
    assert tables(record).count("| all |") == 2
    assert done.returncode == any(row["wrong"] for own in record["commands"].values()
                                  for row in own.values())  # fmt: skip
    return record["commands"]


def test_nothing_is_lost_or_torn(tmp_path: Path) -> None:
    words = ["--commands", "train", "train-text", "--kills", "2", "--rounds", "1"]
    events = ["killed", "killed while writing", "disk full", "folder removed", "two processes",
              "clock set"]  # fmt: skip
    program = ["-m", "tests.campaigns.kills.run"]
    for rows in campaign(tmp_path, program, *words, "--events", *events).values():
        assert {event: row["wrong"] for event, row in rows.items()} == dict.fromkeys(events, 0)
        assert rows["killed while writing"]["killed"] == 2
        assert rows["disk full"]["files"] > 0


def test_the_campaign_sees_a_careless_writer(tmp_path: Path) -> None:
    words = ["--commands", "train", "--events", "killed while writing", "--kills", "4"]
    rows = campaign(tmp_path, ["-c", BROKEN], *words)["train"]
    assert rows["killed while writing"]["torn"] > 0


def files(folder: Path) -> dict[str, Path]:
    """One whole file of every kind that commands write."""
    table = {"d": np.array([1, 2]), "margin": np.array([0.5, 0.25])}
    plain = folder / "record.json"
    plain.write_text(json.dumps({"a": [1, 2], "seconds": 3}) + "\n")
    return {
        "npz": write_npz(folder / "x.npz", {"a": np.arange(9)}),
        "json": plain,
        "safetensors": write_tensors(
            folder / "x.safetensors", {"a": torch.arange(9.0)}, {"run": '{"history": []}'}
        ),
        "html": write_page(folder / "x.html", page("title", "<p>text</p>")),
        "csv": write_table(table, folder / "x.csv"),
        "parquet": write_table(table, folder / "x.parquet"),
    }


@pytest.mark.parametrize("kind", ["npz", "json", "safetensors", "html", "csv", "parquet"])
@pytest.mark.parametrize("share", [0.0, 0.5, 0.999])
def test_a_file_that_is_cut_short_is_torn(tmp_path: Path, kind: str, share: float) -> None:
    path = files(tmp_path)[kind]
    whole, data = digest(path), path.read_bytes()
    path.write_bytes(data[: min(int(share * len(data)), len(data) - 2)])
    with pytest.raises(TornError):
        digest(path)
    path.write_bytes(data)
    assert digest(path) == whole


def test_timings_are_no_numbers(tmp_path: Path) -> None:
    first = write_npz(tmp_path / "a.npz", {"x": np.ones(2), "_seconds": np.array(1.0)})
    second = write_npz(tmp_path / "b.npz", {"x": np.ones(2), "_seconds": np.array(2.0)})
    third = write_npz(tmp_path / "c.npz", {"x": np.zeros(2), "_seconds": np.array(2.0)})
    assert digest(first) == digest(second) != digest(third)


def test_temporary_files_have_no_final_name(tmp_path: Path) -> None:
    (tmp_path / f"{PREFIX}0").write_text("half")
    (tmp_path / "x.json").write_text("{}")
    assert (list(files_of(tmp_path)), leftovers(tmp_path)) == (["x.json"], 1)
