"""attnmargin predict, attnmargin demo."""

import csv
import io
import shlex
import sys
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from attnmargin.base.files import write_whole
from attnmargin.cli.console import print_json, progress_bar, waiting
from attnmargin.cli.options import FOLDER, INPUT, LOSSES, OUTPUT, Command, OneOf, as_json, power
from attnmargin.report.numbers import plain_number, short

_MOST_LINES = 20
_STYLE = {"holds": "green", "fails": "red", "not decidable here": "dim"}
_COLUMNS = ("index", "verdict", "status", "selection", "margin", "agrees", "correlation")


@click.command(cls=Command)
@click.argument("file", type=INPUT)
@click.option("--parameter", type=OneOf("W", "KQ"), default="W", show_default=True)
@power
@click.option("--loss", type=LOSSES, default="logistic", show_default=True)
@click.option("--limit", type=int, help="largest number of selections that the search solves")
@click.option("--verify", "train_too", is_flag=True, help="train, and report the agreement")
@click.option(
    "--steps", type=int, default=4000, show_default=True, help="length of the training of --verify"
)
@click.option("--theorems", is_flag=True, help="show every check, not only those that decide")
@click.option("--html", type=OUTPUT, help="write a page about one instance")
@click.option("--out", type=OUTPUT, help="save the solution as .npz, for attnmargin verify")
@click.option("--csv", "table", type=OUTPUT, help="write one line per instance")
@as_json
def predict(
    file: Path,
    train_too: bool,
    steps: int,
    theorems: bool,
    html: Path | None,
    out: Path | None,
    table: Path | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Predict what attention will learn from FILE (.npz with X, z, y, v), and say why."""
    from attnmargin.cli.inputs import read_data
    from attnmargin.prediction.confirmation import confirm
    from attnmargin.prediction.prediction import predict as predict_data
    from attnmargin.report.pages.prediction import write_prediction
    from attnmargin.report.predictions import prediction_record

    data, words = read_data(file, named=html is not None)
    with progress_bar("searching") as progress:
        prediction = predict_data(data, progress=progress, **options)
    result = None
    if train_too:
        with progress_bar("training") as progress:
            result = confirm(prediction, steps=steps, progress=progress)
    saved = None if out is None else prediction.solution.save(out)
    command = shlex.join(["attnmargin", *sys.argv[1:]])
    page = html and write_prediction(html, prediction, words, result, command, str(file))
    record = prediction_record(prediction, result, words)
    record |= {"file": str(file), "out": saved and str(saved), "html": page and str(page)}
    record["csv"] = table and str(_write_table(table, record["results"]))
    if as_json:
        print_json(record)
    else:
        _print(record, theorems)
    return 0 if record["holds"] else 1


@click.command(cls=Command)
@click.option("--out", type=FOLDER, default=Path("demo"), show_default=True, help="folder to write")
@as_json
def demo(out: Path, as_json: bool) -> int:
    """Predict what attention learns from built-in reviews, train it, and write a page."""
    from attnmargin.report.pages.demo import write_demo

    with waiting("predicting, training and drawing"):
        record = write_demo(out)
    if as_json:
        print_json(record)
    else:
        for line in record["findings"]:
            click.echo(line)
        click.echo(f"page: {record['page']}")
    return 0 if record["holds"] else 1


COMMANDS = (predict, demo)


def _write_table(path: Path, results: list[dict[str, Any]]) -> Path:
    """Write one comma-separated line per instance."""
    text = io.StringIO()
    writer = csv.DictWriter(text, _COLUMNS, extrasaction="ignore")
    writer.writeheader()
    for entry in results:
        training = entry["training"] or {}
        own = {name: training.get(name) for name in ("agrees", "correlation")}
        own["index"] = " ".join(map(str, entry["index"])) or "0"
        writer.writerow(entry | own)
    return write_whole(path, lambda stream: stream.write(text.getvalue().encode()))


def _print(record: dict[str, Any], theorems: bool) -> None:
    """Print sentences and tables for one instance, or one line per instance for several."""
    console = Console()
    if record["instances"] == 1:
        _print_one(console, record["results"][0], theorems)
    else:
        _print_many(console, record)
    for name, word in (("html", "page"), ("out", "saved"), ("csv", "table")):
        if record[name]:
            console.print(f"{word}: {record[name]}", soft_wrap=True, markup=False)


def _print_one(console: Console, entry: dict[str, Any], theorems: bool) -> None:
    console.print(entry["why"], soft_wrap=True, markup=False)
    if entry["status"] == "optimal":
        chosen = ", ".join(entry["words"]) if "words" in entry else str(entry["selection"])
        margin = "–" if entry["margin"] is None else f"{entry['margin']:.6g}"
        console.print(
            f"selection {chosen}, margin {margin}, {len(entry['support'])} support tokens, "
            f"certified with gap {entry['gap']:.1e}",
            soft_wrap=True,
            markup=False,
        )
    if len(entry["alternatives"]) > 1:
        console.print(_choice_table(entry))
    near = [check for check in entry["checks"] if check["paper"] in ("A", "B")]
    decide = [check for check in near if check["statement"] in entry["deciding"]]
    console.print(_check_table(near if theorems else decide))
    if entry["training"]:
        console.print(_training_words(entry["training"]), soft_wrap=True, markup=False)


def _choice_table(entry: dict[str, Any]) -> Table:
    table = Table("stable selection", "margin")
    for choice in entry["alternatives"][:_MOST_LINES]:
        table.add_row(str(choice["selection"]), short(choice["margin"], ".6g"))
    more = len(entry["alternatives"]) - _MOST_LINES
    if more > 0:
        table.add_row(f"… and {more} more", "")
    return table


def _check_table(checks: list[dict[str, Any]]) -> Table:
    table = Table("statement", "here", "numbers")
    for check in checks:
        numbers = "; ".join(
            f"{name} = {plain_number(value)}"
            for name, value in check["numbers"].items()
            if value is not None
        )
        style = _STYLE[check["outcome"]]
        table.add_row(check["statement"], f"[{style}]{check['outcome']}[/]", numbers)
    return table


def _training_words(training: dict[str, Any]) -> str:
    if not training["decided"]:
        return f"{training['words']} ({training['steps']:,} steps)"
    return (
        f"{training['words']} ({training['steps']:,} steps, the same from step "
        f"{training['settled']} on); "
        f"correlation {short(training['correlation'], '.6f')} with the prediction, "
        f"{short(training['own correlation'], '.6f')} with the SVM of what was selected"
    )


def _print_many(console: Console, record: dict[str, Any]) -> None:
    results = record["results"]
    table = Table("instance", "verdict", "margin", "stable selections", "searched", "training")
    for entry in results[:_MOST_LINES]:
        table.add_row(
            ", ".join(map(str, entry["index"])),
            entry["verdict"],
            short(entry["margin"], ".4g"),
            str(len(entry["alternatives"])),
            f"{entry['searched']} of {entry['total']}",
            _agreement(entry["training"]),
        )
    console.print(table)
    if len(results) > _MOST_LINES:
        console.print(f"… and {len(results) - _MOST_LINES} more")
    counts = [f"{count} {verdict}" for verdict, count in record["verdicts"].items() if count]
    if record["agree"] is not None:
        counts.append(f"training agrees with {record['agree']} of {len(results)}")
    console.print(", ".join(counts) or "no instance")


def _agreement(training: dict[str, Any] | None) -> str:
    if training is None:
        return "–"
    if training["agrees"]:
        return short(training["correlation"], ".6f")
    if not training["decided"]:
        return "nothing"
    return "listed" if training["listed"] else "elsewhere"
