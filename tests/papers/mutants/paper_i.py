"""I, topics: arrays by hand, and mutants."""

import numpy as np

from attnmargin.papers.engine.experiment import Arrays
from tests.papers.mutants.parts import TRIALS, Case, Mutant, add, constant, edit, noise


def _order(key: str) -> Arrays:
    changed = np.array([0.3, 0.25, 0.2, 0.1]) + 0.01 * noise(TRIALS, 1)
    return {"strict": np.zeros(TRIALS), "kept": np.ones(TRIALS), "unexplained": np.zeros(TRIALS),
            "changed": changed, "outnumbered": changed}  # fmt: skip


def _trained(key: str) -> Arrays:
    return {"agree": np.ones(TRIALS), "difference": np.zeros(TRIALS)}


CASES = (
    Case("I:order", _order, (
        Mutant("an order turned round", r"^\(1\)", edit(strict=constant(1.0))),
        Mutant("changes without a reason", r"^\(2\)", edit(unexplained=constant(1.0))),
        Mutant("longer prompts change more", r"^\(3\)", edit(changed=lambda x: x[:, ::-1])),
    )),
    Case("I:trained", _trained, (
        Mutant("other predictions", "agree", edit(agree=constant(0.5))),
        Mutant("more changes", "difference", edit(difference=add(0.1))),
    )),
)  # fmt: skip
