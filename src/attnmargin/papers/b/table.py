"""Paper B, table 1: transformers trained on reviews by ℓp mirror descent."""

from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from attnmargin.base.device import device_of
from attnmargin.base.files import own_place, write_whole
from attnmargin.papers.b.pivotal import REVIEWS
from attnmargin.papers.engine.claims import (
    Claim,
    Judgement,
    at_least,
    mean_of,
    more_than,
)
from attnmargin.papers.engine.experiment import Arrays, Experiment, Point, Results, Task
from attnmargin.papers.engine.review_data import NEEDS, find_reviews, find_vocabulary
from attnmargin.plot.panels import Panel, Picture, Series
from attnmargin.text.classifier.analysis import attention_shares, sparsity
from attnmargin.text.classifier.training import Recipe, TextRun, train_text
from attnmargin.text.classifier.transformer import Shape
from attnmargin.text.corpus import Corpus, overlap
from attnmargin.text.pieces import Pieces, word_pieces

# Learning rates of the authors' configurations, by size (layers, and heads per layer) and power.
RATES = {
    3: {1.1: 8e-4, 2.0: 4e-4, 3.0: 4e-6},
    4: {1.1: 6e-4, 2.0: 4e-4, 3.0: 6e-6},
    6: {1.1: 1e-3, 2.0: 1e-3, 3.0: 1e-5},
}
POWERS = (1.1, 2.0, 3.0)
SEEDS = {3: (0, 1, 2), 4: (0, 1), 6: (0, 1)}
# A run ends at 99.5 % in training, after so many epochs without a better test, or after the last.
# No run of size 3 had its best test after more than 8 epochs without a better one.
PATIENCE, EPOCHS = {3: 25, 4: 12, 6: 12}, 200
# Best test accuracies reported in the paper, in percent, by size.
PAPER = {
    3: {1.1: 83.47, 2.0: 81.66, 3.0: 82.57},
    4: {1.1: 83.36, 2.0: 81.05, 3.0: 82.40},
    6: {1.1: 83.65, 2.0: 82.22, 3.0: 81.97},
}
PROJECTIONS = ("W_K", "W_Q", "W_V")
EDGES = np.linspace(0.0, 0.6, 61)  # histogram bins


class ReviewPieces(NamedTuple):
    """Reviews for training and test, and the short hand-written ones."""

    train: Pieces
    test: Pieces
    short: Pieces


def table_point(size: int, p: float, seed: int) -> Point:
    """Build the point of one run: a size, a power and a seed."""
    settings = {"size": size, "p": p, "seed": seed, "epochs": EPOCHS, "patience": PATIENCE[size],
                "lr": RATES[size][p]}  # fmt: skip
    return Point(f"size{size}-l{p:g}-seed{seed}", settings)


def train_point(pieces: ReviewPieces, task: Task, device: str) -> Arrays:
    """Train one classifier; measure its weights and its attention."""
    settings = task.settings
    size, p = settings["size"], settings["p"]
    shape = Shape(len(pieces.train.vocabulary), layers=size, heads=size)
    recipe = Recipe(
        p=p, lr=settings["lr"], epochs=settings["epochs"], patience=settings["patience"],
        seed=task.seed + settings["seed"], compiled=device == "cuda", packed=device == "cuda",
    )  # fmt: skip
    data = pieces.train, pieces.test
    run = train_text(*data, shape, recipe, device=device, progress=task.progress)
    return _history(run) | _weights(run) | _attention(run, pieces.short)


def _history(run: TextRun) -> Arrays:
    names = ("loss", "train", "test", "seconds")
    return {name: np.array([row[name] for row in run.history]) for name in names}


def _weights(run: TextRun) -> Arrays:
    found = sparsity(run.model, EDGES)
    return {
        name: np.array([found[W][name] for W in PROJECTIONS])
        for name in ("counts", "large", "largest", "all")
    }


