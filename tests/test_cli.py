"""The command line as a person or a program uses it."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import attnmargin as am
from attnmargin.base.npz import read_npz, write_npz
from attnmargin.cli import main as cli
from tests.problems import optimal_problem
from tests.test_theory import contradiction


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    """Exit code, standard output, standard error of one command."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["attnmargin", *map(str, words)])
        patch.setenv("COLUMNS", "200")
        with pytest.raises(SystemExit) as stopped:
            cli.main()
    captured = capsys.readouterr()
    return int(str(stopped.value.code or 0)), captured.out, captured.err


@pytest.fixture
def data_file(tmp_path: Path) -> Path:
    return am.random_data(4, 5, 6, name="cli").save(tmp_path / "data.npz")


def test_solve_prints_tables(capsys: pytest.CaptureFixture[str], data_file: Path) -> None:
    code, out, err = run(capsys, "solve", data_file)
    assert (code, err) == (0, "")
    assert "optimal" in out
    assert "wants token" in out


def test_solve_prints_one_json_object(capsys: pytest.CaptureFixture[str], data_file: Path) -> None:
    code, out, err = run(capsys, "solve", data_file, "--json")
    record = json.loads(out)
    assert (code, err) == (0, "")
    data = am.AttentionData.load(data_file)
    solution = am.solve(optimal_problem(data))
    assert record["results"][0]["value"] == pytest.approx(float(solution.value))
    support = record["results"][0]["support"]
    assert [row["row"] for row in support] == solution.support.nonzero().flatten().tolist()
    assert support[0].keys() == {"row", "sequence", "position", "chosen", "other", "demand",
                                 "multiplier"}  # fmt: skip
    assert record["problems"] == record["optimal"] == 1
    assert record["rows"] == 16


