"""attnmargin margins, and solve in the new norms."""

import json
from pathlib import Path

import pytest

import attnmargin as am
from attnmargin.cli.options import NORMS
from attnmargin.margin.norms import NAMED
from tests.commands import command
from tests.problems import planted_contradiction

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def problem(tmp_path: Path) -> Path:
    return am.margin_problem([[3.0, 4.0], [1.0, -1.0]], [[1.0, 0.5]]).save(tmp_path / "p.npz")


def test_the_command_line_knows_the_names_of_the_library() -> None:
    assert NORMS.split(", ") == list(NAMED)


def test_solve_in_every_norm(capsys: Capture, problem: Path) -> None:
    for norm in NAMED:
        code, out, _ = command(capsys, "solve", problem, "--norm", norm, "--json")
        assert code == 0
        assert json.loads(out)["norm"] == norm


def test_table_page_and_record(capsys: Capture, problem: Path, tmp_path: Path) -> None:
    page = tmp_path / "margins.html"
    code, out, _ = command(capsys, "margins", problem, "--html", page)
    assert code == 0
    assert "Frobenius" in out
    assert "<svg" in page.read_text()
    _, out, _ = command(capsys, "margins", problem, "--norm", "fro", "--norm", "3", "--json")
    record = json.loads(out)
    assert record["norms"] == ["fro", "3.0"]
    assert record["results"][0]["ratios"]["fro"]["fro"] == pytest.approx(1.0)


def test_a_saved_solution_is_measured_too(capsys: Capture, problem: Path, tmp_path: Path) -> None:
    saved = am.solve(am.MarginProblem.load(problem), "max").save(tmp_path / "s.npz")
    _, out, _ = command(capsys, "margins", saved, "--norm", "fro", "--norm", "max", "--json")
    given = json.loads(out)["results"][0]["given"]
    assert given["max"] == pytest.approx(1.0)
    assert given["fro"] < 0.999


def test_infeasible_is_exit_one_and_bad_norms_exit_two(capsys: Capture, tmp_path: Path) -> None:
    file = planted_contradiction(3, 2, 4, 0)[0].save(tmp_path / "clash.npz")
    assert command(capsys, "margins", file, "--norm", "max")[0] == 1
    code, _, error = command(capsys, "margins", file, "--norm", "l0")
    assert code == 2
    assert "--norm: got 'l0'; needs fro, nuc, spectral" in error
