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
@click.option("--balance", is_flag=True, help="leave out texts of the larger class at random")
@click.option("--vocab", type=INPUT, help="WordPiece vocabulary; default: whole words")
@click.option("--keep-markup", is_flag=True, help="do not remove tags such as <br />")
@click.option("--keep-stop-words", is_flag=True, help="do not remove words such as the")
@click.option("--no-stem", is_flag=True, help="keep words as they are")
@click.option("--least", type=int, default=50, show_default=True, help="drop rarer tokens")
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
    """Find the tokens that decide the class in FILE (two classes of texts); train to check them."""
    from attnmargin.report.corpora import corpus_record
    from attnmargin.report.pages.tokens import write_tokens
    from attnmargin.report.tokens import importance_record
    from attnmargin.text.corpus import read_corpus

    for name in ("top", "frequent", "width"):
        if options[name] is not None and options[name] < 1:
            raise InputError(name, f"{options[name]}", "a whole number of at least 1")
    with waiting("reading"):
        corpus = read_corpus(file, **{name: options.pop(name) for name in READING})
    found = _analyse(corpus, options)
    record = {"file": str(file), "read": corpus_record(corpus)}
    record |= importance_record(found, options["top"], options["frequent"])
    if html is not None:
        record["html"] = str(write_tokens(html, found, record))
    if as_json:
        print_json(record)
    else:
        _print(record)
    return 0


COMMANDS = (tokens,)


def _analyse(corpus: Any, options: dict[str, Any]) -> Any:
    """Clean, count, and train unless ``statistics_only`` is set."""
    from attnmargin.base.device import device_of
    from attnmargin.text.corpus import balanced
    from attnmargin.text.tokens.cleaning import Cleaning
    from attnmargin.text.tokens.importance import token_importance
    from attnmargin.text.tokens.training import TokenRecipe, train_tokens

    cleaning = Cleaning(
        markup=not options["keep_markup"], stop_words=not options["keep_stop_words"],
        stem=not options["no_stem"], vocabulary=options["vocab"], least=options["least"],
    )  # fmt: skip
    recipe = TokenRecipe(d=options["width"], **{k: options[k] for k in _RECIPE})
    device = device_of(options["device"])
    if options["balance"]:
        corpus = balanced(corpus, options["seed"])
    with waiting("counting tokens"):
        found = token_importance(corpus, cleaning)
    if options["statistics_only"]:
        return found
    with progress_bar("training", "batches") as progress:
        run = train_tokens(
            found.pieces, recipe, out=options["out"], device=device, progress=progress
        )
    return replace(found, run=run)


def _print(record: dict[str, Any]) -> None:
    """Print tables of tokens, then sentences."""
    from attnmargin.report.corpora import columns_sentence
    from attnmargin.report.tokens import agreement_sentence

    console = Console()
    if words := columns_sentence(record["read"]):
        click.echo(words)
    negative, positive = record["classes"]
    titles = {
        "positive": f"tokens that speak for {positive!r}",
        "negative": f"tokens that speak for {negative!r}",
        "attended": "tokens that attention weighs most",
    }
    for name, title in titles.items():
        if name in record:
            console.print(_table(title, record[name]))
    for step in record["steps"]:
        click.echo(f"{step['step']}: {step['tokens']:,} tokens, {step['vocabulary']:,} different")
    if record["without tokens"]:
        click.echo(f"{record['without tokens']:,} texts have no token left")
    if abs(record["share"] - 0.5) > _UNBALANCED:
        click.echo(
            f"{record['share']:.0%} of all tokens stand in texts of {positive!r}, so that neutral "
            "tokens have a posterior difference too: --balance leaves out texts"
        )
    if record["agreement"]:
        click.echo(agreement_sentence(record["agreement"]))
    if "html" in record:
        click.echo(f"page: {record['html']}")


def _table(title: str, rows: list[dict[str, Any]]) -> Table:
    from attnmargin.report.tokens import token_cells

    head, cells = token_cells(rows)
    table = Table(*head, title=escape(title))
    for own in cells:
        table.add_row(*map(escape, own))
    return table
