"""P:certified: how many runs are proved, after how many steps, beside the paper's constants."""

import numpy as np
import torch
from numpy.typing import NDArray

from attnmargin.attention.score import scores
from attnmargin.data.attention_data import AttentionData
from attnmargin.data.random import random_data
from attnmargin.papers.engine.claims import (
    Claim,
    at_least,
    difference_of,
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
from attnmargin.plot.panels import Panel, Picture
from attnmargin.prediction.entry import predict
from attnmargin.prediction.plain import plain_run
from attnmargin.prediction.prediction import Prediction
from attnmargin.theory.chosen import cone
from attnmargin.training.measures import correlation

_SHAPES = ((5, 5, 5), (6, 8, 10), (5, 5, 20), (10, 10, 20))
_STEPS = 20_000
_MOMENTS = np.unique(np.geomspace(32, _STEPS, 40).astype(int))
# Runs that are followed to the last step for the paper's constants, which need long weights.
_MOST = 100
# Runs that are repeated in plain torch, for how many steps at most, and its records.
_PLAIN, _PLAIN_STEPS, _PLAIN_RECORD = 250, 4000, 20


def _key(shape: tuple[int, int, int]) -> str:
    return "-".join(map(str, shape))


def _run(task: Task) -> Arrays:
    n, T, d = task.settings["shape"]
    data = random_data(n, T, d, trials=task.trials, name="P:certified", seed=task.seed)
    found = predict(data, steps=_STEPS, progress=task.progress)
    assert found.ending is not None
    assert found.ending.proof is not None
    best = (found.selection == found.best).all(-1)
    return {
        "since": found.ending.since.numpy(),
        "by_level": (found.ending.proof.by_level & found.ending.proved).numpy(),
        "best": best.numpy(),
        "longest": found.longest.numpy(),
        "settled": found.ending.settled.numpy(),
        "paper": _paper(found[:_MOST]),
        **_plain(found[:_PLAIN]),
    }


def _plain(found: Prediction) -> Arrays:
    """Train as the authors do, in plain torch, for as long as float64 carries it."""
    run = found.course.train(found.data, _PLAIN_STEPS, _PLAIN_RECORD)
    plain = plain_run(found.data, found.course, run)
    last = (plain.steps // _PLAIN_RECORD).tolist()
    chosen = torch.stack([run.selection[r, k] for k, r in enumerate(last)])
    return {
        "plain": plain.agrees.numpy(),
        "plain_steps": plain.steps.numpy(),
        "plain_apart": plain.apart.numpy(),
        "plain_there": (chosen == found.selection).all(-1).numpy(),
    }


def _paper(found: Prediction) -> NDArray[np.bool_]:
    """Check (67) and (74) of paper A at the last step: long enough, and near enough to W_mm."""
    data, course = found.data, found.course
    W = course.train(data, _STEPS, _STEPS, keep_weights=True).W[-1]
    mu, R = _constants(data, found)
    near = correlation(W, found.direction) >= 1.0 - mu
    return np.asarray(near & (W.norm(dim=(-2, -1)) >= R))


def _constants(data: AttentionData, found: Prediction) -> tuple[torch.Tensor, torch.Tensor]:
    """Compute μ and R of paper A, Theorem 7, for the selections of the runs."""
    problem, tight = found.solution.problem, found.solution.support
    margins = problem.apply(found.direction)
    delta = 0.5 * (margins - 1.0).where(problem.mask & ~tight, torch.inf).amin(-1)
    value, gamma = found.solution.value, scores(data)
    pair = data.X.norm(dim=-1).amax(-1) * data.z.norm(dim=-1)
    A = pair.amax(-1) * value
    own = gamma.gather(-1, found.selection.unsqueeze(-1))
    gap = (own - gamma.where(found.support, -torch.inf)).amin((-2, -1))
    spread = (gamma.amax(-1) - gamma.amin(-1)).amax(-1)
    return cone(delta, value, A, data.T * spread / gap)


def proved_by(arrays: Arrays, moment: float = _STEPS) -> NDArray[np.bool_]:
    """Tell which runs are proved by a step."""
    return np.asarray((arrays["since"] >= 0) & (arrays["since"] <= moment))


def _claims(results: Results) -> list[Claim]:
    claims = []
    for shape in _SHAPES:
        arrays = results[_key(shape)]
        claims.append(at_least(f"(n, T, d) = {shape}: share of runs that are proved",
                               share_of(proved_by(arrays)), 0.99))  # fmt: skip
        most = len(arrays["paper"])
        words = f"(n, T, d) = {shape}: and how many more than by the paper's constants"
        more = difference_of(proved_by(arrays)[:most], arrays["paper"])
        claims.append(at_least(words, more, 0.0))
    other = number_of(np.concatenate([~results[_key(shape)]["plain"] for shape in _SHAPES]))
    text = "runs in which plain torch selects otherwise, while its gradient is exact"
    return [*claims, stated(text, other, "0", other.value == 0)]


def _measurements(results: Results) -> list[Measurement]:
    found = []
    for shape in _SHAPES:
        arrays = results[_key(shape)]
        proved, since = proved_by(arrays), arrays["since"]
        numbers = {
            "median step of the proof": np.median(since[proved]),
            "share that ends in the best tokens": arrays["best"].mean(),
            "share by the paper's constants": arrays["paper"].mean(),
            "median of the longest proved step": np.median(arrays["longest"][proved]),
            "median steps that plain torch is exact": np.median(arrays["plain_steps"]),
            "share of plain runs that have the predicted tokens then": arrays["plain_there"].mean(),
            "largest relative distance of plain weights": arrays["plain_apart"].max(),
        }
        found += [Measurement(f"{shape}: {name}", float(x)) for name, x in numbers.items()]
    return found


def _pictures(results: Results) -> list[Picture]:
    series = [
        share_curve(f"n, T, d = {', '.join(map(str, shape))}", _MOMENTS,
                    [proved_by(results[_key(shape)], k) for k in _MOMENTS])
        for shape in _SHAPES
    ]  # fmt: skip
    names = [", ".join(map(str, shape)) for shape in _SHAPES]
    rows, places = [results[_key(shape)] for shape in _SHAPES], np.arange(len(_SHAPES))
    most = [len(row["paper"]) for row in rows]
    bars = [
        share_curve("Theorems A and B", places,
                    [proved_by(row)[:k] for row, k in zip(rows, most, strict=True)], kind="bar"),
        share_curve("paper A, (67) and (74)", places, [row["paper"] for row in rows], kind="bar"),
    ]  # fmt: skip
    caption = (
        "Share of runs whose end is proved (Theorem A or B) by step k: normalised descent from "
        "zero, steps of 0.1, with 95 % intervals. Right: the first hundred runs of each size at "
        "the last step, beside the constants of paper A."
    )
    panels = [
        Panel(title="runs whose end is certain", axes=("step (k)", "share of runs"), series=series,
              logarithmic=(True, False)),
        Panel(title=f"after {_STEPS:,} steps", axes=("n, T, d", "runs proved (%)"), series=bars,
              ticks=names),
    ]  # fmt: skip
    return [Picture(name="certified", caption=caption, panels=panels, columns=2)]


EXPERIMENTS = (
    Experiment("P:certified", "Runs whose end is proved, against steps and sizes", 1000,
               tuple(Point(_key(shape), {"shape": shape}) for shape in _SHAPES),
               _run, _claims, _pictures, measurements=_measurements),
)  # fmt: skip
