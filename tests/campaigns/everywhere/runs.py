"""Training, flows and paths; what is predicted of runs; what they can end in."""

from typing import Any

import numpy as np
import torch

import attnmargin as am
from tests.campaigns.everywhere.place import Answers, Place, named

# What training is asked for, by name.
RUNS: dict[str, dict[str, Any]] = {
    "gd": {}, "plain": {"normalize": False, "lr": "auto"}, "penalty": {"penalty": 1e-6},
    "mirror 1.5": {"method": "mirror", "p": 1.5}, "mirror 3": {"method": "mirror", "p": 3.0},
    "KQ": {"parameter": "KQ"}, "vW": {"parameter": "vW", "lr": 0.01},
    "spectral": {"method": "steepest", "norm": "spectral", "lr": 0.01},
    "exponential": {"loss": "exponential"},
}  # fmt: skip
PREDICTIONS: dict[str, dict[str, Any]] = {
    "gd": {}, "plain": {"normalize": False, "lr": 1.0}, "mirror 3": {"p": 3.0},
    "KQ": {"parameter": "KQ", "steps": 4000},
}  # fmt: skip
_STEPS = 100  # normalised steps of fixed length amplify rounding once a run begins to oscillate
_FEW = 20  # predictions take long without a compiler


def _data(place: Place) -> am.AttentionData:
    return am.random_data(4, 5, 6, trials=place.trials, name="everywhere runs", min_gap=0.05)


def _start(parameter: str | None, trials: int) -> list[torch.Tensor]:
    """Draw K and Q of every trial, so that chunks of a batch begin where the whole does."""
    if parameter != "KQ":
        return []
    draw = torch.Generator().manual_seed(1)
    return list(torch.randn(2, trials, 6, 6, generator=draw, dtype=torch.float64) / 3.0)


def training(place: Place) -> Answers:
    """Train by every method."""
    found: Answers = {}
    for name, options in RUNS.items():

        def ask(data: Any, *factors: Any, options: dict[str, Any] = options) -> dict[str, Any]:
            run = am.train(data, steps=_STEPS, record=50, init=factors or None, **options)
            return {"W": run.W[-1], "loss": run.loss.T, "probability": run.probability.T,
                    "selection": run.selection[-1]}  # fmt: skip

        start = _start(options.get("parameter"), place.trials)
        found |= named(f"train {name}", place.asked(ask, _data(place), *start))
    return found


def predictions(place: Place) -> Answers:
    """Predict runs: verdict, step, selection, margin."""
    found: Answers = {}
    few = _data(place)[:_FEW]
    for name, options in PREDICTIONS.items():

        def ask(data: Any, *factors: Any, options: dict[str, Any] = options) -> dict[str, Any]:
            own = am.predict(data, init=factors or None, **options)
            return {"verdict": np.atleast_1d(own.verdict), "since": own.since,
                    "selection": own.selection, "best": own.best, "margin": own.margin}  # fmt: skip

        start = [own[:_FEW] for own in _start(options.get("parameter"), place.trials)]
        found |= named(f"predict {name}", place.asked(ask, few, *start))
    return found


def paths(place: Place) -> Answers:
    """Follow gradient flows and regularisation paths of a few instances."""

    def flow(data: Any) -> dict[str, Any]:
        run = am.gradient_flow(data, length=50.0, record=2)
        return {"loss": run.loss.T, "W": run.W[-1]}

    def path(data: Any) -> dict[str, Any]:
        run = am.regularization_path(data, [1.0, 10.0, 100.0])
        return {"loss": run.loss.T, "selection": run.selection[-1]}

    few = _data(place)[: 3 if place.small else 9]
    return named("flow", place.asked(flow, few)) | named("path", place.asked(path, few))


def selections(place: Place) -> Answers:
    """Decide which selections are locally optimal."""
    data = _data(place)
    found: Answers = {}
    for k in range(3 if place.small else 12):
        search = am.selections.local_selections(data[k].to(place.device))
        found |= named(f"local {k}", {
            "selections": search.selections, "margin": search.margin, "total": search.total,
            "searched": search.searched, "feasible": search.feasible,
        })  # fmt: skip

    def ask(data: Any) -> dict[str, Any]:
        own = am.selections.locality(data, am.optimal_tokens(data))
        return {"local": own.local, "feasible": own.feasible, "support": own.support}

    return found | named("locality", place.asked(ask, data))
