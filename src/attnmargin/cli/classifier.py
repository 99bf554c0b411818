"""attnmargin train-text."""

from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

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

_SIZES = ("layers", "heads", "width", "hidden", "length", "dropout")


@click.command("train-text", cls=Command, resumes="out")
@click.argument("file", type=INPUT_OR_FOLDER)
@reading
@click.option("--positive", help="tell this class from the rest; default: every class")
@click.option("--vocab", type=INPUT, help="WordPiece vocabulary; default: words of the texts")
@click.option("--p", type=float, default=1.1, show_default=True, help="of the mirror potential")
@click.option("--lr", type=float, default=8e-4, show_default=True, help="for the summed loss")
@click.option("--layers", type=int, default=3, show_default=True)
@click.option("--heads", type=int, default=3, show_default=True)
@click.option("--width", type=int, default=384, show_default=True)
@click.option("--hidden", type=int, default=1536, show_default=True)
@click.option("--length", type=int, default=512, show_default=True, help="tokens of a text")
@click.option("--dropout", type=float, default=0.2, show_default=True)
@click.option("--epochs", type=int, default=40, show_default=True, help="at most")
@click.option("--batch", type=int, default=100, show_default=True)
@click.option("--stop", type=float, default=0.995, show_default=True, help="training accuracy")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--test-share", "share", type=float, default=0.2, show_default=True)
@click.option("--device", default="auto", show_default=True, help="auto, cpu or cuda")
@click.option("--out", type=FOLDER, help="folder for checkpoints; run again to resume")
@click.option("--html", type=PICTURES, help="write a page: accuracy, weights, attention")
@log
@as_json
def train_text(
    file: Path,
    vocab: Path | None,
    share: float,
    positive: str | None,
    device: str,
    out: Path | None,
    html: Path | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Train a transformer on FILE (classes of texts) by ℓp mirror descent."""
    from attnmargin.base.device import device_of
    from attnmargin.report.classifier import classifier_record, classifier_sentence
    from attnmargin.report.corpora import corpus_record
    from attnmargin.report.pages.text import write_text_page
    from attnmargin.text.classifier.corpus_training import train_corpus
    from attnmargin.text.classifier.training import Recipe
    from attnmargin.text.corpus import read_corpus

    how = {name: options.pop(name) for name in READING}
    sizes = {name: options.pop(name) for name in _SIZES}
    recipe, target = Recipe(**options), device_of(device)
    with waiting("reading"):
        corpus = read_corpus(file, **how)
        corpus = corpus if positive is None else corpus.against(positive)
    with progress_bar("training") as progress:
        found = train_corpus(
            corpus, sizes, recipe, vocabulary=vocab, share=share, out=out, device=target,
            progress=progress,
        )  # fmt: skip
    record = classifier_record(found) | {"file": str(file), "out": out and str(out)}
    record |= {"read": corpus_record(corpus)}
    record |= {"sentence": classifier_sentence(record), "html": html and str(html)}
    if html is not None:
        write_text_page(html, found.run, found.pieces, found.classes, record["sentence"])
    if as_json:
        print_json(record)
    else:
        _print(record)
    return 0


COMMANDS = (train_text,)


def _print(record: dict[str, Any]) -> None:
    """Print accuracies side by side, epoch by epoch."""
    from attnmargin.report.corpora import columns_sentence

    if words := columns_sentence(record["read"]):
        click.echo(words)
    table = Table("epoch", "loss", "accuracy in training", "test accuracy", "seconds")
    for row in record["history"]:
        table.add_row(
            f"{row['epoch']:.0f}", f"{row['loss']:.4f}", f"{row['train']:.2%}",
            f"{row['test']:.2%}", f"{row['seconds']:.1f}",
        )  # fmt: skip
    Console().print(table)
    click.echo(record["sentence"])
    for name, words in (("out", "saved"), ("html", "page")):
        if record[name]:
            click.echo(f"{words}: {record[name]}")
