"""attnmargin reproduce."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table

from attnmargin.base.errors import InputError
from attnmargin.base.words import counted
from attnmargin.cli.console import named_progress_bar, print_json
from attnmargin.cli.log import note, warn
from attnmargin.cli.options import FOLDER, Command, OneOf, as_json, check_drawing, log, places
from attnmargin.cli.sweeps import engine_of, shard_of
from attnmargin.report.numbers import short

if TYPE_CHECKING:
    from attnmargin.sweeps.engines.engine import Engine
    from attnmargin.sweeps.shards import Shard

_STYLES = {"holds": "green", "fails": "red", "undecided": "yellow"}


@click.command(cls=Command, resumes="out")
@click.argument("figures", nargs=-1)
@click.option("--list", "listing", is_flag=True, help="list the figures, and compute nothing")
@click.option("--trials", type=int, help="per point; by default those of the paper")
@click.option(
    "--out",
    type=FOLDER,
    default=Path("results"),
    show_default=True,
    help="folder for results; run again to resume",
)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--data", type=FOLDER, help="folder of reviews, for the figures that need them")
@click.option("--redraw", is_flag=True, help="draw and judge what is saved, compute nothing")
@click.option("--point", "points", multiple=True, help="compute and save this point only; repeat")
@click.option(
    "--format",
    "kind",
    type=OneOf("png", "svg", "pdf"),
    default="png",
    show_default=True,
    help="file format of the pictures",
)
@places
@log
@as_json
def reproduce(
    figures: tuple[str, ...], listing: bool, as_json: bool, points: tuple[str, ...], **options: Any
) -> int:
    """Run FIGURES of the papers (A:fig7, or A for all), and say which claims hold.

    With --shard, compute one part of their points for one of several machines; without it,
    the finished points are used, judged and drawn.
    """
    if points and not listing:
        return _run_points(list(figures), points, as_json, options)
    if listing or not figures:
        _print_list(as_json)
        return 0
    own = {name: options.pop(name) for name in ("engine", "jobs", "address", "shard")}
    shard = shard_of(own["shard"])
    if shard.n > 1 and not options["redraw"]:
        return _run_shard(list(figures), shard, engine_of(own), as_json, options)
    return _run_figures(list(figures), _engine(own, options), as_json, options)


COMMANDS = (reproduce,)


def _print_list(as_json: bool) -> None:
    """Print all figures, one line each, under the title of their paper."""
    from attnmargin.papers.registry import PAPERS, experiments

    known = list(experiments().values())
    papers = dict.fromkeys(experiment.paper for experiment in known)
    if as_json:
        titles = {paper: PAPERS[paper] for paper in papers}
        print_json({"papers": titles, "figures": [_entry(experiment) for experiment in known]})
        return
    wide = max(len(experiment.name) for experiment in known)
    for paper in papers:
        click.secho(f"{paper}  {PAPERS[paper]}", bold=True)
        for experiment in known:
            if experiment.paper == paper:
                line = f"   {experiment.name:<{wide}}  {experiment.title} ({_counts(experiment)})"
                click.echo(line)


def _counts(experiment: Any) -> str:
    single = experiment.trials == 1
    unit = experiment.unit.removesuffix("s") if single else experiment.unit
    return f"{experiment.trials} {unit} × {counted(len(experiment.points), 'point')}"


def _entry(experiment: Any) -> dict[str, Any]:
    return {
        "paper": experiment.paper,
        "figure": experiment.name,
        "title": experiment.title,
        "trials": experiment.trials,
        "points": len(experiment.points),
    }


def _run_figures(words: list[str], engine: "Engine", as_json: bool, options: dict[str, Any]) -> int:
    """Run figures one after the other; return 0 if every claim holds, else 1."""
    check_drawing()
    from attnmargin.papers.engine.reproduce import PARTS, reproduce
    from attnmargin.papers.engine.summary import write_summary
    from attnmargin.papers.pool import point_pool
    from attnmargin.papers.registry import find, names_of

    records, names = [], _ready_names(words, options)
    own = {name: options[name] for name in ("trials", "out", "seed")}
    with named_progress_bar("points", PARTS) as progress, point_pool(names, engine, **own) as pool:
        for name in names:
            pool.wait(name, progress)
            records.append(reproduce(find(name), progress=progress, **options))
            note(_said(records[-1]))
            if not as_json:
                _print(records[-1])
    for paper in dict.fromkeys(record["figure"].split(":")[0] for record in records):
        write_summary(options["out"], paper, names_of([paper]))
    if as_json:
        print_json(records[0] if len(records) == 1 else {"figures": records})
    elif len(records) > 1:
        _print_sum(records)
    return 0 if all(claim["holds"] for r in records for claim in r["claims"]) else 1


def _ready_names(words: list[str], options: dict[str, Any]) -> list[str]:
    """List the figures meant; say which of a whole paper are left out for want of data."""
    from attnmargin.papers.engine.reproduce import lacks_data
    from attnmargin.papers.registry import find, names_of

    names = []
    for name in names_of(words):
        if name not in words and lacks_data(find(name), options["out"], options["data"]):
            warn(f"{name} is left out: it needs --data")
        else:
            names.append(name)
    return names


def _engine(own: dict[str, Any], options: dict[str, Any]) -> "Engine":
    """Return where points are computed; few trials do not repay the start of processes."""
    few = options["redraw"] or (own["jobs"] is None and options["trials"] is not None)
    local = own["engine"] == "local"
    return engine_of({**own, "jobs": 1} if few and local else own)


def _run_shard(
    words: list[str], shard: "Shard", engine: "Engine", as_json: bool, options: dict[str, Any]
) -> int:
    """Compute one part of the points of figures, and report where they are saved."""
    from attnmargin.papers.pool import compute_shard

    names = _ready_names(words, options)
    own = {name: options[name] for name in ("trials", "out", "seed", "data")}
    with named_progress_bar() as progress:
        paths = compute_shard(names, shard, engine, progress, **own)
    if as_json:
        print_json({"shard": str(shard), "points": [str(path) for path in paths]})
    else:
        where = f"{options['out']}; without --shard, the same command judges and draws them"
        click.echo(f"{len(paths)} points of shard {shard} are saved in {where}")
    return 0


def _run_points(
    words: list[str], keys: tuple[str, ...], as_json: bool, options: dict[str, Any]
) -> int:
    """Compute single points of one figure, and report where they are saved."""
    if len(words) != 1 or ":" not in words[0]:
        raise InputError("--point", f"figures {' '.join(words)!r}", "one figure, such as A:fig8")
    if options["redraw"]:
        raise InputError("--point", "--redraw as well", "one of the two")
    from attnmargin.papers.engine.reproduce import PARTS, compute_points
    from attnmargin.papers.registry import find

    own = {name: options[name] for name in ("trials", "out", "seed", "data")}
    with named_progress_bar("points", PARTS) as progress:
        found = compute_points(find(words[0]), keys, progress=progress, **own)
    paths = [str(path) for path in found]
    if as_json:
        print_json({"figure": words[0], "points": paths})
    else:
        for path in paths:
            click.echo(path)
    return 0


def _print(record: dict[str, Any]) -> None:
    from attnmargin.papers.engine.summary import measured_words

    console = Console()
    counts = f"{record['trials']} {record['unit']} per point, {record['seconds']:g} s"
    columns = ("claim", "measured", "values", "bound", "verdict")
    table = Table(*columns, title=f"{record['figure']}: {counts}", title_justify="left")
    for claim in record["claims"]:
        style = _STYLES[claim["verdict"]]
        count = "–" if claim["count"] is None else f"{claim['count']:,}"
        table.add_row(claim["claim"], measured_words(claim), count, claim["bound"],
                      f"[{style}]{claim['verdict']}[/]")  # fmt: skip
    console.print(table)
    for own in record["measurements"]:
        words = f"measured: {own['what']}: {short(own['measured'], '.6g')}"
        console.print(words, soft_wrap=True, markup=False)
    for file in record["files"]:
        console.print(file, soft_wrap=True, markup=False)


def _said(record: dict[str, Any]) -> str:
    """Say what came of a figure, for the log."""
    from attnmargin.papers.engine.summary import tally

    verdicts = [claim["verdict"] for claim in record["claims"]]
    return f"{record['figure']}: {tally(verdicts)}, {record['seconds']:g} s"


def _print_sum(records: list[dict[str, Any]]) -> None:
    from attnmargin.papers.engine.summary import tally

    held = tally([claim["verdict"] for record in records for claim in record["claims"]])
    measured = sum(len(record["measurements"]) for record in records)
    seconds = sum(record["seconds"] for record in records)
    more = f"{measured} further numbers are measured without a bound; " if measured else ""
    click.echo(f"{held}; {more}{len(records)} figures, {seconds:.0f} s")
