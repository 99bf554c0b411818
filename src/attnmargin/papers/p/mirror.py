"""P:mirror: how many runs of ℓp mirror descent are proved, after how many steps (Theorem C)."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from attnmargin.data.random import random_data
from attnmargin.papers.engine.claims import (
    Claim,
    at_least,
    number_of,
    share_of,
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
from attnmargin.papers.p.certified import proved_by
from attnmargin.plot.panels import Panel, Picture
from attnmargin.prediction.entry import predict
from attnmargin.prediction.prediction import Prediction

_SHAPES = ((6, 8, 10), (5, 5, 20))
_POWERS = (1.25, 1.5, 1.75, 3.0)
_STEPS, _FURTHER, _RECORD = 20_000, 20_000, 500
_MOMENTS = np.unique(np.geomspace(32, _STEPS, 40).astype(int))


def _point(shape: tuple[int, int, int], p: float) -> Point:
    return Point(f"{'-'.join(map(str, shape))}-l{p:g}", {"shape": shape, "p": p})


def _run(task: Task) -> Arrays:
    n, T, d = task.settings["shape"]
    data = random_data(n, T, d, trials=task.trials, name="P:mirror", seed=task.seed)
    found = predict(data, p=task.settings["p"], steps=_STEPS, progress=task.progress)
    assert found.ending is not None
    return {
        "since": found.ending.since.numpy(),
        "flow": found.ending.flow.numpy(),
        "onward": found.ending.onward.numpy(),
        "longest": found.longest.numpy(),
        "left": _left(found),
    }


def _left(found: Prediction) -> NDArray[np.bool_]:
    """Go on from the proofs with the longest steps; tell which leave their tokens."""
    assert found.ending is not None
    left = np.zeros(len(found.longest), dtype=bool)
    rows = found.ending.proved.nonzero()[:, 0]
    if len(rows):
        course = replace(found.course[rows], lr=found.longest[rows])
        run = course.train(found.data[rows], _FURTHER, _RECORD, (found.ending.W[rows],))
        left[rows.numpy()] = (run.selection != found.selection[rows]).any(-1).any(0).numpy()
    return left


def _claims(results: Results) -> list[Claim]:
    bounds = {((5, 5, 20), 1.75): 0.99, ((6, 8, 10), 1.75): 0.85, ((6, 8, 10), 1.5): 0.7}
    claims = [
        at_least(f"(n, T, d) = {shape}, p = {p:g}: share of runs that are proved",
                 share_of(proved_by(results[_point(shape, p).key])), bound)
        for (shape, p), bound in bounds.items()
    ]  # fmt: skip
    every = [results[_point(shape, p).key] for shape in _SHAPES for p in _POWERS]
    left = number_of(np.concatenate([arrays["left"][proved_by(arrays)] for arrays in every]))
    text = f"proved runs that leave their tokens in {_FURTHER:,} of the longest steps"
    return [*claims, stated(text, left, "0", left.value == 0)]


def _measurements(results: Results) -> list[Measurement]:
    found = []
    for shape in _SHAPES:
        for p in _POWERS:
            arrays = results[_point(shape, p).key]
            sure = proved_by(arrays)
            numbers = {
                "share that is proved": sure.mean(),
                "share for which mirror flow is proved": (sure | arrays["flow"]).mean(),
                "share that is proved further on": (sure | np.isfinite(arrays["onward"])).mean(),
                "median step of the proof": np.median(arrays["since"][sure]) if sure.any() else -1,
            }
            found += [Measurement(f"{shape}, p = {p:g}: {k}", float(x)) for k, x in numbers.items()]
    return found


def _pictures(results: Results) -> list[Picture]:
    panels = [
        Panel(title=f"n, T, d = {', '.join(map(str, shape))}", axes=("step (k)", "share of runs"),
              series=[share_curve(f"p = {p:g}", _MOMENTS,
                                  [proved_by(results[_point(shape, p).key], k) for k in _MOMENTS])
                      for p in _POWERS], logarithmic=(True, False))
        for shape in _SHAPES
    ]  # fmt: skip
    caption = (
        "Share of runs of mirror descent whose end is proved (Theorem C) by step k: normalised "
        "descent from zero, steps of 0.1, with 95 % intervals. Weights grow like a power 1/(p − 1) "
        "of the steps, and the proof needs long ones: for p = 3, longer than these runs reach."
    )
    return [Picture(name="mirror", caption=caption, panels=panels, columns=2)]


EXPERIMENTS = (
    Experiment("P:mirror", "Runs of mirror descent whose end is proved", 200,
               tuple(_point(shape, p) for shape in _SHAPES for p in _POWERS),
               _run, _claims, _pictures, measurements=_measurements),
)  # fmt: skip
