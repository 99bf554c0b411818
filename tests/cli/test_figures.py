"""The command reproduce."""

import json
from itertools import pairwise
from multiprocessing import active_children
from pathlib import Path

import numpy as np
import pytest

from attnmargin.papers.engine import reproduce as engine
from attnmargin.papers.registry import experiments, find
from tests.commands import command


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
    assert len(listed["figures"]) == len(experiments())
    assert {figure["paper"] for figure in listed["figures"]} == set(listed["papers"])
    code, out, err = command(capsys, "reproduce", "B:fig0", "--out", tmp_path)
    assert (code, out) == (2, "")
    assert err.startswith("attnmargin: figure: got 'B:fig0'")


def test_the_list_has_one_line_per_figure_under_its_paper(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = command(capsys, "reproduce", "--list")[1].splitlines()
    papers = [k for k, line in enumerate(lines) if not line.startswith(" ")]
    assert len(lines) == len(papers) + len(experiments())
    assert lines[0] == "A  Transformers as Support Vector Machines"
    title = "Paths of descent and SVM directions in the plane (1 trial × 2 points)"
    assert lines[1].split(maxsplit=1) == ["A:fig1", title]
    for first, end in pairwise([*papers, len(lines)]):
        own = {line.split()[0].split(":")[0] for line in lines[first + 1 : end]}
        assert own == {lines[first].split()[0]}


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


def test_points_computed_side_by_side_are_the_same(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = ("reproduce", "D:lemma2", "--trials", "1", "--json")
    code, _, _ = command(capsys, *words, "--out", tmp_path / "one")
    assert command(capsys, *words, "--out", tmp_path / "two", "--jobs", "2")[0] == code
    paths = sorted((tmp_path / "one").rglob("*.npz"))
    assert len(paths) == 5
    for path in paths:
        one, two = (np.load(tmp_path / name / path.relative_to(tmp_path / "one"))
                    for name in ("one", "two"))  # fmt: skip
        for name in set(one) - {"_seconds"}:
            np.testing.assert_array_equal(one[name], two[name])


def test_an_error_in_a_process_is_told(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    words = ("reproduce", "D:lemma2", "--trials", "1", "--jobs", "2", "--out", tmp_path / "file")
    code, _, err = command(capsys, *words)
    assert (code, "--out: got" in err) == (2, True)
    assert not active_children()
    code, _, err = command(capsys, *words[:4], "--jobs", "0")
    assert (code, "--jobs: got 0; needs a whole number" in err) == (2, True)
