"""attnmargin train."""

from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from attnmargin.cli.console import print_json, progress_bar
from attnmargin.cli.options import INPUT, LOSSES, OUTPUT, Command, OneOf, as_json, log, power, rate
from attnmargin.report.numbers import short

_MOST_LINES = 20


@click.command(cls=Command)
@click.argument("file", type=INPUT)
@click.option("--parameter", type=OneOf("W", "KQ", "vW"), default="W", show_default=True)
@power
@rate
@click.option("--steps", type=int, default=2000, show_default=True)
@click.option("--plain", is_flag=True, help="do not normalise gradients")
@click.option("--loss", type=LOSSES, default="logistic", show_default=True)
@click.option("--penalty", type=float, default=0.0, show_default=True, help="λ of the ridge term")
@click.option("--width", type=int, help="m of K and Q")
@click.option("--record", type=int, default=100, show_default=True, help="steps between records")
@click.option("--out", type=OUTPUT, help="save the trajectory as .npz")
@log
@as_json
def train(
    file: Path, p: float, plain: bool, out: Path | None, as_json: bool, **options: Any
) -> int:
    """Train attention on FILE (.npz with X, z, y, v), and compare it with the SVM."""
    from attnmargin.data.attention_data import AttentionData
    from attnmargin.margin.implied import implied_method, implied_norm
    from attnmargin.prediction.comparison import compare
    from attnmargin.report.runs import training_record
    from attnmargin.training import train as train_data

    data, norm = AttentionData.load(file), implied_norm(options["parameter"], p)
    method = implied_method(p)
    with progress_bar("training") as progress:
        run = train_data(
            data, method=method, p=p, normalize=not plain, progress=progress, **options
        )
    saved = None if out is None else run.save(out)
    record = training_record(compare(data, run, norm))
    record |= {"file": str(file), "out": saved and str(saved)}
    if as_json:
        print_json(record)
    else:
        _print(record)
    return 0


COMMANDS = (train,)


def _print(record: dict[str, Any]) -> None:
    """Print the final state of every trial."""
    console = Console()
    table = Table("trial", "loss", "largest softmax", "optimal tokens", "‖W‖", "svm", "correlation")
    for result in record["results"][:_MOST_LINES]:
        aligned, count = result["correlation"], result["optimal tokens"]
        table.add_row(
            ", ".join(map(str, result["index"])) or "–",
            short(result["loss"], ".6g"),
            short(result["probability"], ".6f"),
            "–" if count is None else f"{count} of {record['sequences']}",
            short(result["norm"], ".4g"),
            result["svm"],
            short(aligned, ".6f"),
        )
    console.print(table)
    if len(record["results"]) > _MOST_LINES:
        console.print(f"… and {len(record['results']) - _MOST_LINES} more")
    found = [r["correlation"] for r in record["results"] if r["correlation"] is not None]
    if found:
        console.print(
            f"correlation with the SVM of the selected tokens, norm {record['norm of the svm']}: "
            f"mean {sum(found) / len(found):.6f}, worst {min(found):.6f}"
        )
    nothing = sum(not result["decided"] for result in record["results"])
    if nothing:
        words = f"in {nothing} of {len(record['results'])} trials nothing is selected"
        console.print(f"{words}: in some sequence the most likely tokens are equally likely")
    for note in record["notes"]:
        console.print(note, soft_wrap=True)
    if record["out"]:
        console.print(f"saved: {record['out']}", soft_wrap=True)
