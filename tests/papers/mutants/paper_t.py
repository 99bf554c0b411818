"""T, of planted truths: arrays by hand, and mutants."""

import numpy as np

from attnmargin.papers.engine.experiment import Arrays
from tests.papers.mutants.parts import TRIALS, Case, Mutant, add, constant, edit, noise


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


CASES = (
    Case("T:noise", graphs, (
        Mutant("half of the components melted", "components and order",
               edit(recovered=lambda x: x & (np.arange(8) < 4))),
        Mutant("noise overestimated", "share of noise", edit(noise=add(0.05))),
        Mutant("rules alike", "log-loss", edit(loss=constant(1.0))),
        Mutant("clean data changed", "bit for bit", edit(same=lambda x: ~x)),
    )),
)  # fmt: skip
