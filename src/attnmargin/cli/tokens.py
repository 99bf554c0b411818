"""What ``attnmargin tokens`` prints: the tokens that decide, as tables and a record."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from attnmargin.base.errors import InputError, check_whole
from attnmargin.cli.runs import progress_bar
from attnmargin.cli.solutions import waiting
from attnmargin.text.classifier.training import device_of
from attnmargin.text.corpus import balanced, read_corpus
from attnmargin.text.tokens.cleaning import Cleaning
from attnmargin.text.tokens.importance import TokenImportance, token_importance
from attnmargin.text.tokens.training import TokenRecipe, TokenRun, train_tokens

# How far from one half the share of tokens of the positive class may be without a word.
_UNBALANCED = 0.1


def analyse(path: Path, **options: Any) -> tuple[TokenImportance, dict[str, Any]]:
    """Read, clean, count, and train unless only statistics are asked for; with the record."""
    top = options["top"]
    if top < 1:
        raise InputError("--top", f"{top}", "at least one token")
    if options["frequent"] is not None:
        check_whole(**{"--frequent": options["frequent"]})
    cleaning = Cleaning(
        markup=not options["keep_markup"], stop_words=not options["keep_stop_words"],
        stem=not options["no_stem"], vocabulary=options["vocab"], least=options["least"],
    )  # fmt: skip
    corpus = read_corpus(path, options["text"], options["label"], drop=options["drop"])
    if options["balance"]:
        corpus = balanced(corpus, options["seed"])
    with waiting("counting tokens"):
        found = token_importance(corpus, cleaning)
    if not options["statistics_only"]:
        found = replace(found, run=_train(found, options))
    return found, importance_record(found, path, top, options["frequent"])


def _train(found: TokenImportance, options: dict[str, Any]) -> TokenRun:
    names = ("layers", "lr", "epochs", "batch", "seed")
    check_whole(**{"--width": options["width"]})
    recipe = TokenRecipe(d=options["width"], **{k: options[k] for k in names})
    with progress_bar("training") as progress:
        return train_tokens(
            found.pieces, recipe, out=options["out"], device=device_of(options["device"]),
            progress=progress,
        )  # fmt: skip


def importance_record(
    found: TokenImportance, path: Path, most: int, frequent: int | None = None
) -> dict[str, Any]:
    """As it stands in JSON."""
    names = ("positive", "negative") + (("attended",) if found.run else ())
    kinds = found.statistics.kind
    return {
        "file": str(path),
        "texts": len(found.pieces) + found.empty,
        "without tokens": found.empty,
        "classes": list(found.classes),
        "steps": [step._asdict() for step in found.steps],
        "kinds": {str(kind): int((kinds == kind).sum()) for kind in sorted(set(kinds.tolist()))},
        "share": found.statistics.share,
        "agreement": found.agreement(frequent) if found.run else None,
        **{name: [found.row(int(s)) for s in found.ranked(name, most)] for name in names},
    }


def print_importance(record: dict[str, Any]) -> None:
    """Tables of tokens, and sentences."""
    console = Console()
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


def _table(title: str, rows: list[dict[str, Any]]) -> Table:
    head, cells = token_cells(rows)
    table = Table(*head, title=escape(title))
    for own in cells:
        table.add_row(*map(escape, own))
    return table


def token_cells(rows: list[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """The head and the cells of a table of tokens."""
    trained = bool(rows) and "with p" in rows[0]
    head = ["token", "seen", "posterior difference", "signed frequency α"]
    head += ["⟨E, v⟩", "⟨E, p⟩"] if trained else []
    cells = []
    for row in rows:
        own = [row["token"], f"{row['count']:,}", f"{row['difference']:+.3f}",
               f"{row['alpha']:+.2e}"]  # fmt: skip
        cells.append(own + ([f"{row['with v']:+.2f}", f"{row['with p']:+.2f}"] if trained else []))
    return head, cells


def agreement_sentence(own: dict[str, Any]) -> str:
    """How far the trained model agrees with the statistics."""
    if own["sign agreement"] is None:
        return (
            f"no token that was seen at least {own['seen at least']} times has a posterior "
            f"difference above {own['difference above']:g}, so that there is nothing to compare "
            "the model with; --frequent takes rarer ones"
        )
    return (
        f"the trained model has the sign of the posterior difference for "
        f"{own['sign agreement']:.1%} of {own['tokens']:,} tokens seen at least "
        f"{own['seen at least']} times with a difference above {own['difference above']:g}; "
        f"loss {own['loss']:.2g}, accuracy in training {own['accuracy']:.1%}"
    )
