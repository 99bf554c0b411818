"""F, prompt attention: arrays by hand, and mutants."""

import numpy as np

from attnmargin.papers.engine.experiment import Arrays
from tests.papers.mutants.parts import TRIALS, Case, Mutant, close, constant, edit, exchange, noise


def _alone(key: str) -> Arrays:
    yes = np.ones(TRIALS, dtype=bool)
    return {"steps": np.arange(1, 6), "correlation": close(5, TRIALS), "best": yes, "local": yes,
            "feasible": yes}  # fmt: skip


def _joint(key: str) -> Arrays:
    some = np.arange(TRIALS) % 2 == 0
    return {"relaxed": close(4, TRIALS), "whole": 0.9 + 0.01 * noise(4, TRIALS), "some": some,
            "together": close(TRIALS)}  # fmt: skip


CASES = (
    Case("F:global", _alone, (
        Mutant("other tokens", "select the best", edit(best=constant(False))),
        Mutant("another direction", "^correlation", edit(correlation=constant(0.5))),
    )),
    Case("F:local", _alone, (
        Mutant("selections that are not local", "locally optimal", edit(local=constant(False))),
        Mutant("another direction", "^correlation", edit(correlation=constant(0.5))),
    )),
    Case("F:joint", _joint, (
        Mutant("the whole SVM", "relaxed|same", exchange("relaxed", "whole")),
    )),
)  # fmt: skip
