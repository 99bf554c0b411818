"""G, of weight decay: arrays by hand, and mutants."""

import math

import numpy as np

from attnmargin.papers.engine.experiment import Arrays
from attnmargin.papers.g.flow import TIMES as _TIMES
from tests.papers.mutants.parts import (
    TRIALS,
    Case,
    Mutant,
    add,
    close,
    constant,
    edit,
    noise,
)


def flow(key: str) -> Arrays:
    decay = float(key.removeprefix("decay"))
    s = np.array([1.0, 0.8, 0.6, 0.4, 0.2])
    singular = np.zeros((len(_TIMES), TRIALS, 5)) + np.maximum(s - decay, 0.0)
    if decay == 0.4:
        singular[:, :, 3] = 1.0 / (1.0 + 2.0 * np.array(_TIMES)[:, None])
    falling = np.exp(-2.0 * decay * np.linspace(0.0, 40.0, len(_TIMES)))[:, None]
    gap = falling * (1.0 + noise(TRIALS))
    found = {"singular": singular, "gap": gap, "excess": 0.1 * gap**3, "off": 1e-9 * noise(TRIALS)}
    if decay == 0.0:
        return found
    return found | {
        "certified": np.ones(TRIALS, dtype=bool),
        "rate": 2.0 * decay * close(TRIALS),
        "saddle_slope": 1e-16 * noise(4),
        "saddle_excess": 1e-16 * noise(4),
        "saddle_minimum": np.array([False, False, False, True]),
    }


def penalty(key: str) -> Arrays:
    own = float(key.removeprefix("penalty"))
    value = 4.0 * (1.0 + 0.1 * noise(TRIALS))
    log = math.log(1.0 / own) if own else 5000.0
    return {
        "nuclear": value * log,
        "excess": 1e-6 * noise(TRIALS),
        "imbalance": (1e-2 if own == 0.0 else 1e-5) * (1.0 + noise(TRIALS)),
        "rank": np.full(TRIALS, 1 if own > 1e-3 else 3) + (np.arange(TRIALS) == 0),
        "beyond": 1e-16 * noise(TRIALS),
        "correlation": close(TRIALS) - (0.01 + 0.001 * noise(TRIALS)) * (own == 0.0),
        "value": value,
        "selection": np.zeros((TRIALS, 6), dtype=np.int64),
    }


def text(key: str) -> Arrays:
    decay = key == "decay"
    singular = np.array([1.0, 0.2, 0.1, 0.05] if decay else [1.0, 0.8, 0.6, 0.4])
    return {
        "singular": singular * (1.0 + 0.01 * noise(3, 8, 1)),
        "excess": (0.01 if decay else 0.5) * (1.0 + 0.1 * noise(3, 8)),
        "imbalance": (0.02 if decay else 0.6) * (1.0 + 0.1 * noise(3, 8)),
        "test": 0.7 + 0.01 * noise(3, 12),
    }


CASES = (
    Case("G:flow", flow, (
        Mutant("values that do not shrink", "singular values at", edit(singular=add(0.01))),
        Mutant("decay at half the rate", "rate of", edit("decay0\\.[1-9]", rate=lambda x: 0.5 * x)),
        Mutant("unbalanced factors at rest", r"‖_\* at the end, largest", edit(excess=add(0.1))),
        Mutant("balance without decay", "λ = 0: relative",
               edit("decay0", gap=lambda x: x * np.linspace(1.0, 0.0, len(x))[:, None])),
        Mutant("the nuclear norm without decay", "λ = 0: ½", edit("decay0", excess=constant(0.0))),
        Mutant("no certificate", "certified", edit("decay0.5", certified=constant(False))),
        Mutant("points that do not rest", "largest gradient",
               edit("decay0.5", saddle_slope=add(0.1))),
        Mutant("unbalanced saddles", "all points of rest: largest ½",
               edit("decay0.5", saddle_excess=add(0.1))),
        Mutant("every saddle a minimum", "minima in the",
               edit("decay0.5", saddle_minimum=constant(True))),
        Mutant("a fast end", "s₂", edit("decay0.4", singular=lambda x: 0.5 * x)),
    )),
    Case("G:penalty", penalty, (
        Mutant("unbalanced factors", "with decay: \\(", edit(excess=add(0.1))),
        Mutant("imbalance that stays", "without decay, less that with",
               edit(imbalance=constant(0.01))),
        Mutant("full rank", "largest; n = 6", edit("penalty1.0e-60", rank=add(5))),
        Mutant("another slope", "per log", edit("penalty1.0e-60", nuclear=lambda x: 1.2 * x)),
        Mutant("another direction", "correlation",
               edit("penalty1.0e-60", correlation=constant(0.9))),
        Mutant("the same rank", "rank with", edit(rank=constant(3))),
    )),
    Case("G:text", text, (
        Mutant("heads of equal rank", "rank per head",
               edit(singular=constant(1.0))),
        Mutant("imbalance that stays", "QᵀQ", edit(imbalance=constant(0.6))),
        Mutant("an excess that stays", "‖Q‖²", edit(excess=constant(0.5))),
        Mutant("a classifier that guesses", "accuracy", edit("decay", test=constant(0.5))),
    )),
)  # fmt: skip
