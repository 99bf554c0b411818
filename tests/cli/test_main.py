"""The command line: installed, and one sentence for bad input."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import attnmargin as am
from attnmargin.base.npz import write_npz
from tests.commands import command
from tests.problems import optimal_problem


def _bad_inputs(tmp_path: Path) -> dict[str, tuple[list[object], str]]:
    data = am.random_data(2, 3, 4, name="bad")
    good = data.save(tmp_path / "good.npz")
    pickled = tmp_path / "pickled.npz"
    np.savez(pickled, X=np.array([{}], dtype=object), z=np.ones(1))
    ties = am.AttentionData([[A, A]], [A], [1], A).save(tmp_path / "ties.npz")
    missing = write_npz(tmp_path / "missing.npz", {"X": data.X})
    wrong = write_npz(tmp_path / "wrong.npz", {"X": data.X, "z": data.z[..., :2]})
    hole = write_npz(tmp_path / "hole.npz", {"X": data.X * np.nan, "z": data.z})
    unlabelled = write_npz(tmp_path / "unlabelled.npz", {"X": data.X, "z": data.z})
    problem = optimal_problem(data).save(tmp_path / "problem.npz")
    batch = am.random_data(2, 2, 2, trials=2, name="cli").save(tmp_path / "batch.npz")
    named = data.save(tmp_path / "named.npz", [["a", "b"]])
    page = tmp_path / "page.html"
    nonsense = tmp_path / "nonsense.json"
    nonsense.write_text('{"a": 1}')
    return {
        "no such file": (["solve", tmp_path / "no.npz"], "which does not exist"),
        "pickled": (["solve", pickled], "pickled objects"),
        "missing key": (["solve", missing], "needs an array named 'z'"),
        "wrong shape": (["solve", wrong], "z: got shape (2, 2)"),
        "NaN": (["solve", hole], "X: got nan"),
        "no labels": (["solve", unlabelled], "y: got nothing"),
        "ties": (["solve", ties], "with the same best score 1 in sequence 0; needs"),
        "nonsense selection": (
            ["solve", good, "--select", nonsense],
            "selection: got object entries",
        ),
        "out is a folder": (["solve", good, "--out", tmp_path], "which is not a regular file"),
        "demo into a file": (["demo", "--out", good], "a folder to write to"),
        "norm": (["solve", good, "--norm", "trace"], "norm: got 'trace'"),
        "selection": (["solve", good, "--select", tmp_path / "no.npy"], "--select: got"),
        "selection beside rows": (["solve", problem, "--select", good], "a finished problem"),
        "out folder": (
            ["solve", good, "--out", tmp_path / "no" / "s.npz"],
            "--out: got",
        ),
        "not a solution": (["verify", good], "needs an array named 'left'"),
        "verify nothing": (["verify", tmp_path / "no.npz"], "which does not exist"),
        "no command": (["magic"], "No such command 'magic'"),
        "no option": (["solve", good, "--magic"], "No such option"),
        "no file": (["solve"], "Missing argument 'FILE'"),
        "predict no such file": (["predict", tmp_path / "no.npz"], "which does not exist"),
        "predict pickled": (["predict", pickled], "pickled objects"),
        "predict missing key": (["predict", missing], "needs an array named 'z'"),
        "predict wrong shape": (["predict", wrong], "z: got shape (2, 2)"),
        "predict NaN": (["predict", hole], "X: got nan"),
        "predict no labels": (["predict", unlabelled], "y: got nothing"),
        "predict ties": (["solve", ties], "with the same best score"),
        "predict parameter": (
            ["predict", good, "--parameter", "Q"],
            "--parameter: got 'Q'; needs one of W, KQ",
        ),
        "predict p": (["predict", good, "--p", "0.5"], "--p: got 0.5; needs a power from 1.1"),
        "predict loss": (["predict", good, "--loss", "hinge"], "--loss: got 'hinge'"),
        "predict steps": (["predict", good, "--verify", "--steps", "0"], "--steps: got 0; needs"),
        "predict page of a batch": (["predict", batch, "--html", page], "needs one instance"),
        "predict words": (
            ["predict", named, "--html", page],
            "words: got shape (1, 2); needs one name per token",
        ),
        "predict page": (
            ["predict", good, "--html", tmp_path / "no" / "p.html"],
            "--html: got",
        ),
        "graph page": (["graph", good, "--html", tmp_path], "--html: got"),
        "graph file": (["graph", good, "--graphml", tmp_path / "x" / "y"], "--graphml: got"),
        "long name": (["train", good, "--out", tmp_path / ("x" * 300)], "--out: got"),
    }


A = [1.0, 0.0]


CASES = [
    "no such file", "pickled", "missing key", "wrong shape", "NaN", "no labels", "ties", "norm",
    "selection", "selection beside rows", "out folder", "not a solution", "verify nothing",
    "no command", "no option", "no file", "nonsense selection", "out is a folder",
    "demo into a file", "predict no such file", "predict pickled", "predict missing key",
    "predict wrong shape", "predict NaN", "predict no labels", "predict ties", "predict parameter",
    "predict p", "predict loss", "predict steps", "predict page of a batch", "predict words",
    "predict page", "graph page", "graph file", "long name",
]  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_bad_input_is_one_sentence_and_exit_two(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str
) -> None:
    cases = _bad_inputs(tmp_path)
    assert set(cases) == set(CASES)
    words, sentence = cases[name]
    code, out, err = command(capsys, *words)
    assert (code, out) == (2, "")
    assert sentence in err
    assert err.startswith("attnmargin: ")
    assert err.count("\n") == 1


def test_the_command_is_installed() -> None:
    command = Path(sys.executable).parent / "attnmargin"
    done = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("attnmargin, version ")
