"""attnmargin margins."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table

from attnmargin.cli.console import print_json, waiting
from attnmargin.cli.options import (
    INPUT,
    PICTURES,
    Command,
    a_norm,
    as_json,
    norm_name,
    words_or_files,
)

if TYPE_CHECKING:
    from attnmargin.solvers.comparison import Margins

_MOST_TABLES = 4


def _names(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(norm_name(ctx, param, value) for value in values)


@click.command(cls=Command)
@click.argument("file", type=INPUT)
@click.option(
    "--norm",
    multiple=True,
    callback=_names,
    shell_complete=a_norm,
    help="a norm, as in solve; may be repeated  [all]",
)
@click.option(
    "--select",
    default="opt",
    show_default=True,
    shell_complete=words_or_files("opt"),
    help="opt: the tokens of largest score; or a .npy, .npz or .json file with the selection",
)
@click.option("--html", type=PICTURES, help="write a page with tables and pictures")
@as_json
def margins(
    file: Path, norm: tuple[str, ...], select: str, html: Path | None, as_json: bool
) -> int:
    """Measure the margin of each norm's solution in every norm.

    FILE is as for attnmargin solve. If it is a saved solution, its W is measured too.
    """
    from attnmargin.report.margins import margins_record, write_margins

    with waiting("solving in every norm"):
        found = _margins(file, norm, select)
    record = margins_record(found) | {"file": str(file), "html": html and str(html)}
    if html is not None:
        write_margins(html, found, record)
    if as_json:
        print_json(record)
    else:
        _print(record)
    return 0 if record["settled"] == record["problems"] else 1


COMMANDS = (margins,)


def _margins(file: Path, norms: tuple[str, ...], select: str) -> "Margins":
    """Solve what a file holds in all norms, and measure the W in it."""
    from attnmargin.base.npz import read_npz
    from attnmargin.cli.inputs import read_problem
    from attnmargin.solvers.comparison import margins as measure

    arrays = read_npz(file)
    W = arrays["W"] if "left" in arrays and "W" in arrays else None
    return measure(read_problem(file, select), W, norms=norms or None)


def _print(record: dict[str, Any]) -> None:
    """Print a table for each of the first problems."""
    from attnmargin.report.margins import margin_rows

    console = Console()
    for result in record["results"][:_MOST_TABLES]:
        if result["index"]:
            console.print(f"problem {', '.join(map(str, result['index']))}")
        head, rows = margin_rows(record, result)
        table = Table(*head)
        for row in rows:
            table.add_row(*row)
        console.print(table)
        open_ones = {k: v for k, v in result["status"].items() if v != "optimal"}
        if open_ones:
            words = ", ".join(f"{name}: {status}" for name, status in open_ones.items())
            console.print(words, soft_wrap=True)
    more = len(record["results"]) - _MOST_TABLES
    if more > 0:
        console.print(f"… and {more} more; --json has them all")
    if record["html"]:
        console.print(f"page: {record['html']}", soft_wrap=True)
