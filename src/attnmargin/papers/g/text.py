"""G:text: rank per head of a text classifier, with and without decay of W_K and W_Q."""

from functools import lru_cache
from pathlib import Path

import numpy as np
import torch

from attnmargin.papers.engine.claims import Claim, at_least, at_most, mean_of, more_than
from attnmargin.papers.engine.experiment import (
    Arrays,
    Experiment,
    Measurement,
    Point,
    Results,
    Task,
)
from attnmargin.papers.engine.review_data import NEEDS, find_reviews, find_vocabulary
from attnmargin.plot.panels import Panel, Picture, Series
from attnmargin.text.classifier.training import Recipe, train_text
from attnmargin.text.classifier.transformer import Shape
from attnmargin.text.corpus import Corpus
from attnmargin.text.pieces import Pieces, word_pieces
from attnmargin.training.measures import imbalance, nuclear_excess

_LAYERS, _HEADS, _WIDTH = 1, 4, 32
_REVIEWS, _WORDS, _EPOCHS, _RATE, _BATCH = 2500, 40, 25, 0.03, 10
_DECAYS = {"none": 0.0, "decay": 0.02}
_BOTH = {"none": "without decay", "decay": "with decay of W_K and W_Q"}


@lru_cache(maxsize=1)
def _pieces(folder: Path) -> tuple[Pieces, Pieces]:
    """Read the first words of some reviews of either class, for training and for tests."""
    corpus, vocabulary = find_reviews(folder), find_vocabulary(folder)
    parts = []
    for name in ("train", "test"):
        own = corpus.split(name)
        order = np.random.default_rng(0).permutation(len(own))[:_REVIEWS]
        texts = [" ".join(own.texts[k].split()[:_WORDS]) for k in order]
        parts.append(word_pieces(Corpus(texts, own.labels[order], own.classes), vocabulary))
    return parts[0], parts[1]


def _run(task: Task) -> Arrays:
    assert task.data is not None
    train, test = _pieces(task.data)
    shape = Shape(len(train.vocabulary), _LAYERS, _HEADS, _WIDTH, 2 * _WIDTH, dropout=0.0)
    found: dict[str, list[np.ndarray]] = {"singular": [], "excess": [], "imbalance": [], "test": []}
    for trial in range(task.trials):
        recipe = Recipe(p=2.0, lr=_RATE, batch=_BATCH, epochs=_EPOCHS, stop=2.0, parts=1,
                        seed=task.seed + trial, decay=task.settings["decay"])  # fmt: skip
        run = train_text(train, test, shape, recipe)
        K, Q = (part.detach().double() for part in run.model.factors())
        singular = torch.linalg.svdvals(K @ Q.mT)[..., : _WIDTH // _HEADS]
        found["singular"].append(singular.flatten(0, 1).numpy())
        found["excess"].append(nuclear_excess(K, Q).flatten().numpy())
        found["imbalance"].append(imbalance(K, Q).flatten().numpy())
        found["test"].append(np.array([row["test"] for row in run.history]))
        task.progress(trial + 1, task.trials)
    return {name: np.stack(parts) for name, parts in found.items()}


def effective_rank(singular: np.ndarray) -> np.ndarray:
    """Compute ``(Σ σ)² / Σ σ²``, between one and the number of singular values.

    >>> effective_rank(np.array([[1.0, 1.0, 0.0], [2.0, 0.0, 0.0]])).tolist()
    [2.0, 1.0]
    """
    return np.asarray(singular.sum(-1) ** 2 / (singular**2).sum(-1))


def _claims(results: Results) -> list[Claim]:
    plain, own = results["none"], results["decay"]
    ranks = [effective_rank(arrays["singular"]).ravel() for arrays in (plain, own)]
    return [
        more_than("effective rank per head without decay, less that with it", ranks[0], ranks[1]),
        more_than("‖KᵀK − QᵀQ‖ per head without decay, less that with it",
                  plain["imbalance"].ravel(), own["imbalance"].ravel()),
        more_than("½(‖K‖² + ‖Q‖²) − ‖K Qᵀ‖_* per head without decay, less that with it",
                  plain["excess"].ravel(), own["excess"].ravel()),
        at_most("effective rank per head with decay, over that without, mean",
                mean_of(ranks[1] / ranks[0]), 0.8),
        at_least("test accuracy with decay, mean", mean_of(own["test"][:, -1]), 0.55),
    ]  # fmt: skip


def _measurements(results: Results) -> list[Measurement]:
    found = []
    for key, words in _BOTH.items():
        own = results[key]
        share = own["singular"] / own["singular"][..., :1]
        found += [
            Measurement(f"{words}: effective rank per head, mean",
                        float(effective_rank(own["singular"]).mean())),
            Measurement(f"{words}: singular values above 10 % of the largest, mean",
                        float((share > 0.1).sum(-1).mean())),
            Measurement(f"{words}: ‖K Qᵀ‖_* per head, mean", float(own["singular"].sum(-1).mean())),
            Measurement(f"{words}: ‖KᵀK − QᵀQ‖ per head, mean", float(own["imbalance"].mean())),
            Measurement(f"{words}: test accuracy at the end, mean",
                        float(own["test"][:, -1].mean())),
        ]  # fmt: skip
    return found


def _pictures(results: Results) -> list[Picture]:
    places = np.arange(1, _WIDTH // _HEADS + 1)
    spectra: list[Series] = []
    tests: list[Series] = []
    for k, (key, words) in enumerate(_BOTH.items()):
        own = results[key]
        share = (own["singular"] / own["singular"][..., :1]).reshape(-1, len(places))
        low, middle, high = np.quantile(share, (0.1, 0.5, 0.9), axis=0)
        spectra.append({"kind": "line", "name": words, "x": places, "y": middle, "low": low,
                        "high": high, "colour": k, "marker": "o"})  # fmt: skip
        tests.append({"kind": "line", "name": words, "x": np.arange(1, _EPOCHS + 1),
                      "y": own["test"].mean(0), "colour": k})  # fmt: skip
    caption = (
        f"Classifiers of one layer with {_HEADS} heads of width {_WIDTH // _HEADS}, trained on the "
        f"first {_WORDS} words of {_REVIEWS:,} reviews. Left: singular values of K Qᵀ per head "
        "over the largest, median and 80 % of the heads. Right: test accuracy, mean over seeds."
    )
    panels = [
        Panel(title="decay makes heads low-rank", axes=("place of the singular value",
              "share of the largest"),
              series=spectra, logarithmic=(False, True)),
        Panel(title="test accuracy", axes=("epoch", "share of reviews"), series=tests),
    ]  # fmt: skip
    return [Picture(name="text", caption=caption, panels=panels, columns=2)]


EXPERIMENTS = (
    Experiment("G:text", "Rank per head of a text classifier, with and without decay", 3,
               tuple(Point(key, {"decay": decay, "epochs": _EPOCHS})
                     for key, decay in _DECAYS.items()),
               _run, _claims, _pictures, measurements=_measurements, unit="runs", needs=NEEDS),
)  # fmt: skip
