"""Training on a file of texts: what the command line does, as one call with a record."""

from pathlib import Path
from typing import Any

import click

from attnmargin.text.classifier.training import Progress, Recipe, TextRun, device_of, train_text
from attnmargin.text.classifier.transformer import Shape
from attnmargin.text.corpus import overlap, read_corpus, split_corpus
from attnmargin.text.pieces import word_list, word_pieces

# Words that occur less often are unknown where no vocabulary is given.
_LEAST = 2


def train_file(
    path: Path,
    *,
    columns: tuple[str, str],
    vocabulary: Path | None,
    shape: dict[str, Any],
    recipe: Recipe,
    share: float,
    out: Path | None,
    device: str,
    progress: Progress | None,
    html: Path | None = None,
) -> dict[str, Any]:
    """Read, split, train and test; returns a record, and writes a page if asked to."""
    corpus = read_corpus(path, *columns)
    train, test = split_corpus(corpus, share, recipe.seed)
    words: Path | list[str] = vocabulary or word_list(train.texts, _LEAST)
    cache = None if out is None else out / "cache"
    first, second = (word_pieces(part, words, shape["length"], cache) for part in (train, test))
    sizes = Shape(len(first.vocabulary), **shape)
    run = train_text(
        first, second, sizes, recipe, out=out, device=device_of(device), progress=progress
    )
    record = run_record(run) | {
        "file": str(path),
        "classes": list(corpus.classes),
        "train": len(train),
        "test": len(test),
        "overlap": overlap(train, test),
        "out": out and str(out),
        "html": html and str(html),
    }
    if html is not None:
        from attnmargin.report.pages.text import write_text_page

        write_text_page(html, run, second, corpus.classes, _sentence(record))
    return record


def run_record(run: TextRun) -> dict[str, Any]:
    """A run as it stands in JSON, with the number of weights."""
    return run.record() | {"weights": sum(w.numel() for w in run.model.parameters())}


def print_run(record: dict[str, Any]) -> None:
    """Accuracies side by side, epoch by epoch."""
    from rich.console import Console
    from rich.table import Table

    table = Table("epoch", "loss", "accuracy in training", "test accuracy", "seconds")
    for row in record["history"]:
        table.add_row(
            f"{row['epoch']:.0f}", f"{row['loss']:.4f}", f"{row['train']:.2%}",
            f"{row['test']:.2%}", f"{row['seconds']:.1f}",
        )  # fmt: skip
    Console().print(table)
    click.echo(_sentence(record))
    for name, words in (("out", "saved"), ("html", "page")):
        if record[name]:
            click.echo(f"{words}: {record[name]}")


def _sentence(record: dict[str, Any]) -> str:
    return (
        f"Test accuracy {record['last']:.2%} after the last epoch, {record['best']:.2%} in the "
        f"best one; ℓ{record['recipe']['p']:g}, {record['weights']:,} weights, "
        f"{record['train']:,} texts to train and {record['test']:,} to test, of which "
        f"{record['overlap']:,} occur in both."
    )
