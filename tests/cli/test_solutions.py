"""The commands solve and verify."""

import json
import signal
from pathlib import Path

import numpy as np
import pytest
import torch

import attnmargin as am
from attnmargin.base.npz import read_npz, write_npz
from attnmargin.cli.console import searching
from tests.commands import command
from tests.problems import optimal_problem


def test_solve_prints_tables(capsys: pytest.CaptureFixture[str], data_file: Path) -> None:
    code, out, err = command(capsys, "solve", data_file)
    assert (code, err) == (0, "")
    assert "optimal" in out
    assert "wants token" in out


def test_solve_prints_one_json_object(capsys: pytest.CaptureFixture[str], data_file: Path) -> None:
    code, out, err = command(capsys, "solve", data_file, "--json")
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
    code, out, _ = command(capsys, "solve", path)
    assert code == 1
    assert "… and 10 more" in out
    assert "infeasible" in out
    code, out, _ = command(capsys, "solve", path, "--json")
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
    code, out, _ = command(capsys, "solve", data_file, "--select", path, "--json")
    data = am.AttentionData.load(data_file)
    expected = am.solve(am.token_problem(data.X, data.z, choice))
    assert code == 0
    assert json.loads(out)["results"][0]["value"] == pytest.approx(float(expected.value))


def test_a_saved_problem_is_solved_too(
    capsys: pytest.CaptureFixture[str], data_file: Path, tmp_path: Path
) -> None:
    path = optimal_problem(am.AttentionData.load(data_file)).save(tmp_path / "problem.npz")
    first, second = (command(capsys, "solve", file, "--json")[1] for file in (data_file, path))
    assert json.loads(first)["results"] == json.loads(second)["results"]


@pytest.mark.parametrize("d", [2, 6])
def test_solve_then_verify(capsys: pytest.CaptureFixture[str], tmp_path: Path, d: int) -> None:
    """Proofs of infeasibility (d = 2) are verified like optima."""
    data = am.random_data(5, 5, d, trials=4, name="verify").save(tmp_path / "data.npz")
    path = tmp_path / "solution.npz"
    code, out, _ = command(capsys, "solve", data, "--out", path)
    assert f"saved: {path}" in out
    code, out, _ = command(capsys, "verify", path)
    assert code == 0
    assert "every certificate holds (fro norm, 4 problems)" in out
    code, out, _ = command(capsys, "verify", path, "--json")
    assert code == 0
    assert json.loads(out)["holds"] is True


@pytest.mark.parametrize("change", ["W", "dual", "status", "bound"])
def test_verify_refuses_a_corrupted_solution(
    capsys: pytest.CaptureFixture[str], data_file: Path, tmp_path: Path, change: str
) -> None:
    path = tmp_path / "solution.npz"
    command(capsys, "solve", data_file, "--out", path)
    arrays = read_npz(path)
    if change == "status":
        arrays["status"] = np.asarray("infeasible")
    else:
        index = np.abs(arrays["W" if change == "W" else "dual"]).argmax()
        arrays[change].reshape(-1)[index] += 1e-3
    write_npz(path, arrays)
    code, out, _ = command(capsys, "verify", path)
    assert code == 1
    assert "1 of 1 do not hold" in out


def test_limited_rank_and_uniqueness(
    capsys: pytest.CaptureFixture[str], data_file: Path, tmp_path: Path
) -> None:
    path = tmp_path / "local.npz"
    arguments = ("solve", data_file, "--norm", "nuc", "--rank", "1")
    code, out, _ = command(capsys, *arguments, "--json", "--out", path)
    (result,) = json.loads(out)["results"]
    assert code == 0
    assert result["rank"] == 1
    assert result["status"] in ("local", "optimal")
    assert command(capsys, "verify", path)[0] == 0
    unit = [[1.0, 0.0], [0.0, 1.0]]
    am.margin_problem(unit, unit).save(tmp_path / "unit.npz")
    code, out, _ = command(capsys, "solve", tmp_path / "unit.npz", "--norm", "nuc")
    assert code == 0
    assert "the solution is not unique: another W has the same norm" in out


