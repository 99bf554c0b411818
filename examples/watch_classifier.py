"""
Watch the heads of a classifier while it trains
===============================================

The classifier of paper B learns to tell good reviews from bad ones; its heads are compared with
max-margin heads and with random ones. Without a file it takes thirty steps on made-up reviews, to
show how it works. With one, the 2,500 shortest training texts are learned by 600 steps of SGD, on
the CPU, in a few minutes::

    python examples/watch_classifier.py reviews.parquet heads.png

The file has columns text and label (.csv, .tsv, .jsonl or .parquet), and perhaps split. Needs the
extras ``text`` and ``plot``.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

import attnmargin as am

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TEXTS, LENGTH, BATCH, RATE = 2500, 64, 32, 0.1


def made_up(count: int = 200) -> am.text.Corpus:
    """Write short reviews in which one word decides."""
    draw = np.random.default_rng(0)
    words = (("dull", "slow", "boring", "poor"), ("great", "funny", "fine", "warm"))
    labels = np.arange(count) % 2
    things = draw.choice(["film", "plot", "cast", "music"], (count, 2))
    texts = [
        f"the {a} and the {b} were {draw.choice(words[label])}"
        for label, (a, b) in zip(labels, things, strict=True)
    ]
    return am.text.Corpus(texts, labels, ("bad", "good"))


def shortest(corpus: am.text.Corpus) -> am.text.Corpus:
    """Keep the shortest training texts of both classes, equally many of each."""
    if corpus.splits is not None and "train" in corpus.splits:
        corpus = corpus.split("train")
    order = np.argsort([len(text) for text in corpus.texts], kind="stable")
    sides = (order[corpus.labels[order] == label] for label in (0, 1))
    return corpus.part(np.sort(np.concatenate([own[: TEXTS // 2] for own in sides])))


def rows_of(pieces: am.text.Pieces) -> list[torch.Tensor]:
    """Return the ids of each text."""
    return [torch.from_numpy(pieces.row(i).astype(np.int64)) for i in range(len(pieces))]


def train(
    pieces: am.text.Pieces, steps: int, every: int
) -> tuple[am.models.Watch, am.text.TextClassifier]:
    """Train by plain SGD; watch all heads on twenty texts."""
    torch.manual_seed(0)
    shape = am.text.Shape(
        len(pieces.vocabulary), layers=3, heads=3, width=96, hidden=384, length=LENGTH
    )
    model = am.text.TextClassifier(shape)
    rows, labels = rows_of(pieces), torch.from_numpy(pieces.labels).long()
    shown = rows[:: max(len(rows) // 20, 1)][:20]
    watch = am.models.Watch(lambda: am.models.classifier_heads(model, shown), every=every)
    optimiser = torch.optim.SGD(model.parameters(), lr=RATE)
    draw = torch.Generator().manual_seed(1)
    for step in range(steps + 1):
        watch(step)
        batch = torch.randint(len(rows), (BATCH,), generator=draw)
        ids = torch.nn.utils.rnn.pad_sequence(
            [rows[i] for i in batch.tolist()], batch_first=True, padding_value=model.padding
        )
        loss = torch.nn.functional.cross_entropy(model(ids), labels[batch])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return watch, model


@torch.no_grad()
def accuracy(model: am.text.TextClassifier, pieces: am.text.Pieces) -> float:
    """Compute the share of texts that are classified as they are labelled."""
    model.eval()
    ids = torch.nn.utils.rnn.pad_sequence(
        rows_of(pieces), batch_first=True, padding_value=model.padding
    )
    found = torch.cat([model(part).argmax(-1) for part in ids.split(250)])
    return float((found.numpy() == pieces.labels).mean())


def main() -> "Figure":
    torch.set_num_threads(1)  # the model is small
    given = len(sys.argv) > 1
    corpus = shortest(am.text.read_corpus(sys.argv[1])) if given else made_up()
    pieces = am.text.word_pieces(corpus, am.text.word_list(corpus.texts, 2), LENGTH)
    watch, model = train(pieces, steps=600 if given else 30, every=100 if given else 30)
    print(f"{len(corpus):,} texts; training accuracy {accuracy(model, pieces):.1%} at the end")
    for name in ("efficiency", "cosine"):
        own, null, records = watch.of(name), watch.of(name, null=True), watch.records
        for k, (layer, head) in enumerate(watch.places):
            scores = (getattr(rows[k], name).z for rows in (records[0], records[-1]))
            print(
                f"{name}, layer {layer}, head {head}: {own[0, k]:.2f} at the start, "
                f"{own[-1, k]:.2f} at the end (random heads: {null[0, k]:.2f} and "
                f"{null[-1, k]:.2f}; z = {', '.join(f'{z:+.1f}' for z in scores)})"
            )
    figure = am.plot.watch(watch)
    if len(sys.argv) > 2:
        figure.savefig(Path(sys.argv[2]), dpi=110)
    return figure


if __name__ == "__main__":
    figure = main()
