"""J, Markov chains: arrays by hand, and mutants."""

import numpy as np

from attnmargin.papers.engine.experiment import Arrays
from attnmargin.papers.j.chains import urn_entropy
from tests.papers.mutants.parts import TRIALS, Case, Mutant, constant, edit, noise, numbers


def _samples(key: str) -> Arrays:
    n = numbers(key)[0] if key.startswith("n") else 30_000.0
    own = 1.0 + 0.01 * (noise(TRIALS) - 0.5)
    return {"error": 2.0 * own / np.sqrt(n), "square": own / n, "bound": np.full(TRIALS, 1.0 / n)}


def _chain(key: str) -> Arrays:
    return {"error": np.full(TRIALS, 1e-15), "apart": np.zeros(TRIALS, dtype=bool),
            "together": np.ones(TRIALS, dtype=bool)}  # fmt: skip


def _trajectory(key: str) -> Arrays:
    if key == "uniform":
        off = np.tile([-0.1, 0.1], TRIALS // 2)[:, None]
        return {"entropy": urn_entropy(4) + off + np.zeros((TRIALS, 4))}
    return {"entropy": np.array([1.0, 0.9, 0.7, 0.5]) + 0.01 * noise(TRIALS, 1)}


CASES = (
    Case("J:chain", _chain, (
        Mutant("another chain", "attention against", edit(error=constant(1e-3))),
        Mutant("coverage is not looked at", "called determined", edit(apart=constant(True))),
        Mutant("nothing is determined", "^rows determined by", edit(together=constant(False))),
    )),
    Case("J:samples", _samples, (
        Mutant("errors that stay", "exponent of", edit(error=constant(0.1))),
        Mutant("twice the error", "Cramér", edit(square=lambda x: 4.0 * x)),
    )),
    Case("J:trajectory", _trajectory, (
        Mutant("time runs backwards", "more than of", edit(entropy=lambda x: x[:, ::-1])),
        Mutant("another urn", "Pólya", edit("uniform", entropy=lambda x: 0.8 * x)),
    )),
)  # fmt: skip
