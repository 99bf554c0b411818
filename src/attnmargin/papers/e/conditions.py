"""E:conditions: how wide contexts must be to be compatible and separable."""

import numpy as np

from attnmargin.decoders import random_next_words
from attnmargin.papers.engine.claims import Claim, at_least, share_of
from attnmargin.papers.engine.experiment import (
    Arrays,
    Experiment,
    Measurement,
    Point,
    Results,
    Task,
)
from attnmargin.papers.engine.series import share_curve
from attnmargin.plot.panels import Panel, Picture
from attnmargin.solvers.entry import solve

_M, _V, _FOLLOW = 8, 8, 3
_WIDTHS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10)


def _run(task: Task) -> Arrays:
    d = task.settings["d"]
    name = f"E:conditions d={d}"
    data = random_next_words(_M, d, _V, _FOLLOW, task.trials, name=name, seed=task.seed)
    equations, solution = solve(data.equations), solve(data.problem)
    known = (equations.optimal | equations.infeasible) & (solution.optimal | solution.infeasible)
    return {
        "compatible": equations.optimal.numpy(),
        "separable": solution.optimal.numpy(),
        "known": known.numpy(),
    }


def _key(d: int) -> str:
    return f"d{d}"


def _claims(results: Results) -> list[Claim]:
    own = [results[_key(d)] for d in _WIDTHS]
    known = share_of(np.concatenate([arrays["known"] for arrays in own]))
    wide = [arrays["compatible"] & arrays["separable"]
            for d, arrays in zip(_WIDTHS, own, strict=True) if d >= _M]  # fmt: skip
    thin = results[_key(1)]
    return [
        at_least("settings with a certified answer to both, share", known, 0.99),
        at_least(f"d ≥ m = {_M}: compatible and separable, share",
                 share_of(np.concatenate(wide)), 1.0),
        at_least("d = 1: not compatible, or not separable, share",
                 share_of(~(thin["compatible"] & thin["separable"])), 0.99),
    ]  # fmt: skip


def _measurements(results: Results) -> list[Measurement]:
    return [
        Measurement(f"d = {d}: share {word}", float(results[_key(d)][word].mean()))
        for word in ("compatible", "separable")
        for d in _WIDTHS
    ]


def _pictures(results: Results) -> list[Picture]:
    own = [results[_key(d)] for d in _WIDTHS]
    series = [
        share_curve(word, np.array(_WIDTHS), [arrays[word] for arrays in own], marker="o")
        for word in ("compatible", "separable")
    ]
    panel = Panel(title=f"{_M} contexts, {_FOLLOW} of {_V} words follow each",
                  axes=("width of the contexts (d)", "share of settings"),
                  series=series)  # fmt: skip
    caption = (
        "Random contexts on the unit sphere: shares of settings that are compatible and that are "
        "separable, with 95 % intervals. From d = m on, contexts are independent, and both hold."
    )
    return [Picture(name="conditions", caption=caption, panels=[panel], columns=1)]


EXPERIMENTS = (
    Experiment("E:conditions", "How wide contexts must be", 100,
               tuple(Point(_key(d), {"d": d}) for d in _WIDTHS),
               _run, _claims, _pictures, measurements=_measurements),
)  # fmt: skip
