"""N:attention: which norm each method reaches on softmax attention, where nothing is proved."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnmargin.base.files import own_place, write_whole
from attnmargin.data.random import random_data
from attnmargin.margin.builders import token_problem
from attnmargin.margin.norms import as_norm
from attnmargin.papers.engine.claims import Claim, at_least, mean_of, share_of
from attnmargin.papers.engine.experiment import (
    Arrays,
    Experiment,
    Measurement,
    Point,
    Results,
    Task,
)
from attnmargin.plot.panels import Panel, Picture, Series
from attnmargin.solvers.entry import solve
from attnmargin.training import train
from attnmargin.training.methods import Adam, Decaying, Method, Steepest

_SHAPE, _STEPS = (6, 8, 10), 3000
NORMS = ("fro", "spectral", "max", "rows", "nuc")
# What is trained, in which norm of steps, and the norm that it should reach.
RUNS = {
    "W-fro": ("W", "fro", "fro"),
    "W-spectral": ("W", "spectral", "spectral"),
    "W-max": ("W", "max", "max"),
    "W-rows": ("W", "rows", "rows"),
    "W-nuc": ("W", "nuc", "nuc"),
    "KQ-fro": ("KQ", "fro", "nuc"),
    "KQ-spectral": ("KQ", "spectral", "spectral"),
    "W-adam": ("W", "adam", "max"),
}
_CLAIMED = tuple(key for key in RUNS if key != "W-adam")


def _method(name: str) -> Method:
    return Adam((0.9, 0.99), eps=0.0) if name == "adam" else Steepest(name)


def _run(task: Task) -> Arrays:
    parameter, name, _ = RUNS[task.settings["run"]]
    data = random_data(*_SHAPE, trials=task.trials, name="N:attention", seed=task.seed)
    # K and Q grow like the sum of the rates each, and W like its square.
    lr = Decaying(1.0, 0.5) if parameter == "W" else Decaying(0.1, 0.25)
    run = train(data, parameter, _method(name), lr=lr, steps=_STEPS, record=_STEPS,
                seed=task.seed, progress=task.progress)  # fmt: skip
    problem, W = token_problem(data.X, data.z, run.selection[-1]), run.W[-1]
    rows, feasible, found = problem.apply(W).amin(-1), np.ones(task.trials, dtype=bool), []
    for norm in NORMS:
        solution = solve(problem, norm)
        feasible &= solution.optimal.numpy()
        found.append((rows / as_norm(norm).value(W) / solution.margin).numpy())
    return {"relative": np.stack(found, -1), "feasible": feasible}


def reached(arrays: Arrays) -> NDArray[np.int64]:
    """Number the norm whose margin is nearest to the largest, for feasible trials; −1: unknown."""
    relative = arrays["relative"][arrays["feasible"]]
    return np.where(np.isfinite(relative).all(-1), relative.argmax(-1), -1)


def _words(key: str) -> str:
    parameter, name, _ = RUNS[key]
    method = "Adam" if name == "adam" else f"{name} descent"
    return f"{method} on {'(K, Q)' if parameter == 'KQ' else 'W'}"


def _claims(results: Results) -> list[Claim]:
    claims = []
    for key in _CLAIMED:
        own, arrays, words = RUNS[key][2], results[key], _words(key)
        k = NORMS.index(own)
        share = share_of(reached(arrays) == k)
        relative = mean_of(arrays["relative"][arrays["feasible"], k])
        claims += [
            at_least(f"{words}: trials that come closest to the {own} margin", share, 0.9),
            at_least(f"{words}: reached share of the largest {own} margin", relative, 0.8),
        ]
    return claims


def _measurements(results: Results) -> list[Measurement]:
    return [
        Measurement(f"{_words(key)}: share of the largest {norm} margin",
                    float(arrays["relative"][arrays["feasible"], k].mean()))
        for key, arrays in results.items()
        for k, norm in enumerate(NORMS)
    ]  # fmt: skip


def _pictures(results: Results) -> list[Picture]:
    panels = []
    for key, arrays in results.items():
        relative = 100.0 * arrays["relative"][arrays["feasible"]].mean(0)
        bars: Series = {"kind": "bar", "name": "", "x": np.arange(len(NORMS)), "y": relative}
        panel = Panel(title=_words(key), axes=("norm", "% of the largest margin"), series=[bars],
                      ticks=list(NORMS), limits=(0.0, 100.0))  # fmt: skip
        panels.append(panel)
    caption = (
        "Softmax attention on random data, n, T, d = 6, 8, 10: the margin that each method has "
        f"after {_STEPS:,} normalised steps, in percent of the largest one in each norm for the "
        "tokens that it selected. Each method comes closest in its own norm; Adam forgets too "
        "slowly for this number of steps."
    )
    return [Picture(name="attention", caption=caption, panels=panels, columns=4)]


def exceptions(results: Results) -> list[dict[str, Any]]:
    """List the trials of claimed methods that come closest to another norm than their own.

    Trial k is member k of ``random_data(6, 8, 10, trials=50, name="N:attention", seed=seed)``.
    """
    found = []
    for key in _CLAIMED:
        arrays, own = results[key], RUNS[key][2]
        trials = np.flatnonzero(arrays["feasible"])
        for trial, k in zip(trials.tolist(), reached(arrays).tolist(), strict=True):
            if k != NORMS.index(own):
                shares = dict(zip(NORMS, arrays["relative"][trial].tolist(), strict=True))
                nearest = NORMS[k] if k >= 0 else None
                found.append({"run": key, "trial": trial, "nearest": nearest, "shares": shares})
    return found


def _files(results: Results, folder: Path) -> list[Path]:
    text = json.dumps(exceptions(results), indent=1) + "\n"
    return [
        write_whole(
            own_place(folder, "exceptions.json"), lambda stream: stream.write(text.encode())
        )
    ]


EXPERIMENTS = (
    Experiment("N:attention", "The norm that each method reaches on attention", 50,
               tuple(Point(key, {"run": key}) for key in RUNS),
               _run, _claims, _pictures, measurements=_measurements, files=_files),
)  # fmt: skip