def _attention(run: TextRun, short: Pieces) -> Arrays:
    """Concatenate the attention shares of all tokens of all short reviews, and the tokens."""
    shares = attention_shares(run.model, short)
    return {
        "shares": np.concatenate(shares),
        "words": np.array([word for i in range(len(short)) for word in short.words(i)[1:-1]]),
        "lengths": np.array([len(share) for share in shares]),
    }


@lru_cache(maxsize=1)
def review_pieces(folder: Path) -> ReviewPieces:
    """Split the reviews of a folder, and the short ones, into word pieces.

    A folder with ``train.npz``, ``test.npz`` and ``short.npz`` already holds them, for machines
    without a tokenizer.
    """
    ready = [folder / f"{name}.npz" for name in ReviewPieces._fields]
    if all(path.is_file() for path in ready):
        return ReviewPieces(*map(Pieces.load, ready))
    corpus, vocabulary = find_reviews(folder), find_vocabulary(folder)
    labels = np.array([int(review.positive) for review in REVIEWS])
    short = Corpus([review.text for review in REVIEWS], labels, corpus.classes)
    parts = (corpus.split("train"), corpus.split("test"), short)
    return ReviewPieces(*(word_pieces(part, vocabulary) for part in parts))


def _run(task: Task) -> Arrays:
    assert task.data is not None
    if "size" in task.settings:
        return train_point(review_pieces(task.data), task, device_of("auto"))
    corpus = find_reviews(task.data)
    train, test = corpus.split("train"), corpus.split("test")
    counts = len(train), len(test), overlap(train, test)
    return dict(zip(("train", "test", "overlap"), map(np.array, counts), strict=True))


# --- what is claimed and drawn ---------------------------------------------------------------


def runs_of(results: Results, size: int, p: float) -> list[Arrays]:
    """Return the runs of a size and a power, by seed; those that are trained."""
    keys = [table_point(size, p, seed).key for seed in SEEDS[size]]
    return [results[key] for key in keys if key in results]


def all_trained(results: Results, size: int, *powers: float) -> bool:
    """Test whether every seed of a size is trained with these powers."""
    return all(len(runs_of(results, size, p)) == len(SEEDS[size]) for p in powers)


