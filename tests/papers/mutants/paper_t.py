"""T, of planted truths: arrays by hand, and mutants."""

import numpy as np

from attnmargin.papers.engine.experiment import Arrays
from tests.papers.mutants.parts import (
    TRIALS,
    Case,
    Mutant,
    Results,
    add,
    constant,
    edit,
    noise,
    numbers,
)


def graphs(key: str) -> Arrays:
    level = float(key)
    loss = np.array([0.4, 0.5, 0.8, 1.1]) + 0.01 * noise(TRIALS, 1)
    return {
        "recovered": np.ones((TRIALS, 8), dtype=bool),
        "strict": np.zeros((TRIALS, 8), dtype=bool),
        "noise": level + 0.01 * (noise(TRIALS) - 0.5),
        "same": np.ones(TRIALS, dtype=bool),
        "loss": loss,
        "accuracy": 1.0 - 0.5 * loss,
    }


def evidence(key: str) -> Arrays:
    n, _ = numbers(key)
    kinds = ("", " kept", " found")
    return {
        "false": 0.05 * noise(TRIALS),
        "found": np.full(TRIALS, 100.0),
        "power": np.full((TRIALS, 4), n / 10_000) - 0.01 * noise(TRIALS, 4),
        **{
            f"{name}{kind}": 0.95 + 0.01 * noise(TRIALS)
            for name in ("difference", "alpha")
            for kind in kinds
        },
    }


def shorten(results: Results) -> None:
    """Let fewer intervals of frequent tokens cover."""
    for own in results.values():
        for name in ("alpha kept", "difference kept"):
            own[name] = own[name] - 0.05


CASES = (
    Case("T:noise", graphs, (
        Mutant("half of the components melted", "components and order",
               edit(recovered=lambda x: x & (np.arange(8) < 4))),
        Mutant("noise overestimated", "share of noise", edit(noise=add(0.05))),
        Mutant("rules alike", "log-loss", edit(loss=constant(1.0))),
        Mutant("clean data changed", "bit for bit", edit(same=lambda x: ~x)),
    )),
    Case("T:evidence", evidence, (
        Mutant("one in seven discoveries is false", "false discoveries", edit(false=add(0.1))),
        Mutant("intervals are too short", "all tokens",
               edit(difference=add(-0.05), alpha=add(-0.05))),
        Mutant("those of frequent tokens are too short", "seen 50 times", shorten),
        Mutant("more texts do not help", "deciding words found", edit(power=constant(0.5))),
    )),
)  # fmt: skip
