"""The engine of reproduce: points that are kept, claims, pictures; figures at small counts."""

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
from attnmargin.papers.engine import reproduce as engine
from attnmargin.papers.engine.experiment import Arrays, Claim, Experiment, Point, Task
from attnmargin.papers.engine.reproduce import reproduce
from attnmargin.papers.registry import experiments, find, names_of
from attnmargin.plot.drawing import draw_picture
from attnmargin.plot.panels import Panel, Picture
from tests.test_cli import run as command


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
        lambda results: [parts.at_least("mean", results["a"]["y"].mean(), 0.0)], pictures,
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
    assert record["claims"][0].keys() == {"claim", "measured", "bound", "holds"}
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


def test_names_of_a_paper() -> None:
    names = names_of(["A"])
    assert names[:4] == ["A:fig1", "A:fig2", "A:fig3", "A:fig4"]
    figures = {f"A:fig{k}" for k in range(1, 13)}
    more = {"A:fig7-penalty", "A:sec7", "A:path", "A:conjecture"}
    assert set(names) == figures | more
    assert names_of(["A:fig7", "A:fig7"]) == ["A:fig7"]


def test_intervals() -> None:
    """Wilson's interval of 8 in 10, from its formula; a mean of equal numbers has no width."""
    low, high = parts.share_interval(np.array([8]), 10)
    assert (float(low[0]), float(high[0])) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    mean, half = parts.mean_error(np.full((4, 2), 3.0))
    assert (mean.tolist(), half.tolist()) == ([3.0, 3.0], [0.0, 0.0])


def test_claims_without_a_number_are_valid_json() -> None:
    record = Claim("c", float("nan"), "≥ 1", np.bool_(False)).record()  # type: ignore[arg-type]
    assert json.loads(json.dumps(record)) == {
        "claim": "c", "measured": None, "bound": "≥ 1", "holds": False,
    }  # fmt: skip


SMALL = {"A:fig4": 3, "A:fig5": 3, "A:fig6": 2, "A:fig8": 6, "A:fig10": 2, "A:conjecture": 1}
QUICK = ("A:fig1", "A:fig3", "A:fig7", "A:fig7-penalty", "A:fig9", "A:fig12")
PAPER_B = ("B:example1", "B:fig2", "B:fig3")
PAPER_C = ("C:fig2", "C:fig3", "C:fig4", "C:fig5", "C:fig6", "C:automaton", "C:convexity",
           "C:orthogonal", "C:path")  # fmt: skip


@pytest.mark.parametrize("name", [*QUICK, *PAPER_B, *PAPER_C, "D:lemma2", "D:theorem5"])
def test_figures_run_at_small_counts(name: str, tmp_path: Path) -> None:
    record = reproduce(find(name), trials=min(experiments()[name].trials, 5), out=tmp_path)
    assert record["claims"]
    pictures = [file for file in record["files"] if file.endswith(".png")]
    assert pictures
    assert all(Path(file).stat().st_size > 5000 for file in pictures)


def test_claims_of_paper_c_hold_at_small_counts(tmp_path: Path) -> None:
    for name in ("C:fig2", "C:fig3", "C:fig4", "C:automaton", "C:orthogonal"):
        record = reproduce(find(name), trials=min(experiments()[name].trials, 10), out=tmp_path)
        assert all(claim["holds"] for claim in record["claims"]), name


@pytest.mark.slow
@pytest.mark.parametrize("name", ["A:fig5", "A:fig10", "A:conjecture", "B:fig4", "B:fig6"])
def test_long_figures_run_at_small_counts(name: str, tmp_path: Path) -> None:
    record = reproduce(find(name), trials=SMALL.get(name, 3), out=tmp_path)
    assert record["claims"]
    if name == "A:fig5":
        shared = reproduce(find("A:fig2"), trials=SMALL[name], out=tmp_path)
        assert shared["seconds"] == 0.0  # the points are those of figure 5


