"""attnmargin sweep and collect."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table

from attnmargin.cli.console import named_progress_bar, print_json, waiting
from attnmargin.cli.options import FOLDER, INPUT, Command, as_json, log, places

if TYPE_CHECKING:
    from attnmargin.sweeps.engines.engine import Engine
    from attnmargin.sweeps.shards import Shard
    from attnmargin.sweeps.sweep import Sweep

# Points that are named, of those that failed or are missing.
_MOST = 5


@click.command(cls=Command, resumes="out")
@click.argument("spec", type=INPUT)
@click.option("--out", type=FOLDER, help="folder of the sweep  [the name of SPEC, without .toml]")
@click.option("--trials", type=int, help="in place of those in SPEC")
@click.option("--seed", type=int, help="in place of the one in SPEC")
@click.option("--time-limit", type=float, help="seconds after which no further point is begun")
@places
@log
@as_json
def sweep(spec: Path, out: Path | None, as_json: bool, **options: Any) -> int:
    """Compute SPEC, a .toml file, over all its points; a stopped sweep goes on.

    Every finished point is one file in the folder. When all points are there, they are collected.
    """
    from attnmargin.sweeps.entry import sweep as compute
    from attnmargin.sweeps.spec import read_spec

    plan = read_spec(spec, options["trials"], options["seed"])
    folder = spec.with_suffix("") if out is None else out
    engine, shard = engine_of(options), shard_of(options["shard"])
    with named_progress_bar() as progress:
        found = compute(
            plan.function, plan.points, plan.trials, plan.seed, out=folder, engine=engine,
            shard=shard, time_limit=options["time_limit"], progress=progress,
        )  # fmt: skip
    whole = found.complete and shard.n == 1
    return _report(found, folder, as_json, {"shard": str(shard)}, draw=whole)


@click.command(cls=Command)
@click.argument("folders", nargs=-1, required=True, type=FOLDER)
@click.option("--out", type=FOLDER, help="folder for the table and the picture  [the first folder]")
@as_json
def collect(folders: tuple[Path, ...], out: Path | None, as_json: bool) -> int:
    """Join the shards of a sweep in FOLDERS; write one table and a picture.

    Names the points that failed or are missing: then the exit code is 1.
    """
    from attnmargin.sweeps.entry import collect as join

    with waiting("reading points"):
        found = join(*folders)
    return _report(found, out or folders[0], as_json, {}, draw=bool(found.done))


COMMANDS = (sweep, collect)


def engine_of(options: dict[str, Any]) -> "Engine":
    """Return the engine that the options name."""
    from attnmargin.sweeps.engines.engine import Engine

    return Engine(options["engine"], options["jobs"], address=options["address"])


def shard_of(word: str | None) -> "Shard":
    """Return the part that an option names, or else the environment."""
    from attnmargin.sweeps.shards import as_shard, slurm_shard

    return slurm_shard() if word is None else as_shard(word)


def _report(sweep: "Sweep", folder: Path, as_json: bool, more: dict[str, Any], draw: bool) -> int:
    """Write table and picture, and say what stands."""
    from attnmargin.report.sweeps import sweep_record, write_sweep

    files = write_sweep(sweep, folder) if draw else []
    record = {"folder": str(folder), **more, **sweep_record(sweep), "files": list(map(str, files))}
    if as_json:
        print_json(record)
    else:
        _print(record)
    return 0 if sweep.complete else 1


def _print(record: dict[str, Any]) -> None:
    console = Console()
    part = "" if record.get("shard", "1/1") == "1/1" else f" of shard {record['shard']}"
    counts = f"{record['done']:,} of {record['points']:,} points{part} are finished"
    console.print(f"{counts} in {record['folder']}", soft_wrap=True, markup=False, highlight=False)
    for name in ("failed", "missing"):
        for point in record[name][:_MOST]:
            words = ", ".join(f"{k} = {v}" for k, v in point["settings"].items())
            why = f": {point['why']}" if "why" in point else ""
            console.print(f"{name}: {words}{why}", soft_wrap=True, markup=False)
        if len(record[name]) > _MOST:
            console.print(f"and {len(record[name]) - _MOST:,} more that are {name}")
    if record["means"]:
        console.print(_table(record["means"]))
    for file in record["files"]:
        console.print(file, soft_wrap=True, markup=False)


def _table(means: dict[str, Any]) -> Table:
    """Show the mean of every quantity at every point, of the first points."""
    from attnmargin.report.numbers import short

    table = Table(*means["names"], title=means["title"], title_justify="left")
    for row in means["rows"]:
        table.add_row(*(v if isinstance(v, str) else short(v, ".6g") for v in row))
    return table
