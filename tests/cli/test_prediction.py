"""The commands predict and demo."""

import json
from pathlib import Path

import numpy as np
import pytest

import attnmargin as am
from tests.commands import command
from tests.instances import contradiction


def test_demo_writes_a_page_that_needs_no_network(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code, out, _ = command(capsys, "demo", "--out", tmp_path / "demo")
    assert code == 0
    page = tmp_path / "demo" / "index.html"
    assert out.splitlines()[-1] == f"page: {page}"
    text = page.read_text()
    assert "<svg" in text
    assert 'src="http' not in text
    assert 'href="http' not in text
    assert command(capsys, "verify", tmp_path / "demo" / "solution.npz")[0] == 0
    assert json.loads(command(capsys, "demo", "--out", tmp_path / "demo", "--json")[1])["holds"]


def test_predict_tells_people(capsys: pytest.CaptureFixture[str], data_file: Path) -> None:
    code, out, err = command(capsys, "predict", data_file, "--verify")
    assert (code, err) == (0, "")
    prediction = am.predict(am.AttentionData.load(data_file))
    assert out.startswith("Your run (gradient descent on W from zero, steps of length 0.1) will")
    assert f"\nCertain from step {int(prediction.since)} on: " in out
    assert f"selection {prediction.selection.tolist()}" in out
    assert "training selects the predicted tokens (4,000 steps, the same from step" in out


def test_predict_tells_programs(capsys: pytest.CaptureFixture[str], data_file: Path) -> None:
    words = ("--steps", 500, "--json", "--alternatives", "--theorems", "--starts", 20)
    code, out, err = command(capsys, "predict", data_file, "--verify", *words)
    record = json.loads(out)
    assert (code, err) == (0, "")
    prediction = am.predict(am.AttentionData.load(data_file))
    (entry,) = record["results"]
    assert entry["verdict"] == prediction.verdict
    assert entry["selection"] == prediction.selection.tolist()
    assert entry["margin"] == pytest.approx(float(prediction.margin))
    assert entry["support"] == prediction.support.nonzero().tolist()
    assert prediction.search is not None
    assert [a["selection"] for a in entry["alternatives"]] == prediction.search.selections.tolist()
    assert sum(row["runs"] for row in entry["starts"]) == 20
    assert entry["since"] == int(prediction.since)
    assert entry["training"]["agrees"] is True
    assert entry["training"]["plain"] is True
    assert entry["training"]["steps"] == 500
    checks = {check["statement"]: check["outcome"] for check in entry["checks"]}
    assert checks["A: Theorem 1"] == "holds"


def test_predict_a_batch(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = am.random_data(3, 3, 3, trials=25, name="cli").save(tmp_path / "data.npz")
    code, out, _ = command(capsys, "predict", path, "--parameter", "W", "--verify")
    assert code == 0
    assert "… and 5 more" in out
    assert "guaranteed" in out


def test_predict_an_infeasible_selection(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The same tokens and query with both labels: one sentence says which demands clash."""
    path = contradiction().save(tmp_path / "data.npz")
    page = tmp_path / "page.html"
    code, out, err = command(capsys, "predict", path, "--html", page)
    assert (code, err) == (1, "")
    sentence = out.splitlines()[1]
    clash = "sequence 0 wants token 0 over token 1, sequence 1 the reverse, with the same query"
    assert sentence.startswith(f"Undecided: no weights select these tokens together: {clash};")
    assert "no attention weights select them together</h1>" in page.read_text()


def test_predict_writes_a_page_with_the_words_of_the_file(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    data = am.AttentionData([[[1.0, 0.0], [0.0, 1.0]]], [[1.0, 1.0]], [1], [1.0, 0.0])
    path = data.save(tmp_path / "data.npz", [["<b>good", "bad"]])
    page, solution = tmp_path / "page.html", tmp_path / "solution.npz"
    code, out, _ = command(capsys, "predict", path, "--verify", "--html", page, "--out", solution)
    assert code == 0
    assert f"page: {page}" in out
    text = page.read_text()
    assert "steps of length 0.1) will select “&lt;b&gt;good”</h1>" in text
    assert "<b>" not in text
    assert f"attnmargin predict {path} --verify --html {page}" in text
    assert command(capsys, "verify", solution)[0] == 0


def test_a_run_from_a_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    X = [[[-2.0, 1.0], [0.0, 0.0]], [[1.0, 0.0], [0.0, 0.0]]]
    data = am.AttentionData(X, [[1.0, 0.0], [1.0, 0.0]], [1, 1], [3.0, 6.1])
    path = data.save(tmp_path / "data.npz")
    np.save(tmp_path / "W.npy", np.array([[0.0, 0.0], [40.0, 0.0]]))
    np.savez(tmp_path / "W.npz", W=np.array([[0.0, 0.0], [40.0, 0.0]]))
    ends = {"zero": [1, 0], tmp_path / "W.npy": [0, 0], tmp_path / "W.npz": [0, 0]}
    for start, end in ends.items():
        out = command(capsys, "predict", path, "--start", start, "--lr", "0.05", "--json")[1]
        assert json.loads(out)["results"][0]["selection"] == end
    code, out, _ = command(capsys, "predict", path, "--start", "random", "--plain", "--lr", "1")
    assert code == 0
    assert out.startswith("Your run (gradient descent on W from random weights, plain steps at ")
    for start, words in (("none.npy", "--start: got"), (path, "W")):
        code, _, err = command(capsys, "predict", path, "--start", start)
        assert (code, words in err) == (2, True)
