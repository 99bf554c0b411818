"""E, of linear decoders: arrays by hand, and mutants."""

import numpy as np

from attnmargin.papers.engine.experiment import Arrays
from tests.papers.mutants.parts import TRIALS, Case, Mutant, add, close, constant, edit, noise

_AT = np.arange(500, 20_001, 500)


def descent(key: str) -> Arrays:
    falling = (100.0 / _AT)[:, None] * (1.0 + 0.1 * noise(len(_AT), TRIALS))
    return {
        "certified": 1e-14 * noise(TRIALS),
        "newton": 1e-12 * noise(TRIALS),
        "plain_at": _AT,
        "plain_off": falling,
        "plain_correlation": 1.0 - 0.1 * falling,
        "plain_excess": 0.1 * falling,
        "path_at": np.arange(1.0, 13.0),
        "path_off": 1e-6 * noise(12, TRIALS),
        "path_correlation": close(12, TRIALS, off=1e-4),
        "apart": 0.01 * noise(TRIALS),
    }


def conditions(key: str) -> Arrays:
    wide = int(key[1:]) >= 8
    flags = np.full(TRIALS, wide)
    return {"compatible": flags, "separable": flags, "known": np.ones(TRIALS, dtype=bool)}


def fig1(key: str) -> Arrays:
    return {
        "verdict": np.array([True, True]),
        "off": 1e-6 * noise(40),
        "correlation": close(40),
        "aligned": np.array(0.99),
    }


CASES = (
    Case("E:conditions", conditions, (
        Mutant("no answer", "with a certified", edit("d[1-5]", known=constant(False))),
        Mutant("wide contexts that are not separable", "d ≥ m",
               edit("d9", separable=constant(False))),
        Mutant("any contexts will do", "d = 1",
               edit("d1", compatible=constant(True), separable=constant(True))),
    )),
    Case("E:descent", descent, (
        Mutant("no proof", "gap of", edit(certified=constant(1e-6))),
        Mutant("Newton ends early", "Newton", edit(newton=constant(1e-3))),
        Mutant("another finite part", "part inside", edit(path_off=add(0.1))),
        Mutant("another direction", "the rest after", edit(path_correlation=constant(0.99))),
        Mutant("a flow that leaves descent", "same time", edit(apart=constant(0.2))),
        Mutant("a loss that stays", "digits", edit(plain_excess=constant(0.1))),
    )),
    Case("E:fig1", fig1, (
        Mutant("not separable", "the setting", edit(verdict=lambda x: ~x)),
        Mutant("another finite part", "part inside", edit(off=add(0.1))),
        Mutant("another direction", "the rest", edit(correlation=constant(0.9))),
        Mutant("word 3 points elsewhere", "word 3", edit(aligned=constant(0.5))),
    )),
)  # fmt: skip