def test_verify_exactly(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = am.random_data(3, 3, 4, trials=2, name="verify").save(tmp_path / "data.npz")
    command(capsys, "solve", data, "--out", tmp_path / "solution.npz")
    asked = ("verify", tmp_path / "solution.npz", "--exact", "--data", data)
    code, out, _ = command(capsys, *asked, "--json")
    record = json.loads(out)
    assert code == 0
    assert record["exact"]
    assert all(r["feasible"] and r["local"] == "yes" for r in record["results"])
    assert all(0.0 < r["gap"] < 1e-12 for r in record["results"])
    _, out, _ = command(capsys, *asked)
    assert "in rational arithmetic" in out


def test_verify_wants_exact_for_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = am.random_data(3, 3, 4, name="verify").save(tmp_path / "data.npz")
    code, _, err = command(capsys, "verify", data, "--data", data)
    assert code == 2
    assert "without --exact; needs --exact, which uses it" in err


def test_a_time_limit_keeps_the_best_so_far(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(60, 20, 32, generator=generator, dtype=torch.float64)
    W = torch.randn(32, 32, generator=generator, dtype=torch.float64)
    chosen = torch.einsum("ntd,de,ne->nt", X, W, X[:, 0]).argmax(-1)
    file = am.token_problem(X, X[:, 0], chosen).save(tmp_path / "large.npz")
    out = tmp_path / "W.npz"
    code, text, _ = command(capsys, "solve", file, "--time-limit", "0", "--out", out, "--json")
    assert (code, json.loads(text)["results"][0]["status"]) == (1, "inaccurate")
    assert out.is_file()
    code, text, _ = command(capsys, "solve", file, "--time-limit", "60", "--json")
    assert (code, json.loads(text)["results"][0]["status"]) == (0, "optimal")
    code, _, err = command(capsys, "solve", file, "--time-limit", "-1")
    assert (code, "--time-limit: got -1" in err) == (2, True)


def test_ctrl_c_ends_a_search_that_is_kept() -> None:
    with searching("solving", keep=True) as look:
        assert not look(10, 3, 0.5)
        signal.raise_signal(signal.SIGINT)
        assert look(10, 3, 0.5)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    with searching("solving", keep=False) as look:
        look(10, 3, 0.5)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def _folder(path: Path, n: int = 700) -> Path:
    """Write a folder with more rows than are built as a whole."""
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(n, 15, 4, generator=generator, dtype=torch.float64)
    z, W = X[:, 0], torch.randn(4, 4, generator=generator, dtype=torch.float64)
    selection = torch.einsum("ntd,de,ne->nt", X, W, z).argmax(-1)
    for name, array in (("X", X), ("z", z), ("selection", selection)):
        np.save(path / f"{name}.npy", array.numpy())
    return path


def test_solve_a_folder(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    folder, out = _folder(tmp_path), tmp_path / "solution.npz"
    code, text, err = command(capsys, "solve", folder, "--out", out)
    assert (code, err) == (0, "")
    assert "certified over all 9,800 rows, of which" in text
    solution = am.Solution.load(out)
    arrays = [np.load(folder / f"{name}.npy") for name in ("X", "z", "selection")]
    built = am.solve(am.token_problem(*arrays))
    assert float(solution.value) == pytest.approx(float(built.value), rel=1e-12)
    code, text, _ = command(capsys, "solve", folder, "--json", "--norm", "3")
    record = json.loads(text)
    assert (code, record["norm"], record["optimal"], record["rows"]) == (0, "3.0", 1, 9800)
    assert 0 < record["outside"] < 9800


def test_verify_claims_no_more_than_the_file_proves(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = tmp_path / "solution.npz"
    command(capsys, "solve", _folder(tmp_path), "--out", out)
    solution = am.Solution.load(out)
    code, text, _ = command(capsys, "verify", out)
    words = (
        f"this is about the rows in the file: {solution.problem.M:,} of 9,800; that W satisfies "
        f"the other {solution.outside:,} was checked when the file was made"
    )
    assert code == 0
    assert words in text
    code, text, _ = command(capsys, "verify", out, "--json")
    assert json.loads(text)["outside"] in words


def test_verify_says_that_contradicting_rows_are_enough(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder, out = _folder(tmp_path), tmp_path / "solution.npz"
    selection = np.load(folder / "selection.npy")
    np.save(folder / "selection.npy", (selection + 1) % 15)
    code, text, _ = command(capsys, "solve", folder, "--out", out)
    assert code == 1
    assert "no W satisfies" in text
    code, text, _ = command(capsys, "verify", out)
    assert code == 0
    assert "of 9,800, which contradict each other, whatever the others are" in text


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--select", "x.npy"], "--select: got {0}, which is a folder; needs a file"),
        (["--rank", "2", "--norm", "nuc"], "--rank: got {0}, which is a folder; needs a file"),
        (["--time-limit", "-1"], "--time-limit: got -1"),
    ],
)
def test_options_that_do_not_suit_a_folder(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, options: list[str], words: str
) -> None:
    code, _, err = command(capsys, "solve", _folder(tmp_path, 5), *options)
    assert code == 2
    assert words.format(tmp_path) in err


def test_a_folder_without_queries(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (_folder(tmp_path, 5) / "z.npy").unlink()
    code, _, err = command(capsys, "solve", tmp_path)
    assert code == 2
    assert f"FILE: got {tmp_path}/z.npy, which does not exist; needs a folder with X.npy" in err
