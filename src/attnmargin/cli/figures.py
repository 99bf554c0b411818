"""What ``attnmargin reproduce`` prints: figures, claims, and how long they took."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress as Bar
from rich.table import Table

from attnmargin.base.errors import InputError
from attnmargin.cli.solutions import print_json, short
from attnmargin.papers.engine.registry import experiments
from attnmargin.papers.engine.reproduce import (
    Progress,
    compute_points,
    lacks_data,
    names_of,
    reproduce,
)
from attnmargin.papers.engine.summary import write_summary


def print_list(as_json: bool) -> None:
    """All figures with their titles and trial counts."""
    known = experiments()
    if as_json:
        print_json({"figures": [_entry(name) for name in known]})
        return
    table = Table("figure", "title", "trials per point", "points")
    for name, experiment in known.items():
        counts = f"{experiment.trials} {experiment.unit}", str(len(experiment.points))
        table.add_row(name, experiment.title, *counts)
    Console().print(table)


def _entry(name: str) -> dict[str, Any]:
    experiment = experiments()[name]
    return {
        "figure": name,
        "title": experiment.title,
        "trials": experiment.trials,
        "points": len(experiment.points),
    }


@contextmanager
def _bar() -> Iterator[Progress]:
    """A progress bar on standard error that names the point, if that is a terminal."""
    console = Console(stderr=True)
    with Bar(console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("")
        yield lambda words, done, total: bar.update(
            task, description=words, completed=done, total=max(total, 1)
        )


def run_figures(words: list[str], as_json: bool, **options: Any) -> int:
    """Run figures one after the other; 0 if every claim holds, else 1."""
    records = []
    try:
        with _bar() as progress:
            for name in names_of(words):
                if name not in words and lacks_data(name, options["out"], options.get("data")):
                    Console(stderr=True).print(f"{name} is left out: it needs --data")
                    continue
                record = reproduce(name, progress=progress, **options)
                records.append(record)
                if not as_json:
                    _print(record)
    except KeyboardInterrupt:
        words_kept = "stopped; finished points are kept, and the same command goes on from them"
        Console(stderr=True).print(words_kept)
        raise
    for paper in dict.fromkeys(record["figure"].split(":")[0] for record in records):
        write_summary(Path(options["out"]), paper)
    if as_json:
        print_json(records[0] if len(records) == 1 else {"figures": records})
    elif len(records) > 1:
        _print_sum(records)
    return 0 if all(claim["holds"] for r in records for claim in r["claims"]) else 1


def run_points(words: list[str], keys: tuple[str, ...], as_json: bool, **options: Any) -> int:
    """Compute single points of one figure, and say where they are."""
    if len(words) != 1 or ":" not in words[0]:
        raise InputError("--point", f"figures {' '.join(words)!r}", "one figure, such as A:fig8")
    if options.pop("redraw"):
        raise InputError("--point", "--redraw as well", "one of the two")
    with _bar() as progress:
        paths = [str(path) for path in compute_points(words[0], keys, progress=progress, **options)]
    if as_json:
        print_json({"figure": words[0], "points": paths})
    else:
        for path in paths:
            Console().print(path, soft_wrap=True, markup=False)
    return 0


def _print(record: dict[str, Any]) -> None:
    console = Console()
    counts = f"{record['trials']} {record['unit']} per point, {record['seconds']:g} s"
    table = Table("claim", "measured", "bound", "holds", title=f"{record['figure']}: {counts}",
                  title_justify="left")  # fmt: skip
    for claim in record["claims"]:
        style = "green" if claim["holds"] else "red"
        word = "holds" if claim["holds"] else "fails"
        measured = short(claim["measured"], ".6g")
        table.add_row(claim["claim"], measured, claim["bound"], f"[{style}]{word}[/]")
    console.print(table)
    for file in record["files"]:
        console.print(file, soft_wrap=True, markup=False)


def _print_sum(records: list[dict[str, Any]]) -> None:
    claims = [claim for record in records for claim in record["claims"]]
    held = sum(claim["holds"] for claim in claims)
    seconds = sum(record["seconds"] for record in records)
    Console().print(f"{held} of {len(claims)} claims hold; {len(records)} figures, {seconds:.0f} s")
