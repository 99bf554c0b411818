"""attnmargin solve, attnmargin verify."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from attnmargin.base.errors import InputError
from attnmargin.cli.console import print_json, searching, waiting
from attnmargin.cli.options import (
    INPUT,
    INPUT_OR_FOLDER,
    NORMS,
    OUTPUT,
    Command,
    a_norm,
    as_json,
    log,
    norm_name,
    words_or_files,
)
from attnmargin.report.numbers import short

if TYPE_CHECKING:
    from attnmargin.margin.solution import Solution

_MOST_LINES = 20
_STYLE = {"optimal": "green", "infeasible": "red", "inaccurate": "yellow", "local": "cyan"}


@click.command(cls=Command)
@click.argument("file", type=INPUT_OR_FOLDER)
@click.option(
    "--norm",
    default="fro",
    show_default=True,
    callback=norm_name,
    shell_complete=a_norm,
    help=f"{NORMS} or a number p > 1",
)
@click.option(
    "--select",
    default="opt",
    show_default=True,
    shell_complete=words_or_files("opt"),
    help="opt: the tokens of largest score; or a .npy, .npz or .json file with the selection",
)
@click.option("--rank", type=int, help="nuclear norm: the width of K and Q, W = K Qᵀ")
@click.option("--time-limit", type=float, help="seconds, after which the best W so far is kept")
@click.option("--out", type=OUTPUT, help="save the solution as .npz, for attnmargin verify")
@log
@as_json
def solve(file: Path, select: str, out: Path | None, as_json: bool, **options: Any) -> int:
    """Solve the attention SVM of FILE (.npz with X, z, y, v; or a saved problem).

    FILE may be a folder with X.npy, z.npy, selection.npy and perhaps mask.npy, which may be larger
    than the memory: they are read part by part. With --out, Ctrl-C ends the search in a large
    problem, and saves the best W so far.
    """
    from attnmargin.report.solutions import solution_record

    with searching("solving", keep=out is not None) as look:
        solution = _solution(file, select, progress=look, **options)
    saved = None if out is None else solution.save(out)
    record = solution_record(solution) | {"file": str(file), "out": saved and str(saved)}
    if as_json:
        print_json(record)
    else:
        _print_solution(record)
    return 0 if record["settled"] == record["problems"] else 1


def _solution(file: Path, select: str, rank: int | None, **options: Any) -> "Solution":
    """Solve what a file or a folder holds."""
    if not file.is_dir():
        from attnmargin.cli.inputs import read_problem
        from attnmargin.solvers.entry import solve as solve_problem

        return solve_problem(read_problem(file, select), rank=rank, **options)
    from attnmargin.solvers.sequences.entry import solve_sequences

    for option, given in (("--select", select != "opt"), ("--rank", rank is not None)):
        if given:
            raise InputError(option, f"{file}, which is a folder", "a file")
    try:
        return solve_sequences(file, **options)
    except InputError as error:
        argument = "FILE" if error.argument == "sequences" else error.argument
        raise InputError(argument, error.got, error.needs) from error


@click.command(cls=Command)
@click.argument("file", type=INPUT)
@click.option("--exact", is_flag=True, help="check in rational arithmetic, without rounding; slow")
@click.option(
    "--data", type=INPUT, help="with --exact: the data, to decide if the selection is local"
)
@as_json
def verify(file: Path, exact: bool, data: Path | None, as_json: bool) -> int:
    """Check the certificate of a saved solution, using only FILE."""
    if data is not None and not exact:
        raise InputError("--data", f"{data} without --exact", "--exact, which uses it")
    from attnmargin.data.attention_data import AttentionData
    from attnmargin.report.solutions import verification_record

    given = None if data is None else AttentionData.load(data)
    with waiting("checking exactly" if exact else "checking"):
        record = verification_record(file, exact, given)
    if as_json:
        print_json(record)
    else:
        _print_verification(record)
    return 0 if record["holds"] else 1


COMMANDS = (solve, verify)


def _colour(status: str) -> str:
    style = _STYLE.get(status, "red")
    return f"[{style}]{status}[/{style}]"


def _label(index: list[int]) -> str:
    return ", ".join(map(str, index)) or "–"


def _rest(console: Console, results: list[dict[str, Any]], key: str) -> None:
    if len(results) > _MOST_LINES:
        counts = {s: sum(r[key] == s for r in results[_MOST_LINES:]) for s in _STYLE}
        listed = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
        console.print(f"… and {len(results) - _MOST_LINES} more: {listed}")


def _print_solution(record: dict[str, Any]) -> None:
    """Print every problem, and the support if there is only one."""
    console = Console()
    table = Table("problem", "status", "‖W‖", "margin", "gap", "rank", "support", "steps")
    table.columns[1].no_wrap = True
    for result in record["results"][:_MOST_LINES]:
        table.add_row(
            _label(result["index"]),
            _colour(result["status"]),
            short(result["value"], ".4g"),
            short(result["margin"], ".4g"),
            short(result["gap"], ".1e"),
            short(result["rank"], "d"),
            str(len(result["support"])),
            str(result["iterations"]),
        )
    console.print(table)
    _rest(console, record["results"], "status")
    if record["outside"]:
        built, rows = record["rows"] - record["outside"], record["rows"]
        console.print(f"certified over all {rows:,} rows, of which {built:,} were built")
    several = [r["uniqueness"] == "not unique" for r in record["results"]]
    if any(several):
        console.print(_not_unique(sum(several), len(several)), soft_wrap=True)
    for result in record["results"][:_MOST_LINES]:
        if "why" in result:
            prefix = f"problem {_label(result['index'])}: " if result["index"] else ""
            console.print(f"{prefix}{result['why']}", soft_wrap=True)
    if record["problems"] == 1 and record["optimal"] == 1:
        _print_support(console, record["results"][0]["support"])
    if record["out"]:
        console.print(f"saved: {record['out']}", soft_wrap=True)


def _not_unique(several: int, count: int) -> str:
    if count == 1:
        return "the solution is not unique: another W has the same norm"
    return f"{several} of {count} solutions are not unique: another W has the same norm"


def _print_support(console: Console, support: list[dict[str, Any]]) -> None:
    """Print the rows that hold with equality, which guard each selection."""
    table = Table("support row", "what it demands", "multiplier")
    for row in support[:_MOST_LINES]:
        table.add_row(str(row["row"]), row["demand"], short(row["multiplier"], ".3g"))
    if support:
        console.print(table)
    if len(support) > _MOST_LINES:
        console.print(f"… and {len(support) - _MOST_LINES} more support rows")


def _print_verification(record: dict[str, Any]) -> None:
    """Print what the file claims and what is proved, with the numbers of the proof."""
    console = Console()
    more = ["local"] if any("local" in result for result in record["results"]) else []
    table = Table("problem", "claimed", "proved", "gap", "primal", "dual", "holds", *more)
    for result in record["results"][:_MOST_LINES]:
        table.add_row(
            _label(result["index"]),
            escape(result["claimed"]),
            _colour(result["proved"]),
            *(short(result[name], ".1e") for name in ("gap", "primal", "dual")),
            "yes" if result["holds"] else "[red]no[/red]",
            *([result["local"]] if more else []),
        )
    console.print(table)
    _rest(console, record["results"], "proved")
    wrong = sum(not result["holds"] for result in record["results"])
    total = len(record["results"])
    verdict = "every certificate holds" if not wrong else f"{wrong} of {total} do not hold"
    how = ", in rational arithmetic" if record["exact"] else ""
    console.print(f"{verdict} ({record['norm']} norm, {total} problem{'s' * (total != 1)}{how})")
    if "outside" in record:
        console.print(f"this is about the rows in the file: {record['outside']}", soft_wrap=True)
