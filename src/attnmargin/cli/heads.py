"""attnmargin heads."""

from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from attnmargin.base.errors import InputError
from attnmargin.cli.console import print_json, progress_bar, waiting
from attnmargin.cli.options import INPUT, OUTPUT, Command, OneOf, as_json, log, words_or_files


@click.command(cls=Command)
@click.argument("model", shell_complete=words_or_files("minilm"))
@click.argument("texts", type=INPUT)
@click.option("--all", "every", is_flag=True, help="study all heads; the default")
@click.option("--layer", type=int, help="study the heads of one layer")
@click.option("--head", type=int, help="study one head, with --layer")
@click.option(
    "--want",
    shell_complete=words_or_files("previous", "same", "next"),
    help="a .jsonl file of pairs, or previous, same or next",
)
@click.option("--length", type=int, help="cut texts to so many tokens")
@click.option(
    "--which",
    type=OneOf("widest", "saturated", "all"),
    default="widest",
    show_default=True,
    help="queries that an attention SVM asks",
)
@click.option(
    "--saturated",
    type=float,
    default=0.9,
    show_default=True,
    help="a query is saturated if one token gets more than this share",
)
@click.option("--price", type=float, help="of slack; 1 for --which all, else inf: a hard margin")
@click.option("--queries", type=int, default=24, show_default=True, help="of one attention SVM")
@click.option(
    "--draws",
    type=int,
    default=4,
    show_default=True,
    help="attention SVMs, and random heads, per head",
)
@click.option("--seed", type=int, default=0, show_default=True, help="of the random heads")
@click.option("--nuclear", is_flag=True, help="one head in the nuclear norm too (slow)")
@click.option("--html", type=OUTPUT, help="write a page: map of heads, sentences, attention")
@log
@as_json
def heads(
    model: str, texts: Path, every: bool, layer: int | None, head: int | None, want: str | None,
    length: int | None, html: Path | None, as_json: bool, **options: Any,
) -> int:  # fmt: skip
    """Say which tokens the heads of MODEL select on TEXTS, by what margin, and who guards that.

    MODEL is a folder, a model in the local cache, or minilm. TEXTS has one text per line, or is
    .jsonl with a field text.
    """
    _check(every, layer, head, length)
    nuclear = options.pop("nuclear")
    if nuclear and head is None:
        raise InputError("nuclear", "several heads", "one head: --layer L --head H")
    found = _read(model, texts, layer, head, length)
    pairs = None if want is None else _pairs(want, found)
    record, studies = _study(model, found, pairs, options)
    if head is not None:
        record["detail"] = _detail(found, options, nuclear)
    if html is not None:
        from attnmargin.report.pages.heads import write_heads

        record["html"] = str(write_heads(html, found, studies, record))
    if as_json:
        print_json(record)
    else:
        _print(record)
    layers = record.get("wanted", {}).get("layers", ())
    return 1 if layers and all(own["status"] == "infeasible" for own in layers) else 0


COMMANDS = (heads,)


def _check(every: bool, layer: int | None, head: int | None, length: int | None) -> None:
    if every and (layer is not None or head is not None):
        raise InputError("--all", "--layer or --head beside it", "one of the two")
    if head is not None and layer is None:
        raise InputError("--head", f"{head} without --layer", "the layer of the head")
    if length is not None and length < 1:
        raise InputError("length", f"{length}", "a whole number of at least 1")


def _read(model: str, texts: Path, layer: int | None, head: int | None, length: int | None) -> Any:
    """Read the texts first, which is quick, then the model."""
    from attnmargin.models.files import read_texts

    rows = read_texts(texts)
    with waiting("reading the model"):
        from attnmargin.models.reading import read_heads

        try:
            return read_heads(model, rows, layers=layer, heads=head, length=length)
        except InputError as error:
            spoken = {"layers": "--layer", "heads": "--head", "model": "MODEL", "texts": "TEXTS"}
            argument = spoken.get(error.argument, error.argument)
            raise InputError(argument, error.got, error.needs) from error


def _pairs(want: str, found: Any) -> Any:
    """Read wanted pairs, or make those of a word."""
    from attnmargin.models.files import read_pairs
    from attnmargin.models.wanted import PLACES, check_pairs, place_pairs

    if want in PLACES:
        return place_pairs(found, want)
    pairs = read_pairs(Path(want))
    try:
        check_pairs(found[0], pairs)
    except InputError as error:
        raise InputError("--want", error.got, error.needs) from error
    return pairs


def _study(model: str, found: Any, pairs: Any, options: dict[str, Any]) -> tuple[Any, Any]:
    from attnmargin.models.settings import Settings
    from attnmargin.models.study import study_heads
    from attnmargin.models.wanted import wanted_selection
    from attnmargin.report.heads import heads_record

    settings = Settings(**options)
    wanted = None
    if pairs is not None:
        with waiting("asking for the wanted selection"):
            wanted = wanted_selection(list(found), pairs)
    with progress_bar("studying heads", "heads") as progress:
        studies = study_heads(found, settings, progress)
    return heads_record(model, found, studies, settings, wanted), studies


def _detail(found: Any, options: dict[str, Any], nuclear: bool) -> dict[str, Any]:
    from attnmargin.models.detail import examine_head
    from attnmargin.models.settings import Settings
    from attnmargin.report.heads import detail_record

    with waiting("taking guards away"):
        detail = examine_head(found[0], Settings(**options), nuclear)
    return detail_record(detail, found.words)


def _print(record: dict[str, Any]) -> None:
    """Print the table of heads, that of the wanted selection, and sentences."""
    from attnmargin.report.heads import head_cells, wanted_cells

    console = Console()
    console.print(_table("heads beside random ones with the same spectrum",
                         head_cells(record["heads"])))  # fmt: skip
    if "wanted" in record:
        console.print(_table("heads that attend as wanted", wanted_cells(record["wanted"])))
    for sentence in [*record["sentences"], *record.get("detail", {}).get("sentences", ())]:
        click.echo(sentence)
    if "html" in record:
        click.echo(f"page: {record['html']}")


def _table(title: str, cells: tuple[list[str], list[list[str]]]) -> Table:
    head, rows = cells
    table = Table(*head, title=escape(title))
    for own in rows:
        table.add_row(*map(escape, own))
    return table
