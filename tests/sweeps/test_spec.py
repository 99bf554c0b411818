"""Specifications of sweeps, the computations they name, and commands."""

import csv
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyarrow import parquet

import attnmargin as am
from attnmargin.base.errors import InputError
from attnmargin.sweeps.command import Command
from attnmargin.sweeps.spec import read_spec
from attnmargin.sweeps.sweep import Table
from attnmargin.sweeps.table import write_table
from tests.commands import write

SHAPE = ["n = 3", "T = 4", "d = [4, 6]"]


def table_of(tmp_path: Path, head: list[str], grid: list[str], name: str = "spec") -> Table:
    spec = read_spec(write(tmp_path / f"{name}.toml", [*head, "[grid]", *grid]))
    out = tmp_path / name
    found = am.sweep(spec.function, spec.points, spec.trials, spec.seed, out=out, jobs=1)
    assert not found.failed
    return found.table()


def test_solve_is_the_librarys(tmp_path: Path) -> None:
    table = table_of(tmp_path, ['compute = "solve"', "trials = 3", "seed = 4"],
                     [*SHAPE, 'norm = ["fro", 3]'])  # fmt: skip
    for norm in ("fro", 3):
        for d in (4, 6):
            data = am.random_data(3, 4, d, 3, name="sweep", seed=4)
            problem = am.token_problem(data.X, data.z, am.optimal_tokens(data))
            rows = (table["norm"] == str(norm)) & (table["d"] == d)
            assert table["margin"][rows].tolist() == am.solve(problem, norm).margin.tolist()


def test_train_and_predict_are_the_librarys(tmp_path: Path) -> None:
    head = ["trials = 2", 'record = ["loss", "verdict", "since"]']
    grid = [*SHAPE[:2], "d = 5", 'parameter = "W"', "lr = 0.3", "steps = 400"]
    trained = table_of(tmp_path, ['compute = "train"', *head], grid, "train")
    predicted = table_of(tmp_path, ['compute = "predict"', *head], grid, "predict")
    data = am.random_data(3, 4, 5, 2, name="sweep", seed=0)
    run = am.train(data, lr=0.3, steps=400, record=400)
    assert trained["loss"].tolist() == run.loss[-1].tolist()
    prediction = am.predict(data, lr=0.3, steps=400)
    assert predicted["verdict"].tolist() == list(map(str, prediction.verdict))
    assert list(predicted) == ["n", "T", "d", "parameter", "lr", "steps", "trial", "verdict", "since"]  # fmt: skip  # noqa: E501


def test_random_starts_and_courses(tmp_path: Path) -> None:
    """Every trial has a start of length one of its own; ``every`` keeps the course in the files."""
    grid = [*SHAPE[:2], "d = 5", 'start = ["zero", "random"]', "steps = 40", "every = 10"]
    path = write(tmp_path / "s.toml", ['compute = "train"', "trials = 2", "[grid]", *grid])
    spec = read_spec(path, trials=4, seed=9)
    assert (spec.trials, spec.seed) == (4, 9)
    found = am.sweep(spec.function, spec.points, spec.trials, spec.seed, out=tmp_path / "s", jobs=1)
    data = am.random_data(3, 4, 5, 4, name="sweep", seed=9)
    losses = am.train(data, steps=40, record=10).loss.numpy()
    zero, random = (arrays["losses"] for _, arrays in found.arrays())
    np.testing.assert_array_equal(zero, losses)
    assert random.shape == (5, 4)
    assert (random[0] != zero[0]).all()


def test_instances_of_a_file_are_the_trials(tmp_path: Path, data_file: Path) -> None:
    """A file counts by its contents: a copy elsewhere is the same sweep, another file is not."""
    assert data_file.parent == tmp_path
    head, grid = ['compute = "solve"'], [f'file = "{data_file.name}"']
    table = table_of(tmp_path, head, grid)
    data = am.AttentionData.load(data_file)
    problem = am.token_problem(data.X, data.z, am.optimal_tokens(data))
    assert table["value"].tolist() == [float(am.solve(problem).value)]
    am.random_data(4, 5, 6, name="another").save(data_file)
    with pytest.raises(InputError, match="a folder of its own for every sweep"):
        table_of(tmp_path, head, grid)
    with pytest.raises(InputError, match="trials: got 7 for a file of 1 instances"):
        table_of(tmp_path, ['compute = "solve"', "trials = 7"], grid, "seven")


