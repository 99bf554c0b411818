"""Paper D: arrays by hand, and mutants."""

import numpy as np

from attnmargin.papers.engine.experiment import Arrays
from tests.papers.mutants.parts import (
    TRIALS,
    Case,
    Mutant,
    add,
    close,
    constant,
    edit,
    exchange,
    first,
    flip,
    noise,
    numbers,
    reverse,
)

TOKENS = 400


def corpus(key: str) -> Arrays:
    """Build frequent tokens whose ⟨E, v⟩ and ⟨E, p⟩ follow the posterior difference."""
    drawn = np.random.default_rng(0).permutation(np.linspace(-1.0, 1.0, TOKENS)) ** 3
    positive = (500 + 500 * drawn).astype(int)
    difference = (2 * positive - 1000) / 1000
    return {"positive": positive, "negative": 1000 - positive, "with_v": difference,
            "with_p": np.abs(difference), "loss": np.array([0.6, 0.2]),
            "words": np.array([f"w{k}" for k in range(TOKENS)])}  # fmt: skip


def fig1(key: str) -> Arrays:
    """Build a corpus; logistic regression has a fifth of the signs wrong at its smallest loss."""
    if "linear" in key:
        same = np.arange(TOKENS) % 5 > 0
        return {"same": np.stack([np.ones(TOKENS, bool), same]), "loss": np.array([0.6, 1e-5])}
    return corpus(key) | {"loss": np.array([0.6, 1e-5])}


def fig2(key: str) -> Arrays:
    """Build relevant tokens, posterior differences from 0.1 to 1, and irrelevant ones near 0."""
    relevant = np.arange(TOKENS) % 2 == 0
    level = np.sign(np.linspace(-1.0, 1.0, TOKENS)) * np.linspace(0.1, 1.0, TOKENS)
    near = np.linspace(-0.04, 0.04, TOKENS)
    return {"difference": np.where(relevant, level, near), "exact": np.where(relevant, level, 0.0),
            "with_v": np.where(relevant, level, near), "with_p": np.abs(level)}  # fmt: skip


def lemma2(key: str) -> Arrays:
    d = numbers(key)[0]
    return {"error": 0.1 * d**-0.5 * (1.0 + noise(TRIALS)), "move": 0.1 + noise(TRIALS),
            "bound": np.array(11.0 * d**-0.25)}  # fmt: skip


def theorem5(key: str) -> Arrays:
    return {"important": first(TRIALS, TRIALS), "correlation": close(TRIALS, 3),
            "norm": np.outer([1.0, 400.0], 1.0 + noise(TRIALS)),
            "everything": first(0, TRIALS), "extra": np.zeros(TRIALS, dtype=int)}  # fmt: skip


_TRAINED = ".*(early|long|paper)"
LAYERS = (
    Mutant("labels exchanged", "sign agreement of tokens",
           edit(_TRAINED, with_v=flip)),
    Mutant("the negative of p", "rank correlation", edit(_TRAINED, with_p=flip)),
    Mutant("training stops at once", "loss of the last", edit(_TRAINED, loss=reverse)),
    Mutant("training never ends", "loss of the last", edit(_TRAINED, loss=constant(1e-9))),
    Mutant("the signs of the data", "at its smallest",
           edit(".*linear", same=lambda x: np.ones_like(x))),
)  # fmt: skip

CASES = (
    Case("D:fig1", fig1, LAYERS),
    Case("D:fig4", fig1, LAYERS),
    Case("D:fig2", fig2, (
        Mutant("p and v exchanged", "rank|sign", exchange("with_p", "with_v")),
        Mutant("embeddings of irrelevant tokens as long", "irrelevant tokens over",
               edit(with_v=np.sign)),
        Mutant("posterior differences of irrelevant tokens as large", "largest",
               edit(difference=lambda x: 3.0 * x)),
        Mutant("relevant tokens near zero", "share of tokens with",
               edit(difference=lambda x: 0.01 * x)),
    )),
    Case("D:fig3", corpus, (
        Mutant("labels exchanged", "sign agreement", exchange("positive", "negative")),
        Mutant("the negative of p", "rank correlation", edit(with_p=flip)),
        Mutant("training stops at once", "loss at the end", edit(loss=reverse)),
        Mutant("training never ends", "loss at the end", edit(loss=constant(1e-3))),
    )),
    Case("D:table", corpus, (
        Mutant("the negative of p", "most attended", edit(with_p=flip)),
    )),
    Case("D:lemma2", lemma2, (
        Mutant("a first step twice as long as predicted", "predicted move",
               edit(error=add(0.5), move=constant(0.5))),
        Mutant("an error that does not fall with d", "exponent", edit(error=constant(0.1))),
    )),
    Case("D:theorem5", theorem5, (
        Mutant("an important token is missed", "share of data sets",
               edit(important=lambda x: first(TRIALS - 1, TRIALS))),
        Mutant("p* of another selection", "correlation", edit(correlation=lambda x: 0.9 * x)),
        Mutant("p rests", "at the end over", edit(norm=constant(1.0))),
        Mutant("one data set selects everything", "every token",
               edit(everything=lambda x: first(1, TRIALS))),
        Mutant("an irrelevant token is selected", "only important", edit(extra=add(1))),
    )),
)  # fmt: skip
