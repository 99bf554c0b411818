"""E:descent: plain descent and its continuation, against W⋆ and the NTP-SVM."""

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attnmargin.decoders import NextWords, descend, finite_part, flow, random_next_words
from attnmargin.margin.solution import Solution
from attnmargin.papers.engine.claims import (
    Claim,
    at_least,
    at_most,
    largest_of,
    least_of,
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
from attnmargin.plot.panels import Panel, Picture, Series
from attnmargin.solvers.entry import solve
from attnmargin.training.measures import correlation

# Contexts, their width, words, and how many follow: more dimensions than contexts, and fewer.
SHAPES = {"wide": (8, 10, 8, 3), "narrow": (6, 5, 8, 2)}
_WORDS = {"wide": "8 contexts in 10 dimensions", "narrow": "6 contexts in 5 dimensions"}
_STEPS, _RECORD, _RATE = 20_000, 500, 2.0  # 1/L is at least 2 for contexts of length one
_SAME = math.log(_RATE * _STEPS)  # the time of the last step of descent, as a logarithm
_TIMES = (1.0, 2.0, 4.0, 7.0, _SAME, 20.0, 40.0, 70.0, 120.0, 200.0)
_DRAWS = 20  # blocks of settings, at most


def settings_of_both(trials: int, shape: tuple[int, int, int, int], seed: int) -> NextWords:
    """Draw settings until ``trials`` of them are separable and compatible."""
    kept: list[NextWords] = []
    for block in range(_DRAWS):
        name = f"E:descent {shape} block={block}"
        data = random_next_words(*shape, trials=trials, name=name, seed=seed)
        good = solve(data.problem).optimal & solve(data.equations).optimal
        kept.append(data[good])
        if sum(len(own.weight) for own in kept) >= trials:
            break
    h, p, weight = (
        torch.cat([getattr(own, part) for own in kept])[:trials]
        for part in ("contexts", "probabilities", "weight")
    )
    return NextWords(h, p, weight)


def _off(finite: Tensor, best: Tensor) -> NDArray[np.float64]:
    return torch.linalg.matrix_norm(finite - best).numpy()


def _run(task: Task) -> Arrays:
    data = settings_of_both(task.trials, SHAPES[task.settings["shape"]], task.seed)
    equations, solution = solve(data.equations), solve(data.problem)
    best, newton = equations.W, finite_part(data)
    plain = descend(data, _STEPS, _RATE, _RECORD)
    path = flow(data, _TIMES, progress=task.progress)
    same = flow(data, _SAME, stride=0.05).W[-1]
    apart = torch.linalg.matrix_norm(plain.W[-1] - same) / torch.linalg.matrix_norm(same)
    return {
        "certified": _certified(equations, solution).numpy(),
        "newton": _off(newton.W, best) + newton.error.numpy(),
        "plain_at": plain.at.numpy()[1:],
        "plain_off": _off(plain.finite, best)[1:],
        "plain_correlation": correlation(plain.growing, solution.W).numpy()[1:],
        "plain_excess": (plain.loss - data.entropy).numpy()[1:],
        "path_at": path.at.numpy(),
        "path_off": _off(path.finite, best),
        "path_correlation": correlation(path.growing, solution.W).numpy(),
        "apart": apart.numpy(),
    }


def _certified(*solutions: Solution) -> Tensor:
    """Return the largest relative gap of the solutions, ``(*B,)``."""
    return torch.stack([own.certificate.gap for own in solutions]).amax(0)


def _claims(results: Results) -> list[Claim]:
    claims = []
    for key, words in _WORDS.items():
        own = results[key]
        tenth = np.searchsorted(own["plain_at"], 0.1 * own["plain_at"][-1])
        excess = own["plain_excess"]
        claims += [
            at_most(f"{words}: gap of W⋆ and of the NTP-SVM", largest_of(own["certified"]), 1e-12),
            at_most(f"{words}: Newton's finite part, distance to W⋆ and bound",
                    largest_of(own["newton"]), 1e-9),
            at_most(f"{words}: part inside the span after training, distance to W⋆",
                    largest_of(own["path_off"][-1]), 1e-3),
            at_least(f"{words}: the rest after training, correlation with the NTP-SVM",
                     least_of(own["path_correlation"][-1]), 0.999),
            at_most(f"{words}: descent and flow at the same time, relative distance, mean",
                    mean_of(own["apart"]), 0.05),
            at_least(f"{words}: digits that loss − entropy loses from step 2,000 to the end, mean",
                     mean_of(np.log10(excess[tenth] / excess[-1])), 0.8),
        ]  # fmt: skip
    return claims


def slope(at: NDArray[np.float64], values: NDArray[np.float64]) -> float:
    """Fit the slope of the mean logarithm of values ``(R, trials)`` against that of the times."""
    late = at >= 0.1 * at[-1]
    x = np.log(at[late])
    y = np.log(values[late]).mean(1)
    return float(np.polyfit(x, y, 1)[0])


def _measurements(results: Results) -> list[Measurement]:
    found = []
    for key, words in _WORDS.items():
        own = results[key]
        at = own["plain_at"].astype(float)
        last = f"plain descent, step {_STEPS:,}"
        found += [
            Measurement(f"{words}: {last}: part inside the span, mean distance to W⋆",
                        float(own["plain_off"][-1].mean())),
            Measurement(f"{words}: {last}: the rest, mean correlation with the NTP-SVM",
                        float(own["plain_correlation"][-1].mean())),
            Measurement(f"{words}: plain descent: slope of log distance against log steps",
                        slope(at, own["plain_off"])),
            Measurement(f"{words}: plain descent: slope of log (1 − correlation)",
                        slope(at, 1.0 - own["plain_correlation"])),
            Measurement(f"{words}: plain descent: slope of log (loss − entropy)",
                        slope(at, own["plain_excess"])),
        ]  # fmt: skip
    return found


def _pictures(results: Results) -> list[Picture]:
    left: list[Series] = []
    right: list[Series] = []
    for k, (key, words) in enumerate(_WORDS.items()):
        own = results[key]
        steps = np.log(_RATE * own["plain_at"])
        for name, at, style, kind in (("descent", steps, 0, "plain"),
                                      ("flow", own["path_at"], 1, "path")):  # fmt: skip
            off, rest = own[f"{kind}_off"], 1.0 - own[f"{kind}_correlation"]
            for curves, values in ((left, off), (right, rest)):
                shown = list(np.maximum(values, 1e-16))
                curves.append(mean_curve(f"{words}, {name}", at, shown, log=True, colour=k,
                                         style=style))  # fmt: skip
    axis = "logarithm of the time (log t = log ηk)"
    panels = [
        Panel(title="words that follow: W stays finite", axes=(axis, "distance to W⋆"),
              series=left, logarithmic=(True, True)),
        Panel(title="the rest grows along the NTP-SVM", axes=(axis, "distance (1 − correlation)"),
              series=right, logarithmic=(True, True)),
    ]  # fmt: skip
    caption = (
        f"Random contexts that are separable and compatible; {_STEPS:,} steps of plain gradient "
        "descent (solid), and gradient flow, which agrees with it, to the time e^200 (dashed). "
        "Inside the span of words that follow, W tends to W⋆; outside, it turns to the NTP-SVM "
        "like 1/log t, so that descent would need e^200 steps."
    )
    return [Picture(name="descent", caption=caption, panels=panels, columns=2)]


EXPERIMENTS = (
    Experiment("E:descent", "Descent ends in W⋆ and along the NTP-SVM", 100,
               tuple(Point(key, {"shape": key, "steps": _STEPS}) for key in SHAPES),
               _run, _claims, _pictures, measurements=_measurements),
)  # fmt: skip
