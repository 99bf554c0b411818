"""H:rates, H:joint: exponents of constant, normalised and Polyak steps, up to 10^6 of them."""

from typing import Any

import numpy as np

from attnmargin.attention.score import optimal_tokens
from attnmargin.data.attention_data import AttentionData
from attnmargin.data.random import random_data
from attnmargin.papers.engine.claims import Claim, at_least, at_most, mean_of, share_of
from attnmargin.papers.engine.experiment import (
    Arrays,
    Experiment,
    Measurement,
    Point,
    Results,
    Task,
)
from attnmargin.papers.h.courses import Fit, course_of
from attnmargin.plot.panels import Panel, Picture, Series
from attnmargin.training import train

_SHAPE, _STEPS, _JOINT = (4, 4, 8), 1_000_000, 100_000
_RECORDS = 1000
RULES: dict[str, dict[str, Any]] = {
    "constant": {"lr": 1.0, "normalize": False},
    "normalised": {"lr": 0.1, "normalize": True},
    "polyak": {"lr": "polyak", "normalize": False},
}
_ADAPTIVE = ("normalised", "polyak")
_JOINTLY = ("constant", "normalised")


def _run(task: Task) -> Arrays:
    """Train from zero weights, and compare every record with the SVM."""
    rule, parameter, steps = (task.settings[k] for k in ("rule", "parameter", "steps"))
    data = random_data(*_SHAPE, trials=task.trials, name="H:rates", seed=task.seed)
    run = train(data, parameter, steps=steps, record=steps // _RECORDS, progress=task.progress,
                **RULES[rule])  # fmt: skip
    if run.heads is not None:
        data = AttentionData(data.X, data.z, data.y, run.v[-1], data.mask)
    best = (run.selection[-1] == optimal_tokens(data)).all(-1)
    return {**course_of(data, run), "best": best.numpy()}


def _claims(results: Results) -> list[Claim]:
    claims = []
    fits = {rule: Fit(results[rule]) for rule in RULES}
    for rule in _ADAPTIVE:
        for words, values in (
            ("steps", fits[rule].against_steps()),
            ("‖W‖", fits[rule].against_length()),
        ):
            text = f"{rule} steps: exponent of the distance to W_mm against {words}, from −1"
            claims.append(at_most(text, mean_of(np.abs(values + 1.0)), 0.05))
        text = f"{rule} steps: 1 − probability falls like e^(−c steps^a), a from 1"
        claims.append(at_most(text, mean_of(np.abs(fits[rule].speed() - 1.0)), 0.05))
    for rule, fit in fits.items():
        text = f"{rule} steps: 1 − probability falls like e^(−c‖W‖/‖W_mm‖), c from 1"
        claims.append(at_most(text, mean_of(np.abs(fit.sparsity() - 1.0)), 0.1))
    slow = results["constant"]
    for rule in _ADAPTIVE:
        both = slow["feasible"] & results[rule]["feasible"]
        sooner = (results[rule]["distance"][-1] < slow["distance"][-1])[both]
        text = f"{rule} steps end nearer to W_mm than constant ones"
        claims.append(at_least(text, share_of(sooner), 0.95))
    return claims


def _joint_claims(results: Results) -> list[Claim]:
    fit = Fit(results["normalised"])
    fast, slow = (results[rule]["spread"][-1] for rule in ("normalised", "constant"))
    return [
        at_most("v trained too, normalised steps: 1 − probability falls like e^(−c steps^a), "
                "a from 1", mean_of(np.abs(fit.speed() - 1.0)), 0.05),
        at_least("v trained too, normalised steps end closer to one-hot than constant ones",
                 share_of(fast < slow), 0.95),
    ]  # fmt: skip


def _measurements(results: Results) -> list[Measurement]:
    found = []
    for rule, arrays in results.items():
        fit = Fit(arrays)
        numbers = {
            "exponent of the distance against steps": fit.against_steps(),
            "exponent of the distance against ‖W‖": fit.against_length(),
            "a of 1 − probability ~ e^(−c steps^a)": fit.speed(),
            "distance at the end": fit.of("distance")[-1],
            "share of runs that end in the best tokens": arrays["best"],
        }
        if rule == "constant":
            numbers["exponent of 1 − probability against steps"] = fit.sparsity_against_steps()
        for words, values in numbers.items():
            own = mean_of(values)
            half = "" if own.error is None else f" ± {1.96 * own.error:.2g}"
            found.append(Measurement(f"{rule} steps: {words}{half}", own.value))
    return found


def _pictures(results: Results) -> list[Picture]:
    words = (
        "The distance falls like 1/‖W‖ for every rule: like 1/steps where ‖W‖ grows with the "
        "steps, like 1/log(steps) for constant ones. Attention becomes one-hot like "
        "e^(−‖W‖/‖W_mm‖)."
    )
    return [_picture(results, words)]


def _joint_pictures(results: Results) -> list[Picture]:
    words = (
        "While v turns, sequences that do not support v's own margin lose their weight in the "
        "loss, and W stays away from the W_mm that separates all of them."
    )
    return [_picture(results, words)]


def _picture(results: Results, words: str) -> Picture:
    panels = [
        _panel(results, "steps", "distance", "steps", "distance to the direction of W_mm", True),
        _panel(results, "length", "distance", "‖W‖", "distance to the direction of W_mm", True),
        _panel(results, "length", "spread", "‖W‖/‖W_mm‖", "log(1 − probability)", False),
    ]
    caption = f"Medians over trials, n, T, d = {', '.join(map(str, _SHAPE))}. {words}"
    return Picture(name="rates", caption=caption, panels=panels)


def _panel(results: Results, x: str, y: str, along: str, up: str, log: bool) -> Panel:
    """Draw the medians over trials of one quantity against another."""
    series = []
    for k, (rule, arrays) in enumerate(results.items()):
        across, own = arrays[x], arrays[y]
        if not log:
            across = across * arrays["margin"]
        middle = across if across.ndim == 1 else np.median(across, 1)
        line: Series = {"kind": "line", "name": f"{rule} steps", "x": middle,
                        "y": np.median(own, 1), "colour": k}  # fmt: skip
        series.append(line)
    panel = Panel(title=up, axes=(along, ""), series=series, logarithmic=(True, log))
    return panel if log else panel | {"logarithmic": (False, False), "across": (0.0, 60.0),
                                      "limits": (-60.0, 0.0)}  # fmt: skip


def _points(rules: Any, parameter: str, steps: int) -> tuple[Point, ...]:
    return tuple(
        Point(rule, {"rule": rule, "parameter": parameter, "steps": steps}) for rule in rules
    )


EXPERIMENTS = (
    Experiment("H:rates", "How fast W turns to W_mm and attention becomes one-hot", 100,
               _points(RULES, "W", _STEPS), _run, _claims, _pictures,
               measurements=_measurements),
    Experiment("H:joint", "The same with v trained as well", 100,
               _points(_JOINTLY, "vW", _JOINT), _run, _joint_claims, _joint_pictures,
               measurements=_measurements),
)  # fmt: skip