def test_reproduce_on_the_command_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, _ = command(capsys, "reproduce", "A:fig3", "--out", tmp_path, "--json")
    record = json.loads(out)
    assert code == 0
    assert record["figure"] == "A:fig3"
    code, out, _ = command(capsys, "reproduce", "A:fig3", "A:fig1", "--out", tmp_path)
    assert code == 0
    assert "4 of 4 claims hold; 2 figures" in out
    summary = (tmp_path / "A" / "SUMMARY.md").read_text()
    assert "4 of 4 claims hold" in summary
    assert "![Logistic regression beside attention](fig3/fig3.png)" in summary
    listed = json.loads(command(capsys, "reproduce", "--list", "--json")[1])
    assert len(listed["figures"]) == 44
    code, out, err = command(capsys, "reproduce", "B:fig0", "--out", tmp_path)
    assert (code, out) == (2, "")
    assert err.startswith("attnmargin: figure: got 'B:fig0'")


def test_figures_of_reviews_need_their_data(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code, _, err = command(capsys, "reproduce", "B:table1", "--out", tmp_path)
    assert code == 2
    assert "--data: got no folder for B:table1; needs a folder with imdb" in err
    code, _, err = command(capsys, "reproduce", "B:table1", "--out", tmp_path, "--data", tmp_path)
    assert (code, "without imdb" in err) == (2, True)
    assert engine.lacks_data(find("B:fig8"), tmp_path, None)
    assert not engine.lacks_data(find("B:fig8"), tmp_path, tmp_path)
    assert not engine.lacks_data(find("B:fig3"), tmp_path, None)


def test_single_points_are_those_of_a_whole_run(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = ("reproduce", "D:lemma2", "--trials", "2", "--out", tmp_path)
    code, out, _ = command(capsys, *words, "--point", "d16", "--point", "d64")
    paths = [Path(line) for line in out.split()]
    assert (code, [path.name for path in paths]) == (0, ["d16.npz", "d64.npz"])
    times = [path.stat().st_mtime_ns for path in paths]
    record = json.loads(command(capsys, *words, "--json")[1])
    assert len(record["points"]) == 5
    assert times == [path.stat().st_mtime_ns for path in paths]
    code, _, err = command(capsys, *words, "--point", "d3")
    assert (code, "--point: got 'd3'; needs one of d16, d64" in err) == (2, True)
    code, _, err = command(capsys, *words, "D:fig2", "--point", "d16")
    assert (code, "--point: got figures 'D:lemma2 D:fig2'; needs one figure" in err) == (2, True)
    code, _, err = command(capsys, *words, "--point", "d16", "--redraw")
    assert (code, "--point: got --redraw as well" in err) == (2, True)
    code, _, err = command(capsys, "reproduce", "D:lemma2", "--out", paths[0], "--point", "d16")
    assert (code, "--out: got" in err) == (2, True)
    code, _, err = command(capsys, "reproduce", "D:lemma2", "--trials", "0", "--point", "d16")
    assert (code, "trials: got 0" in err) == (2, True)


@pytest.mark.slow
def test_a_killed_run_gives_the_same_numbers(tmp_path: Path) -> None:
    """kill −9 at some moment, start again: finished points are not touched, numbers are equal."""
    words = [sys.executable, "-m", "attnmargin", "reproduce", "A:fig9", "--trials", "20"]
    target = tmp_path / "killed"
    process = subprocess.Popen([*words, "--out", target], stdout=subprocess.DEVNULL)
    points = target / "A" / "fig9" / "points"
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and len(list(points.glob("*.npz"))) < 3:
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    before = {path.name: path.stat().st_mtime_ns for path in points.glob("*.npz")}
    assert 3 <= len(before) < 12
    record = reproduce(find("A:fig9"), trials=20, out=target)
    assert all((points / name).stat().st_mtime_ns == at for name, at in before.items())
    whole = reproduce(find("A:fig9"), trials=20, out=tmp_path / "whole")
    assert record["claims"] == whole["claims"]


def test_panels_of_every_kind_are_drawn() -> None:
    x = np.arange(3.0)
    series = [
        {"kind": kind, "name": kind, "x": x, "y": x + 1.0, "low": x, "high": x + 2.0}
        for kind in ("line", "bar", "points", "arrow", "text")
    ]
    series.append({"kind": "level", "name": "level", "x": x, "y": np.array(2.0)})
    panel = Panel(title="t", axes=("x", "y"), series=series, ticks=["a", "b", "c"],  # type: ignore[typeddict-item]
                  limits=(0.0, 5.0))  # fmt: skip
    figure = draw_picture(Picture(name="p", caption="c", panels=[panel, panel], columns=2))
    assert len(figure.axes) == 2