def test_commands_of_any_language(tmp_path: Path) -> None:
    code = "import sys, json; print('words'); print(json.dumps(dict(y=float(sys.argv[1]) * 2)))"
    command = f"command = ['{sys.executable}', '-c', \"\"\"{code}\"\"\", '{{x}}', '{{trial}}']"
    table = table_of(tmp_path, [command, "trials = 2"], ["x = [1, 2.5]"])
    assert table["y"].tolist() == [2.0, 2.0, 5.0, 5.0]
    assert table["exit"].tolist() == [0] * 4


def test_commands_that_fail_say_why(tmp_path: Path) -> None:
    for code, words in [
        ("import sys; sys.exit('no luck')", None),
        ("import sys; print('no luck', file=sys.stderr); sys.exit(2)", "status 2: no luck"),
        ("print('words')", "did not print a JSON object as the last line"),
    ]:
        command = Command([sys.executable, "-c", code])
        found = am.sweep(command, {}, out=tmp_path / str(len(code)), jobs=1)
        assert (words or "did not print") in found.failed[0][1]
    with pytest.raises(InputError, match="'no-such-program'"):
        Command("no-such-program")()
    with pytest.raises(InputError, match=r"command: got .* \(No closing quotation\)"):
        Command("echo 'a")
    with pytest.raises(InputError, match=r"command: got \{a.b\}; needs names in braces"):
        Command("echo {a.b}")


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["x ="], "Invalid value"),
        (["[grid]", "n = 1"], "neither of compute and command"),
        (['compute = "solve"', 'command = "ls"', "[grid]"], "both of compute and command"),
        (['compute = "cook"', "[grid]"], "compute: got 'cook'; needs one of predict, solve, train"),
        (['compute = "solve"'], r"no table \[grid\]"),
        (['compute = "solve"', "more = 1", "[grid]"], "the key 'more'"),
        (['compute = "solve"', 'trials = "x"', "[grid]"], "trials = 'x'; needs a whole number"),
        (['compute = "solve"', 'record = "x"', "[grid]"], "needs a list of names"),
        (['compute = "solve"', "[grid]", 'file = "no.npz"'], r"no\.npz, which does not exist"),
        (['compute = "solve"', "[grid]", "file = 3"], "file: got 3; needs the name of an .npz"),
        (['command = "ls"', 'record = ["x"]', "[grid]"], "record with a command"),
        (["command = 3", "[grid]"], "command: got a int; needs a command line"),
        (["x = " + "[" * 5000], "needs a sweep in TOML"),
    ],
)
def test_specifications_that_are_none(tmp_path: Path, lines: list[str], words: str) -> None:
    with pytest.raises(InputError, match=words):
        read_spec(write(tmp_path / "s.toml", lines))


@pytest.mark.parametrize(
    ("grid", "words"),
    [
        (["n = 3"], "needs n, T and d, or a file"),
        ([*SHAPE[:2], "d = 4", 'start = "far"'], "start: got 'far' with parameter 'W'"),
        ([*SHAPE[:2], "d = 4", "p = -1"], "p: got -1"),
    ],
)
def test_points_that_fail_name_the_setting(tmp_path: Path, grid: list[str], words: str) -> None:
    spec = read_spec(write(tmp_path / "s.toml", ['compute = "train"', "[grid]", *grid]))
    found = am.sweep(spec.function, spec.points, out=tmp_path / "s", jobs=1)
    assert words in found.failed[0][1]


def test_tables_come_back_with_all_their_digits(tmp_path: Path) -> None:
    table: dict[str, Any] = {"x": np.array([0.1, 1 / 3]), "word": np.array(['a,"b"', "ü\n"])}
    with write_table(table, tmp_path / "t.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [float(row["x"]) for row in rows] == table["x"].tolist()
    assert [row["word"] for row in rows] == table["word"].tolist()
    read = parquet.read_table(write_table(table, tmp_path / "t.parquet")).to_pydict()
    assert read == {name: values.tolist() for name, values in table.items()}
    with pytest.raises(InputError, match=r"ends in \.csv or \.parquet"):
        write_table(table, tmp_path / "t.xls")
    with pytest.raises(InputError, match="table: got no row"):
        write_table({}, tmp_path / "t.csv")
