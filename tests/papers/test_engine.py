"""The engine of reproduce: points that are kept, records, what is refused."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import attnmargin as am
from attnmargin.papers import registry
from attnmargin.papers.engine import experiment as parts
from attnmargin.papers.engine.claims import at_least
from attnmargin.papers.engine.experiment import Arrays, Experiment, Point, Task
from attnmargin.papers.engine.reproduce import reproduce
from attnmargin.papers.registry import find
from attnmargin.plot.panels import Panel, Picture


def toy(calls: list[str], fail_at: str | None = None) -> Experiment:
    """Two points; the second one can be made to stop the run."""

    def compute(task: Task) -> Arrays:
        key = task.settings["key"]
        if key == fail_at:
            raise KeyboardInterrupt
        calls.append(key)
        rng = np.random.default_rng(task.seed)
        return {"y": rng.random(task.trials)}

    def pictures(results: parts.Results) -> list[Picture]:
        series = {"kind": "line", "name": "y", "x": np.arange(3.0), "y": results["a"]["y"][:3]}
        panel = Panel(title="t", axes=("x", "y"), series=[series])  # type: ignore[list-item]
        return [Picture(name="toy", caption="a toy", panels=[panel])]

    return Experiment(
        "A:toy", "A toy", 5, (Point("a", {"key": "a"}), Point("b", {"key": "b"})), compute,
        lambda results: [at_least("mean", results["a"]["y"].mean(), 0.0)], pictures,
    )  # fmt: skip


def install(patch: pytest.MonkeyPatch, experiment: Experiment) -> None:
    patch.setattr(registry, "experiments", lambda: {experiment.name: experiment})


def test_a_stopped_run_goes_on_and_repeats_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first: list[str] = []
    install(monkeypatch, toy(first, fail_at="b"))
    with pytest.raises(KeyboardInterrupt):
        reproduce(find("A:toy"), out=tmp_path)
    second: list[str] = []
    install(monkeypatch, toy(second))
    record = reproduce(find("A:toy"), out=tmp_path)
    assert (first, second) == (["a"], ["b"])
    whole: list[str] = []
    install(monkeypatch, toy(whole))
    again = reproduce(find("A:toy"), out=tmp_path / "other")
    assert whole == ["a", "b"]
    assert record["claims"] == again["claims"]


def test_other_trials_or_seeds_are_computed_anew(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    calls: list[str] = []
    install(monkeypatch, toy(calls))
    for options in ({}, {}, {"trials": 7}, {"trials": 7, "seed": 1}):
        reproduce(find("A:toy"), out=tmp_path, **options)  # type: ignore[arg-type]
    assert calls == ["a", "b"] * 3


def test_a_broken_point_is_computed_anew(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    calls: list[str] = []
    install(monkeypatch, toy(calls))
    reproduce(find("A:toy"), out=tmp_path)
    (tmp_path / "A" / "toy" / "points" / "b.npz").write_bytes(b"half")
    reproduce(find("A:toy"), out=tmp_path)
    assert calls == ["a", "b", "b"]


def test_redraw_computes_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    calls: list[str] = []
    install(monkeypatch, toy(calls))
    with pytest.raises(am.InputError, match="redraw: got no saved point"):
        reproduce(find("A:toy"), out=tmp_path, redraw=True)
    reproduce(find("A:toy"), out=tmp_path)
    picture = tmp_path / "A" / "toy" / "toy.png"
    picture.unlink()
    reproduce(find("A:toy"), out=tmp_path, redraw=True)
    assert picture.is_file()
    assert calls == ["a", "b"]


def test_the_record_is_complete(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install(monkeypatch, toy([]))
    record = reproduce(find("A:toy"), out=tmp_path)
    assert {"figure", "trials", "seconds", "claims", "files", "seed", "versions"} <= set(record)
    assert record["claims"][0].keys() == {
        "claim",
        "measured",
        "error",
        "count",
        "bound",
        "holds",
        "verdict",
    }
    saved = json.loads((tmp_path / "A" / "toy" / "result.json").read_text())
    assert saved["claims"] == record["claims"]
    assert all(Path(file).is_file() for file in record["files"])


def test_bad_words(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(am.InputError, match="figure: got 'A:fig99'; needs one of A:fig1"):
        reproduce(find("A:fig99"), out=tmp_path)
    with pytest.raises(am.InputError, match="trials: got 0; needs at least one trial"):
        reproduce(find("A:fig1"), trials=0, out=tmp_path)
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(am.InputError, match="out: got"):
        reproduce(find("A:fig1"), out=file)


def test_a_killed_run_gives_the_same_numbers(tmp_path: Path) -> None:
    """kill −9 at some moment, start again: finished points are not touched, numbers are equal."""
    words = [sys.executable, "-m", "attnmargin", "reproduce", "D:lemma2", "--trials", "4"]
    target = tmp_path / "killed"
    process = subprocess.Popen([*words, "--out", target], stdout=subprocess.DEVNULL)
    points = target / "D" / "lemma2" / "points"
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and len(list(points.glob("*.npz"))) < 2:
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    before = {path.name: path.stat().st_mtime_ns for path in points.glob("*.npz")}
    assert 2 <= len(before) < 5
    record = reproduce(find("D:lemma2"), trials=4, out=target)
    assert all((points / name).stat().st_mtime_ns == at for name, at in before.items())
    whole = reproduce(find("D:lemma2"), trials=4, out=tmp_path / "whole")
    assert record["claims"] == whole["claims"]
