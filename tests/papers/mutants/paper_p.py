"""P, of predictions: arrays by hand, and mutants."""

import numpy as np

from attnmargin.papers.engine.experiment import Arrays
from tests.papers.mutants.parts import (
    TRIALS,
    Case,
    Mutant,
    constant,
    edit,
    first,
    none,
    reverse_points,
)


def certified(key: str) -> Arrays:
    every = first(TRIALS, TRIALS)
    return {"since": np.full(TRIALS, 300), "paper": first(5, TRIALS), "plain": every}


def mirror(key: str) -> Arrays:
    return {"since": np.full(TRIALS, 300), "left": first(0, TRIALS)}


def rate(key: str) -> Arrays:
    return {"proved": first(10, TRIALS), "kept": first(TRIALS, TRIALS)}


def starts(key: str) -> Arrays:
    return {"selections": np.full(TRIALS, 3 if key in ("d3", "d5") else 1),
            "proved": np.ones(TRIALS)}  # fmt: skip


NEVER, LATE = constant(-1), constant(30_000)

CASES = (
    Case("P:certified", certified, (
        Mutant("no proof", "share of runs|how many more", edit(since=NEVER)),
        Mutant("proofs after the last step", "share of runs|how many more", edit(since=LATE)),
        Mutant("one plain run selects otherwise", "plain torch",
               edit("5-5-5", plain=lambda x: first(TRIALS - 1, TRIALS))),
        Mutant("no plain run", "plain torch", edit(plain=none)),
    )),
    Case("P:mirror", mirror, (
        Mutant("no proof", "share of runs|leave their tokens", edit(since=NEVER)),
        Mutant("one proved run leaves its tokens", "leave their tokens",
               edit("5-5-20-l1.5", left=lambda x: first(1, TRIALS))),
    )),
    Case("P:rate", rate, (
        Mutant("one proved run is elsewhere", "elsewhere",
               edit("5-5-5-rate1", kept=lambda x: ~first(1, TRIALS))),
        Mutant("no proof", "elsewhere|not empty", edit(proved=constant(False))),
    )),
    Case("P:starts", starts, (
        Mutant("no proof", "share of all", edit(proved=constant(0.0))),
        Mutant("widths in reverse order", "selections per", reverse_points()),
    )),
)  # fmt: skip