def _accuracies(results: Results, size: int, p: float) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the best and the last test accuracy of every seed, in percent."""
    tests = [run["test"] for run in runs_of(results, size, p)]
    return 100 * np.array([t.max() for t in tests]), 100 * np.array([t[-1] for t in tests])


def _claims(results: Results) -> list[Claim]:
    words = "size 3, ℓ1.1: test accuracy of the best epoch, %, mean of seeds"
    first = at_least(words, mean_of(_accuracies(results, 3, 1.1)[0]), 83.0)
    claims = [first if all_trained(results, 3, 1.1) else _until_trained(first)]
    for size, own in PAPER.items():
        for better, worse in pairwise(sorted(own, key=lambda p: -own[p])):
            words = f"size {size}, order of the paper: ℓ{better:g} above ℓ{worse:g}, points"
            high, low = (_accuracies(results, size, p)[0] for p in (better, worse))
            found = more_than(words, high, low)
            trained = all_trained(results, size, better, worse)
            claims.append(found if trained else _until_trained(found))
    return claims


def _until_trained(claim: Claim) -> Claim:
    """Leave a claim undecided whose runs are not all there; its number is that of the others."""
    return replace(claim, verdict=Judgement.UNDECIDED)


def _pictures(results: Results) -> list[Picture]:
    caption = (
        f"Test accuracy on {int(results['data']['test']):,} reviews after training on "
        f"{int(results['data']['train']):,}, until 99.5 % in training or {PATIENCE[3]} epochs "
        f"(sizes 4 and 6: {PATIENCE[4]}) without a better test. First panel: best epoch (what the "
        "paper reports) and last epoch, mean and range over seeds; runs that are not trained yet "
        "are missing. Others: one curve per seed, accuracy in training dashed. "
        f"{int(results['data']['overlap'])} reviews of the test occur word for word in training."
    )
    panels = [_bars(results), *(_curves(results, size) for size in _trained(results))]
    return [Picture(name="table1", caption=caption, columns=2, panels=panels)]


def _bars(results: Results) -> Panel:
    series = []
    for k, p in enumerate(POWERS):
        for which, word in enumerate(("best", "last")):
            values = [_accuracies(results, size, p)[which] for size in _trained(results)]
            means = [
                [f(v) if len(v) else np.nan for v in values] for f in (np.mean, np.min, np.max)
            ]
            y, low, high = map(np.array, means)
            series.append(Series(
                kind="bar", name=f"ℓ{p:g}, {word}", x=np.arange(len(values)), colour=2 * k + which,
                y=y, low=low, high=high,
            ))  # fmt: skip
    ticks = [f"size {size}" for size in _trained(results)]
    return Panel(title="best and last epoch", axes=("", "test accuracy, %"), series=series,
                 ticks=ticks, limits=(75.0, 87.0))  # fmt: skip


def _trained(results: Results) -> list[int]:
    """Return the sizes with a run."""
    return [size for size in SEEDS if any(runs_of(results, size, p) for p in POWERS)]


def _curves(results: Results, size: int) -> Panel:
    series = []
    for k, p in enumerate(POWERS):
        for seed, run in enumerate(runs_of(results, size, p)):
            for name, style in (("test", 0), ("train", 1)):
                label = f"ℓ{p:g}" if name == "test" and not seed else "_"
                x = np.arange(1, len(run[name]) + 1)
                series.append(Series(kind="line", name=label, x=x, y=100 * run[name], colour=2 * k,
                                     style=style))  # fmt: skip
    return Panel(title=f"size {size}", axes=("epoch", "accuracy, %"), series=series)


def table_text(results: Results) -> str:
    """Write table 1, and what the paper omits: last epoch, seeds, epochs, seconds."""
    lines = [
        "| size | p | rate | seeds | best epoch, % | last epoch, % | in training, % | epochs | "
        "seconds per run | paper, % |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for size, seeds in SEEDS.items():
        for p, rate in RATES[size].items():
            best, last = _accuracies(results, size, p)
            runs = runs_of(results, size, p)
            if not runs:
                cells = f"{size} | {p:g} | {rate:g} | 0 of {len(seeds)}"
                lines.append(f"| {cells} | – | – | – | – | – | {PAPER[size][p]} |")
                continue
            train = np.array([100 * run["train"][-1] for run in runs])
            epochs = sorted({len(run["test"]) for run in runs})
            seconds = np.mean([run["seconds"].sum() for run in runs])
            lines.append(
                f"| {size} | {p:g} | {rate:g} | {len(runs)} of {len(seeds)} | {_spread(best)} | "
                f"{_spread(last)} | {_spread(train)} | {'–'.join(map(str, epochs))} | "
                f"{seconds:.0f} | {PAPER[size][p]} |"
            )
    counts = [int(results["data"][name]) for name in ("train", "test", "overlap")]
    end = "{:,} reviews to train, {:,} to test, {} of these also in training.".format(*counts)
    return "\n".join([*lines, "", end, ""])


def _spread(values: NDArray[Any]) -> str:
    """Format the mean, and the standard deviation if there are several values."""
    if len(values) == 1:
        return f"{values[0]:.2f}"
    return f"{values.mean():.2f} ± {values.std(ddof=1):.2f}"


def _files(results: Results, folder: Path) -> list[Path]:
    text = table_text(results)
    return [write_whole(own_place(folder, "table1.md"), lambda stream: stream.write(text.encode()))]


EXPERIMENTS = (
    Experiment(
        "B:table1", "Test accuracy of transformers trained by ℓp mirror descent", 1,
        (Point("data"), *(table_point(size, p, seed)
                          for size, seeds in SEEDS.items() for p in POWERS for seed in seeds)),
        _run, _claims, _pictures, files=_files, unit="run", needs=NEEDS, partial=True,
    ),
)  # fmt: skip
