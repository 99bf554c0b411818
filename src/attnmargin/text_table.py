"""Training on a file of texts: what the command line does, as one call with a record."""

from pathlib import Path
from typing import Any

import click
import numpy as np
import torch

from attnmargin.errors import InputError
from attnmargin.pieces import word_list, word_pieces
from attnmargin.sample import seed_of
from attnmargin.text import Corpus, read_corpus
from attnmargin.text_training import Progress, Recipe, TextRun, train_text
from attnmargin.transformer import Shape

# Words that occur less often are unknown where no vocabulary is given.
_LEAST = 2


def split_corpus(corpus: Corpus, share: float, seed: int) -> tuple[Corpus, Corpus]:
    """Texts to train on and to test: the splits of the data, or a random share."""
    if corpus.splits is not None and {"train", "test"} <= set(corpus.splits):
        return corpus.split("train"), corpus.split("test")
    if not 0.0 < share < 1.0:
        raise InputError("--test-share", f"{share:g}", "a share above 0 and below 1")
    order = np.random.default_rng(seed_of("text split", base=seed)).permutation(len(corpus))
    count = max(1, round(share * len(corpus)))
    if count >= len(corpus):
        raise InputError("file", f"{len(corpus)} texts", "enough to train and to test")
    return corpus.part(order[count:]), corpus.part(order[:count])


def overlap(train: Corpus, test: Corpus) -> int:
    """How many texts of the test occur word for word in training."""
    known = set(train.texts)
    return sum(text in known for text in test.texts)


def train_file(
    path: Path,
    *,
    columns: tuple[str, str],
    vocabulary: Path | None,
    shape: dict[str, int],
    recipe: Recipe,
    share: float,
    out: Path | None,
    device: str,
    progress: Progress | None,
) -> dict[str, Any]:
    """Read, split, train and test; returns a record."""
    corpus = read_corpus(path, *columns)
    train, test = split_corpus(corpus, share, recipe.seed)
    words: Path | list[str] = vocabulary or word_list(train.texts, _LEAST)
    cache = None if out is None else out / "cache"
    first, second = (word_pieces(part, words, shape["length"], cache) for part in (train, test))
    sizes = Shape(len(first.vocabulary), **shape)
    run = train_text(
        first, second, sizes, recipe, out=out, device=_device(device), progress=progress
    )
    return run_record(run) | {
        "file": str(path),
        "classes": list(corpus.classes),
        "train": len(train),
        "test": len(test),
        "overlap": overlap(train, test),
        "out": out and str(out),
    }


def run_record(run: TextRun) -> dict[str, Any]:
    """A run as it stands in JSON, with the number of weights."""
    return run.record() | {"weights": sum(w.numel() for w in run.model.parameters())}


def _device(name: str) -> str:
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(0, device=name)
    except (RuntimeError, AssertionError):
        raise InputError("--device", repr(name), "a device of this machine, or auto") from None
    return name


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
    click.echo(
        f"test accuracy {record['last']:.2%} after the last epoch, {record['best']:.2%} in the "
        f"best one; ℓ{record['recipe']['p']:g}, {record['weights']:,} weights, "
        f"{record['train']:,} texts to train and {record['test']:,} to test, of which "
        f"{record['overlap']:,} occur in both"
    )
    if record["out"]:
        click.echo(f"saved: {record['out']}")
