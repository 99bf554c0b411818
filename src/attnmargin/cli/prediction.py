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

from attnmargin.base.errors import InputError
from attnmargin.base.files import write_whole
from attnmargin.cli.console import print_json, progress_bar, waiting
from attnmargin.cli.options import (
    FOLDER,
    INPUT,
    LOSSES,
    OUTPUT,
    PICTURES,
    START,
    Command,
    OneOf,
    as_json,
    check_drawing,
    log,
    power,
)
from attnmargin.report.numbers import plain_number, short

_MOST_LINES = 20
_STYLE = {"holds": "green", "fails": "red", "not decidable here": "dim"}
_COLUMNS = ("index", "verdict", "since", "longest step", "share", "status", "selection", "best",
            "margin", "agrees", "correlation")  # fmt: skip
# Steps of --verify, unless the proof is later.
_VERIFIED = 4000


@click.command(cls=Command)
@click.argument("file", type=INPUT)
@click.option("--parameter", type=OneOf("W", "KQ"), default="W", show_default=True)
@power
@click.option("--loss", type=LOSSES, default="logistic", show_default=True)
@click.option(
    "--start", type=START, default="zero", show_default=True,
    help="zero, random, or a file: W.npy, or an .npz with W, or with K and Q",
)  # fmt: skip
@click.option(
    "--lr", type=float, default=0.1, show_default=True, help="length of a step, or a rate"
)
@click.option("--plain", is_flag=True, help="do not normalise gradients: lr is a rate")
@click.option(
    "--steps", type=int, default=20_000, show_default=True, help="how long to follow the run"
)
@click.option("--starts", "random_starts", type=int, default=0, help="also follow N random starts")
@click.option("--seed", type=int, default=0, show_default=True, help="of random starts")
@click.option("--alternatives", is_flag=True, help="list the other stable choices of tokens")
@click.option("--limit", type=int, help="largest number of selections that this search solves")
@click.option(
    "--verify", "train_too", is_flag=True, help="train, also with plain torch, and compare"
)
@click.option("--theorems", is_flag=True, help="check the statements of the papers")
@click.option("--html", type=PICTURES, help="write a page about one instance")
@click.option("--out", type=OUTPUT, help="save the solution as .npz, for attnmargin verify")
@click.option("--csv", "table", type=OUTPUT, help="write one line per instance")
@log
@as_json
def predict(
    file: Path,
    start: str,
    plain: bool,
    alternatives: bool,
    train_too: bool,
    theorems: bool,
    html: Path | None,
    out: Path | None,
    table: Path | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Predict what your run on FILE (.npz with X, z, y, v) will select, and prove it."""
    from attnmargin.cli.inputs import read_data, read_start
    from attnmargin.prediction.confirmation import confirm
    from attnmargin.prediction.entry import predict as predict_data
    from attnmargin.report.pages.prediction import write_prediction
    from attnmargin.report.predictions import prediction_record

    data, words = read_data(file, named=html is not None)
    init = read_start(start, data, options["parameter"])
    with progress_bar("following the run") as progress:
        prediction = predict_data(
            data, init=init, normalize=not plain, progress=progress, **options
        )
    if html is not None and prediction.data.batch_shape:
        raise InputError("--html", "a batch of starts", "one instance and one start")
    result = None
    if train_too:
        late = max([0, *prediction.since.flatten().tolist()])
        steps = min(max(_VERIFIED, 2 * late), options["steps"])
        with progress_bar("training") as progress:
            result = confirm(prediction, steps=steps, progress=progress)
    saved = None if out is None else prediction.solution.save(out)
    command = shlex.join(["attnmargin", *sys.argv[1:]])
    page = html and write_prediction(html, prediction, words, result, command, str(file))
    record = prediction_record(
        prediction, result, words, alternatives=alternatives, theorems=theorems
    )
    record |= {"file": str(file), "out": saved and str(saved), "html": page and str(page)}
    record["csv"] = table and str(_write_table(table, record["results"]))
    if as_json:
        print_json(record)
    else:
        _print(record)
    return 0 if record["holds"] else 1


@click.command(cls=Command)
@click.option("--out", type=FOLDER, default=Path("demo"), show_default=True, help="folder to write")
@as_json
def demo(out: Path, as_json: bool) -> int:
    """Predict what attention learns from built-in reviews, train it, and write a page."""
    check_drawing()
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


def _print(record: dict[str, Any]) -> None:
    """Print sentences and tables for one instance, or one line per instance for several."""
    console = Console()
    if record["instances"] == 1:
        _print_one(console, record["results"][0])
    else:
        _print_many(console, record)
    for name, word in (("html", "page"), ("out", "saved"), ("csv", "table")):
        if record[name]:
            console.print(f"{word}: {record[name]}", soft_wrap=True, markup=False)


def _print_one(console: Console, entry: dict[str, Any]) -> None:
    lines = [f"{entry['headline']}.", entry["why"]]
    if entry["status"] == "optimal":
        margin = "–" if entry["margin"] is None else f"{entry['margin']:.6g}"
        lines.append(
            f"selection {entry['selection']}, margin {margin}, {len(entry['support'])} support "
            f"tokens, certified with gap {entry['gap']:.1e}"
        )
    lines += [entry["elsewhere"]] if entry.get("elsewhere") else []
    for line in lines:
        console.print(line, soft_wrap=True, markup=False)
    if entry["starts"]:
        console.print(_start_table(entry["starts"]))
    if len(entry.get("alternatives", [])) > 1:
        console.print(_choice_table(entry))
    if "checks" in entry:
        console.print(_check_table([c for c in entry["checks"] if c["paper"] in ("A", "B")]))
    if entry["training"]:
        console.print(_training_words(entry["training"]), soft_wrap=True, markup=False)


def _start_table(starts: list[dict[str, Any]]) -> Table:
    table = Table("from random starts", "share", "95 % interval", "proved")
    for row in starts[:_MOST_LINES]:
        low, high = row["interval"]
        proved = f"{row['proved']:,} of {row['runs']:,}"
        share = f"{row['share']:.3f}"
        table.add_row(str(row["selection"]), share, f"{low:.3f} to {high:.3f}", proved)
    more = len(starts) - _MOST_LINES
    if more > 0:
        table.add_row(f"… and {more} more", "", "", "")
    return table


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
    plain = ""
    if training["plain"] is not None:
        same = "the same" if training["plain"] else "something else"
        plain = (
            f"; plain torch selects {same} for the {training['plain steps']:,} steps it is exact"
        )
    return (
        f"{training['words']} ({training['steps']:,} steps, the same from step "
        f"{training['settled']} on{plain}); "
        f"correlation {short(training['correlation'], '.6f')} with the prediction"
    )


def _print_many(console: Console, record: dict[str, Any]) -> None:
    results = record["results"]
    table = Table("instance")
    table.add_column("verdict", no_wrap=True)
    for name in ("since step", "longest step", "margin"):
        table.add_column(name)
    if record["agree"] is not None:
        table.add_column("training")
    for entry in results[:_MOST_LINES]:
        proved = entry["since"] >= 0
        own = [
            ", ".join(map(str, entry["index"])),
            entry["verdict"],
            f"{entry['since']:,}" if proved else "–",
            short(entry["longest step"], ".3g") if proved else "–",
            short(entry["margin"], ".4g"),
        ]
        table.add_row(*own, *([_agreement(entry["training"])] if entry["training"] else []))
    console.print(table)
    if len(results) > _MOST_LINES:
        console.print(f"… and {len(results) - _MOST_LINES} more")
    counts = [f"{count} {verdict}" for verdict, count in record["verdicts"].items() if count]
    if record["agree"] is not None:
        counts.append(f"training agrees with {record['agree']} of {len(results)}")
    console.print(", ".join(counts) or "no instance")


def _agreement(training: dict[str, Any]) -> str:
    if training["agrees"]:
        return short(training["correlation"], ".6f")
    return "elsewhere" if training["decided"] else "nothing"
