"""P:rate: which rates of plain gradient descent keep the guarantee."""

import numpy as np

from attnmargin.data.random import random_data
from attnmargin.papers.engine.claims import (
    Claim,
    at_least,
    number_of,
    stated,
)
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
from attnmargin.prediction.entry import predict
from attnmargin.training import train

_RATES = (0.1, 1.0, 10.0, 100.0, 1000.0)
_SHAPES = ((5, 5, 5), (5, 5, 20))
_STEPS, _LATER = 20_000, 3


def _key(shape: tuple[int, int, int], rate: float) -> str:
    return f"{'-'.join(map(str, shape))}-rate{rate:g}"


def _run(task: Task) -> Arrays:
    (n, T, d), rate = task.settings["shape"], task.settings["rate"]
    data = random_data(n, T, d, trials=task.trials, name="P:rate", seed=task.seed)
    found = predict(data, lr=rate, normalize=False, steps=_STEPS, progress=task.progress)
    assert found.ending is not None
    assert found.ending.proof is not None
    proved = found.ending.proved
    kept = np.ones(task.trials, dtype=bool)
    if bool(proved.any()):
        rows = proved.nonzero()[:, 0]
        steps = _LATER * _STEPS
        run = train(data[rows], lr=rate, normalize=False, steps=steps, record=steps,
                    init=found.ending.W[rows])  # fmt: skip
        kept[rows.numpy()] = (run.selection[-1] == found.selection[rows]).all(-1).numpy()
    return {
        "proved": proved.numpy(),
        "flow": found.ending.flow.numpy(),
        "kept": kept,
        "rate": found.ending.proof.rate.numpy(),
        "norm": found.ending.W.norm(dim=(-2, -1)).numpy(),
    }


def _claims(results: Results) -> list[Claim]:
    every = list(results.values())
    left = number_of(np.concatenate([~arrays["kept"][arrays["proved"]] for arrays in every]))
    proved = number_of(np.concatenate([arrays["proved"] for arrays in every]))
    text = f"proved runs that are elsewhere after {_LATER * _STEPS:,} further steps"
    return [
        stated(text, left, "0", left.value == 0),
        at_least("proved runs, so that the claim is not empty", proved, 1.0),
    ]


def _measurements(results: Results) -> list[Measurement]:
    found = []
    for shape in _SHAPES:
        for rate in _RATES:
            arrays = results[_key(shape, rate)]
            found.append(Measurement(f"{shape}, rate {rate:g}: share proved",
                                     float(arrays["proved"].mean())))  # fmt: skip
    return found


def _pictures(results: Results) -> list[Picture]:
    series = []
    for shape in _SHAPES:
        rows = [results[_key(shape, rate)] for rate in _RATES]
        name = f"n, T, d = {', '.join(map(str, shape))}"
        series.append(share_curve(name, np.array(_RATES), [r["proved"] for r in rows]))
    caption = (
        f"Share of runs of plain gradient descent from zero whose end is proved within {_STEPS:,} "
        "steps, against the rate. Weights grow like log(rate × steps), so larger rates are proved "
        "sooner, until steps are too long."
    )
    panel = Panel(title="plain gradient descent", axes=("rate (η)", "share of runs"),
                  series=series, logarithmic=(True, False))  # fmt: skip
    return [Picture(name="rate", caption=caption, panels=[panel], columns=1)]


EXPERIMENTS = (
    Experiment("P:rate", "Rates of plain descent that keep the guarantee", 100,
               tuple(Point(_key(shape, rate), {"shape": shape, "rate": rate})
                     for shape in _SHAPES for rate in _RATES),
               _run, _claims, _pictures, measurements=_measurements),
)  # fmt: skip
