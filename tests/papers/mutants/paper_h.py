"""H, rates: arrays by hand, and mutants."""

import numpy as np

from attnmargin.papers.engine.experiment import Arrays
from tests.papers.mutants.parts import TRIALS, Case, Mutant, edit, exchange_points, noise

_STEPS = np.arange(1, 101) * 10_000.0


def _course(key: str) -> Arrays:
    """Distances of exactly 1/‖W‖; lengths grow with the steps, or with their logarithm."""
    own = 1.0 + 0.1 * noise(TRIALS)
    length = (np.log(_STEPS) if key == "constant" else 1e-2 * _STEPS)[:, None] * own
    margin = 0.3 * own
    return {"steps": _STEPS, "length": length, "distance": 1.0 / length, "margin": margin,
            "spread": -margin * length, "feasible": np.ones(TRIALS, dtype=bool),
            "best": np.ones(TRIALS, dtype=bool)}  # fmt: skip


CASES = (
    Case("H:rates", _course, (
        Mutant("distances that fall like a root", "from −1",
               edit(distance=lambda x: np.sqrt(x))),
        Mutant("half the sparsity", "c from 1", edit(spread=lambda x: 0.5 * x)),
        Mutant("a stretched exponential", "a from 1",
               edit(spread=lambda x: -np.sqrt(-x))),
        Mutant("rules exchanged", "^normalised steps end nearer",
               exchange_points("constant", "normalised")),
        Mutant("rules exchanged", "^polyak steps end nearer",
               exchange_points("constant", "polyak")),
    )),
    Case("H:joint", _course, (
        Mutant("a stretched exponential", "a from 1",
               edit(spread=lambda x: -np.sqrt(-x))),
        Mutant("rules exchanged", "closer to one-hot", exchange_points("constant", "normalised")),
    )),
)  # fmt: skip
