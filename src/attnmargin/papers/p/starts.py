"""P:starts: how many selections training reaches from random starts, by the width of tokens."""

import numpy as np

from attnmargin.data.random import random_data
from attnmargin.papers.engine.claims import (
    Claim,
    at_least,
    at_most,
    mean_of,
)
from attnmargin.papers.engine.experiment import (
    Arrays,
    Experiment,
    Measurement,
    Point,
    Results,
    Task,
)
from attnmargin.papers.engine.series import mean_curve
from attnmargin.plot.panels import Panel, Picture
from attnmargin.prediction.entry import predict

_WIDTHS = (3, 5, 8, 12, 20, 40)
_RUNS = 100


def _run(task: Task) -> Arrays:
    d = task.settings["d"]
    data = random_data(5, 5, d, trials=task.trials, name=f"P:starts d={d}", seed=task.seed)
    found = predict(data, random_starts=_RUNS, progress=task.progress)
    starts = list(found.random_starts.flat)
    zero = [
        bool((own.selections == chosen).all(-1)[0])
        for own, chosen in zip(starts, found.selection, strict=True)
    ]
    best = [
        float(own.share[(own.selections == chosen).all(-1)].sum())
        for own, chosen in zip(starts, found.best, strict=True)
    ]
    return {
        "selections": np.array([len(own.count) for own in starts]),
        "proved": np.array([int(own.proved.sum()) / _RUNS for own in starts]),
        "frequent": np.array([float(own.share[0]) for own in starts]),
        "zero": np.array(zero),
        "best": np.array(best),
    }


def _claims(results: Results) -> list[Claim]:
    mean = {d: mean_of(results[f"d{d}"]["selections"]) for d in _WIDTHS}
    proved = mean_of(np.concatenate([results[f"d{d}"]["proved"] for d in _WIDTHS]))
    wide = _WIDTHS[-1]
    return [
        at_least("share of all runs whose end is proved", proved, 0.99),
        at_least(f"selections per instance at d = {_WIDTHS[1]}, mean", mean[_WIDTHS[1]], 1.5),
        at_most(f"selections per instance at d = {wide}, mean", mean[wide], 1.2),
    ]


def _measurements(results: Results) -> list[Measurement]:
    words = {"selections": "selections per instance, mean",
             "zero": "share of instances whose run from zero ends where most do"}  # fmt: skip
    return [
        Measurement(f"d = {d}: {text}", float(results[f"d{d}"][name].mean()))
        for name, text in words.items()
        for d in _WIDTHS
    ]


def _pictures(results: Results) -> list[Picture]:
    rows = [results[f"d{d}"] for d in _WIDTHS]
    x = np.array(_WIDTHS)
    left = mean_curve("selections", x, [r["selections"] for r in rows])
    right = [
        mean_curve("of the best tokens", x, [r["best"] for r in rows]),
        mean_curve("of the most frequent selection", x, [r["frequent"] for r in rows]),
    ]
    panels = [
        Panel(title="what training can end in", axes=("token width (d)", "selections per instance"),
              series=[left]),
        Panel(title="how often", axes=("token width (d)", "share of random starts"), series=right),
    ]  # fmt: skip
    caption = (
        f"{_RUNS} runs per instance from random starts, n = T = 5, followed to their proof; means "
        "over instances with 95 % intervals."
    )
    return [Picture(name="starts", caption=caption, panels=panels, columns=2)]


EXPERIMENTS = (
    Experiment("P:starts", "Selections that training reaches from random starts", 100,
               tuple(Point(f"d{d}", {"d": d}) for d in _WIDTHS), _run, _claims, _pictures,
               measurements=_measurements),
)  # fmt: skip