def test_solve_a_batch_says_which_are_infeasible(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = am.random_data(5, 5, 2, trials=30, name="cli").save(tmp_path / "data.npz")
    code, out, _ = run(capsys, "solve", path)
    assert code == 1
    assert "… and 10 more" in out
    assert "infeasible" in out
    code, out, _ = run(capsys, "solve", path, "--json")
    record = json.loads(out)
    assert code == 1
    assert len(record["results"]) == 30
    why = [r["why"] for r in record["results"] if r["status"] == "infeasible"]
    assert why
    assert all("wants" in words for words in why)


@pytest.mark.parametrize("suffix", ["npy", "npz", "json"])
def test_selection_from_a_file(
    capsys: pytest.CaptureFixture[str], data_file: Path, tmp_path: Path, suffix: str
) -> None:
    path, choice = tmp_path / f"choice.{suffix}", np.array([0, 1, 2, 3])
    if suffix == "json":
        path.write_text(json.dumps(choice.tolist()))
    elif suffix == "npy":
        np.save(path, choice)
    else:
        np.savez(path, selection=choice)
    code, out, _ = run(capsys, "solve", data_file, "--select", path, "--json")
    data = am.AttentionData.load(data_file)
    expected = am.solve(am.token_problem(data.X, data.z, choice))
    assert code == 0
    assert json.loads(out)["results"][0]["value"] == pytest.approx(float(expected.value))


def test_a_saved_problem_is_solved_too(
    capsys: pytest.CaptureFixture[str], data_file: Path, tmp_path: Path
) -> None:
    path = optimal_problem(am.AttentionData.load(data_file)).save(tmp_path / "problem.npz")
    first, second = (run(capsys, "solve", file, "--json")[1] for file in (data_file, path))
    assert json.loads(first)["results"] == json.loads(second)["results"]


@pytest.mark.parametrize("d", [2, 6])
def test_solve_then_verify(capsys: pytest.CaptureFixture[str], tmp_path: Path, d: int) -> None:
    """Proofs of infeasibility (d = 2) are verified like optima."""
    data = am.random_data(5, 5, d, trials=4, name="verify").save(tmp_path / "data.npz")
    path = tmp_path / "solution.npz"
    code, out, _ = run(capsys, "solve", data, "--out", path)
    assert f"saved: {path}" in out
    code, out, _ = run(capsys, "verify", path)
    assert code == 0
    assert "every certificate holds (fro norm, 4 problems)" in out
    code, out, _ = run(capsys, "verify", path, "--json")
    assert code == 0
    assert json.loads(out)["holds"] is True


@pytest.mark.parametrize("change", ["W", "dual", "status", "bound"])
def test_verify_refuses_a_corrupted_solution(
    capsys: pytest.CaptureFixture[str], data_file: Path, tmp_path: Path, change: str
) -> None:
    path = tmp_path / "solution.npz"
    run(capsys, "solve", data_file, "--out", path)
    arrays = read_npz(path)
    if change == "status":
        arrays["status"] = np.asarray("infeasible")
    else:
        index = np.abs(arrays["W" if change == "W" else "dual"]).argmax()
        arrays[change].reshape(-1)[index] += 1e-3
    write_npz(path, arrays)
    code, out, _ = run(capsys, "verify", path)
    assert code == 1
    assert "1 of 1 do not hold" in out


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
        "norm": (["solve", good, "--norm", "max"], "norm: got 'max'"),
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
        "predict ties": (["predict", ties], "with the same best score"),
        "predict parameter": (
            ["predict", good, "--parameter", "Q"],
            "--parameter: got 'Q'; needs one of W, KQ",
        ),
        "predict p": (["predict", good, "--p", "0.5"], "p > 1"),
        "predict loss": (["predict", good, "--loss", "hinge"], "--loss: got 'hinge'"),
        "predict steps": (["predict", good, "--verify", "--steps", "0"], "at least one step"),
        "predict page of a batch": (["predict", batch, "--html", page], "needs one instance"),
        "predict words": (["predict", named, "--html", page], "words: got 1 rows of [2] names"),
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
    code, out, err = run(capsys, *words)
    assert (code, out) == (2, "")
    assert sentence in err
    assert err.startswith("attnmargin: ")
    assert err.count("\n") == 1


def test_demo_writes_a_page_that_needs_no_network(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code, out, _ = run(capsys, "demo", "--out", tmp_path / "demo")
    assert code == 0
    page = tmp_path / "demo" / "index.html"
    assert out.splitlines()[-1] == f"page: {page}"
    text = page.read_text()
    assert "<svg" in text
    assert "<script" not in text
    assert 'src="http' not in text
    assert 'href="http' not in text
    assert run(capsys, "verify", tmp_path / "demo" / "solution.npz")[0] == 0
    assert json.loads(run(capsys, "demo", "--out", tmp_path / "demo", "--json")[1])["holds"]


def test_predict_tells_people(capsys: pytest.CaptureFixture[str], data_file: Path) -> None:
    code, out, err = run(capsys, "predict", data_file, "--verify")
    assert (code, err) == (0, "")
    prediction = am.predict(am.AttentionData.load(data_file))
    assert out.startswith("Depends on the start")
    assert f"selection {prediction.selection.tolist()}" in out
    assert "A: Theorem 6" in out
    assert "training selects the predicted tokens (4,000 steps, the same from step" in out


def test_predict_tells_programs(capsys: pytest.CaptureFixture[str], data_file: Path) -> None:
    code, out, err = run(capsys, "predict", data_file, "--verify", "--steps", 500, "--json")
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
    assert entry["training"]["agrees"] is True
    assert entry["training"]["steps"] == 500
    checks = {check["statement"]: check["outcome"] for check in entry["checks"]}
    assert checks["A: Theorem 1"] == "holds"


def test_predict_a_batch(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = am.random_data(3, 3, 3, trials=25, name="cli").save(tmp_path / "data.npz")
    code, out, _ = run(capsys, "predict", path, "--parameter", "W", "--verify")
    assert code == 0
    assert "… and 5 more" in out
    assert "guaranteed" in out


def test_predict_an_infeasible_selection(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The same tokens and query with both labels: one sentence says which demands clash."""
    path = contradiction().save(tmp_path / "data.npz")
    page = tmp_path / "page.html"
    code, out, err = run(capsys, "predict", path, "--html", page)
    assert (code, err) == (1, "")
    sentence = out.splitlines()[0]
    clash = "sequence 0 wants token 0 over token 1, sequence 1 the reverse, with the same query"
    assert sentence.startswith(f"Infeasible: {clash}.")
    assert "No attention weights can select" in page.read_text()


def test_predict_writes_a_page_with_the_words_of_the_file(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    data = am.AttentionData([[[1.0, 0.0], [0.0, 1.0]]], [[1.0, 1.0]], [1], [1.0, 0.0])
    path = data.save(tmp_path / "data.npz", [["<b>good", "bad"]])
    page, solution = tmp_path / "page.html", tmp_path / "solution.npz"
    code, out, _ = run(capsys, "predict", path, "--verify", "--html", page, "--out", solution)
    assert code == 0
    assert f"page: {page}" in out
    text = page.read_text()
    assert "<h1>Attention will learn to select “&lt;b&gt;good”</h1>" in text
    assert "<b>" not in text
    assert f"attnmargin predict {path} --verify --html {page}" in text
    assert run(capsys, "verify", solution)[0] == 0


def test_an_empty_batch_is_trained_in_no_time(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = am.random_data(2, 3, 4, trials=0).save(tmp_path / "none.npz")
    code, out, _ = run(capsys, "train", path, "--steps", "2", "--json")
    assert (code, json.loads(out)["results"]) == (0, [])


def test_the_command_is_installed() -> None:
    command = Path(sys.executable).parent / "attnmargin"
    done = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("attnmargin, version ")


def test_limited_rank_and_uniqueness(
    capsys: pytest.CaptureFixture[str], data_file: Path, tmp_path: Path
) -> None:
    path = tmp_path / "local.npz"
    arguments = ("solve", data_file, "--norm", "nuc", "--rank", "1")
    code, out, _ = run(capsys, *arguments, "--json", "--out", path)
    (result,) = json.loads(out)["results"]
    assert code == 0
    assert result["rank"] == 1
    assert result["status"] in ("local", "optimal")
    assert run(capsys, "verify", path)[0] == 0
    unit = [[1.0, 0.0], [0.0, 1.0]]
    am.margin_problem(unit, unit).save(tmp_path / "unit.npz")
    code, out, _ = run(capsys, "solve", tmp_path / "unit.npz", "--norm", "nuc")
    assert code == 0
    assert "the solution is not unique: another W has the same norm" in out


def test_train_compares_with_the_svm(
    capsys: pytest.CaptureFixture[str], data_file: Path, tmp_path: Path
) -> None:
    path = tmp_path / "run.npz"
    code, out, err = run(capsys, "train", data_file, "--steps", 3000, "--json", "--out", path)
    assert (code, err) == (0, "")
    record = json.loads(out)
    (result,) = record["results"]
    assert result["correlation"] > 0.99
    expected = am.train(am.AttentionData.load(data_file), steps=3000, record=100)
    assert result["selection"] == expected.selection[-1].tolist()
    assert am.Trajectory.load(path).W.shape == (31, 6, 6)
    code, out, _ = run(capsys, "train", data_file, "--parameter", "KQ", "--steps", 50)
    assert code == 0
    assert "correlation with the SVM of the selected tokens, norm nuc: mean" in out
    code, out, _ = run(capsys, "train", data_file, "--p", 3, "--steps", 50, "--plain")
    assert code == 0
    data = am.AttentionData.load(data_file)
    headless = am.AttentionData(data.X, data.z, data.y).save(tmp_path / "headless.npz")
    code, out, _ = run(capsys, "train", headless, "--parameter", "vW", "--steps", 50, "--json")
    assert json.loads(out)["results"][0]["optimal tokens"] is None
    code, out, err = run(capsys, "train", data_file, "--steps", -1)
    assert code == 2
    assert err == "attnmargin: --steps: got -1; needs a whole number of at least 0\n"
