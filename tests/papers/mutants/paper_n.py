"""N, of norms: arrays by hand, and mutants."""

import numpy as np

from attnmargin.papers.engine.experiment import Arrays
from attnmargin.papers.n.attention import NORMS, RUNS
from attnmargin.papers.n.classes import NAMES
from tests.papers.mutants.parts import (
    TRIALS,
    Case,
    Mutant,
    add,
    constant,
    edit,
    exchange_points,
    noise,
)

_STEPS = np.arange(50, 2001, 50)


def _falling(norm: str, own: bool) -> np.ndarray:
    """Gaps that fall like t^{-1/2} to 0.05, or stay at 0.5."""
    size = 0.05 * (2000.0 / _STEPS) ** 0.5 if own else np.full(len(_STEPS), 0.5)
    return size * (1.0 + 0.01 * noise(TRIALS, 1))


def classes(key: str) -> Arrays:
    return {norm: _falling(norm, norm == key) for norm in NAMES}


def momentum(key: str) -> Arrays:
    method = key.split("-")[0]
    norm = "max" if method == "adam" else method
    return {norm: _falling(norm, True)}


def attention(key: str) -> Arrays:
    relative = 0.5 + 0.01 * noise(TRIALS, len(NORMS))
    relative[:, NORMS.index(RUNS[key][2])] = 0.95
    return {"relative": relative, "feasible": np.ones(TRIALS, dtype=bool)}


CASES = (
    Case("N:attention", attention, (
        Mutant("every norm alike", "trials that come closest to the (spec|max|row|nuc)",
               edit(relative=constant(0.7))),
        Mutant("no margin", "reached share", edit(relative=lambda x: 0.5 * x)),
        Mutant("two methods exchanged", "^(fro|max) descent on W",
               exchange_points("W-fro", "W-max")),
    )),
    Case("N:classes", classes, (
        Mutant("methods exchanged", "^(Frobenius|max) ", exchange_points("fro", "max")),
        Mutant("gaps that stay", "slope|gap to",
               edit(fro=constant(0.3), spectral=constant(0.3), max=constant(0.3))),
        Mutant("all methods alike", "is farther",
               edit(fro=constant(0.05), spectral=constant(0.05), max=constant(0.05))),
    )),
    Case("N:momentum", momentum, tuple(
        Mutant("momentum that does not converge", f"^{words} descent",
               edit(rf"{norm}-0\..+", **{norm: add(0.1)}))
        for norm, words in NAMES.items()
    )),
)  # fmt: skip
