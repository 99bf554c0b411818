"""attnmargin tokens."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from attnmargin.base.errors import InputError
from attnmargin.cli.console import print_json, progress_bar, waiting
from attnmargin.cli.options import (
    FOLDER,
    INPUT,
    INPUT_OR_FOLDER,
    PICTURES,
    READING,
    Command,
    as_json,
    log,
    reading,
)

# Warn if the share of tokens of the positive class is farther than this from one half.
_UNBALANCED = 0.1
_RECIPE = ("layers", "lr", "epochs", "batch", "seed")


@click.command(cls=Command, resumes="out")
@click.argument("file", type=INPUT_OR_FOLDER)
@reading
@click.option("--positive", help="compare this class with the rest; default: every class")
@click.option("--balance", is_flag=True, help="leave out texts of the larger class at random")
@click.option("--vocab", type=INPUT, help="WordPiece vocabulary; default: whole words")
@click.option("--keep-markup", is_flag=True, help="do not remove tags such as <br />")
@click.option("--keep-stop-words", is_flag=True, help="do not remove words such as the")
@click.option("--no-stem", is_flag=True, help="keep words as they are")
@click.option("--least", type=int, default=50, show_default=True, help="drop rarer tokens")
@click.option("--pairs", is_flag=True, help="count pairs of words too, such as not good")
@click.option(
    "--level",
    type=float,
    default=0.05,
    show_default=True,
    help="share of false discoveries; intervals are of one minus this",
)
@click.option("--top", type=int, default=15, show_default=True, help="tokens of each table")
@click.option("--frequent", type=int, help="compare on tokens seen at least this often")
@click.option("--statistics-only", is_flag=True, help="count, and train nothing")
@click.option("--layers", type=int, default=1, show_default=True, help="model (1) or (36)")
@click.option("--width", type=int, default=64, show_default=True, help="width of the embeddings")
@click.option("--lr", type=float, default=1e-3, show_default=True)
@click.option("--epochs", type=int, default=60, show_default=True)
@click.option("--batch", type=int, default=500, show_default=True)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--device", default="auto", show_default=True, help="auto, cpu or cuda")
@click.option("--out", type=FOLDER, help="folder for the model; run again to resume")
@click.option("--html", type=PICTURES, help="write a page: tables, pictures, coloured texts")
@log
@as_json
def tokens(file: Path, html: Path | None, as_json: bool, **options: Any) -> int:
    """Find the tokens that are evidence for a class of texts in FILE; train to check them."""
    from attnmargin.report.corpora import corpus_record
    from attnmargin.report.pages.tokens import write_tokens
    from attnmargin.report.tokens import classes_record, importance_record
    from attnmargin.text.corpus import read_corpus

    for name in ("top", "frequent", "width"):
        if options[name] is not None and options[name] < 1:
            raise InputError(name, f"{options[name]}", "a whole number of at least 1")
    with waiting("reading"):
        corpus = read_corpus(file, **{name: options.pop(name) for name in READING})
    found = _analyse(corpus, options)
    records = [
        importance_record(own, options["top"], options["frequent"], _agreement(own, options))
        for own in found
    ]
    record = {"file": str(file), "read": corpus_record(corpus)} | classes_record(records)
    if html is not None:
        record["html"] = str(write_tokens(html, file.name, found, records))
    if as_json:
        print_json(record)
    else:
        _print(record)
    return 0


COMMANDS = (tokens,)


def _analyse(corpus: Any, options: dict[str, Any]) -> list[Any]:
    """Clean, count, and train unless ``statistics_only`` is set: one result per class."""
    from attnmargin.base.device import device_of
    from attnmargin.text.corpus import balanced
    from attnmargin.text.tokens.cleaning import Cleaning
    from attnmargin.text.tokens.importance import class_importance
    from attnmargin.text.tokens.training import TokenRecipe

    cleaning = Cleaning(
        markup=not options["keep_markup"], stop_words=not options["keep_stop_words"],
        stem=not options["no_stem"], vocabulary=options["vocab"], least=options["least"],
        pairs=options["pairs"],
    )  # fmt: skip
    recipe = TokenRecipe(d=options["width"], **{k: options[k] for k in _RECIPE})
    device = device_of(options["device"])
    if options["positive"] is not None:
        corpus = corpus.against(options["positive"])
    if options["balance"]:
        corpus = balanced(corpus, options["seed"])
    with progress_bar("counting tokens", "texts") as progress:
        found = class_importance(corpus, cleaning, level=options["level"], progress=progress)
    if options["statistics_only"]:
        return list(found)
    out = options["out"]
    folders = [out and out / f"class-{k + 1}" for k in range(len(found))] if found[1:] else [out]
    return [_trained(*each, recipe, device) for each in zip(found, folders, strict=True)]


def _trained(found: Any, out: Path | None, recipe: Any, device: str) -> Any:
    """Train a model of a class against the rest."""
    from attnmargin.text.tokens.training import train_tokens

    words = f"training: {found.classes[1]} or {found.classes[0]}"
    with progress_bar(words, "batches") as progress:
        run = train_tokens(found.pieces, recipe, out=out, device=device, progress=progress)
    return replace(found, run=run)


def _agreement(found: Any, options: dict[str, Any]) -> Any:
    """Compare the model with the counts, if there is one."""
    from attnmargin.text.tokens.agreement import model_agreement

    if found.run is None:
        return None
    with waiting("comparing attention with the counts"):
        return model_agreement(found, options["frequent"], seed=options["seed"])


def _print(record: dict[str, Any]) -> None:
    """Print tables of tokens, then sentences."""
    from attnmargin.report.corpora import columns_sentence

    console = Console()
    if words := columns_sentence(record["read"]):
        click.echo(words)
    if "each" in record:
        console.print(_classes_table(record["each"]))
    else:
        _print_tables(console, record)
    for step in record["steps"]:
        click.echo(f"{step['step']}: {step['tokens']:,} tokens, {step['vocabulary']:,} different")
    if record["without tokens"]:
        click.echo(f"{record['without tokens']:,} texts have no token left")
    for own in record.get("each", [record]):
        _print_sentences(own | {"level": record["level"]})
    if "html" in record:
        click.echo(f"page: {record['html']}")


def _print_tables(console: Console, record: dict[str, Any]) -> None:
    negative, positive = record["classes"]
    titles = {
        "positive": f"tokens that speak for {positive!r}",
        "negative": f"tokens that speak for {negative!r}",
        "attended": "tokens that attention weighs most",
    }
    for name, title in titles.items():
        if record.get(name):
            console.print(_table(title, record[name]))


def _print_sentences(record: dict[str, Any]) -> None:
    """Say what is evidence, how balanced the classes are, and how the model agrees."""
    from attnmargin.report.tokens import agreement_sentence, evidence_sentence, ranks_sentence

    click.echo(evidence_sentence(record))
    if not record["evidence"]["found"]:
        click.echo("more texts would show more; --level allows a larger share of false discoveries")
    if abs(record["share"] - 0.5) > _UNBALANCED and "class" not in record:
        click.echo(
            "--balance leaves out texts, so that neutral tokens have no posterior difference"
        )
    if record["agreement"]:
        click.echo(agreement_sentence(record["agreement"]))
        if words := ranks_sentence(record["agreement"]):
            click.echo(words)


def _classes_table(records: list[dict[str, Any]]) -> Table:
    """Build one table of what speaks for each class."""
    from attnmargin.report.tokens import token_cells

    head, _ = token_cells(records[0]["positive"])
    table = Table("class", *head, title="tokens that speak for each class, against the rest")
    for record in records:
        for k, own in enumerate(token_cells(record["positive"])[1]):
            table.add_row(escape(record["class"]) if k == 0 else "", *map(escape, own))
        table.add_section()
    return table


def _table(title: str, rows: list[dict[str, Any]]) -> Table:
    from attnmargin.report.tokens import token_cells

    head, cells = token_cells(rows)
    table = Table(*head, title=escape(title))
    for own in cells:
        table.add_row(*map(escape, own))
    return table
