"""Paper A, Section 9: the direction does not depend on the step size or on the start."""

from itertools import combinations
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attnmargin.attention.score import optimal_tokens
from attnmargin.base.seeds import seed_of
from attnmargin.data.random import random_data
from attnmargin.margin.builders import token_problem
from attnmargin.papers.engine.claims import (
    Claim,
    at_least,
    at_most,
    least_of,
    mean_of,
    more_than,
    share_of,
)
from attnmargin.papers.engine.experiment import (
    Arrays,
    Experiment,
    Measurement,
    Point,
    Results,
    Task,
)
from attnmargin.papers.engine.series import mean_curve, share_curve
from attnmargin.plot.panels import Panel, Picture, Series
from attnmargin.solvers.entry import solve
from attnmargin.training import train
from attnmargin.training.measures import correlation

_SIZES = {"few": (5, 5, 5), "many": (5, 5, 20)}  # n, T, d
_RATES = (0.05, 0.2, 0.8)
_STARTS = 4  # zero and three random ones
_FEW = 0.05  # a share of trials that counts as few
_LENGTH = 1000.0  # step size times steps: all runs travel as far


def _starts(name: str, trials: int, d: int, seed: int) -> Tensor:
    """Return zero and random starts with standard normal entries, ``(starts, trials, d, d)``."""
    generator = torch.Generator().manual_seed(seed_of(name, "starts", base=seed))
    drawn = torch.randn(_STARTS, trials, d, d, generator=generator, dtype=torch.float64)
    drawn[0] = 0.0
    return drawn


def _run(task: Task) -> Arrays:
    """Train the same instances with every step size from every start.

    Returns:
        Arrays ``(rates, starts, trials)``: the correlation with the SVM of the selected tokens and
        with that of the optimal ones; ``selection`` ``(…, n)``; ``W`` is compared between runs that
        select the same tokens, ``pair`` ``(pairs of runs, trials)``, NaN where they do not.
    """
    n, T, d = _SIZES[task.settings["size"]]
    name = f"A:sec9 d={d}"
    data = random_data(n, T, d, trials=task.trials, name=name, seed=task.seed)
    flat = data[torch.arange(task.trials).repeat(_STARTS)]
    init = _starts(name, task.trials, d, task.seed).flatten(0, 1)
    runs = []
    for k, rate in enumerate(_RATES):
        steps = round(_LENGTH / rate)
        runs.append(train(flat, lr=rate, steps=steps, record=steps, init=init))
        task.progress(k + 1, len(_RATES))
    W = torch.stack([run.W[-1] for run in runs])
    selection = torch.stack([run.selection[-1] for run in runs])
    solved = solve(token_problem(flat.X, flat.z, selection))
    best = solve(token_problem(flat.X, flat.z, optimal_tokens(flat)))
    fits = {
        "own": correlation(W, solved.W.nan_to_num(nan=0.0)).where(solved.optimal, torch.nan),
        "best": correlation(W, best.W.nan_to_num(nan=0.0)).where(best.optimal, torch.nan),
    }
    shape = (len(_RATES), _STARTS, task.trials)
    return {
        **{key: x.reshape(shape).numpy() for key, x in fits.items()},
        "selection": selection.reshape(*shape, n).numpy(),
        "pair": _pairs(W.reshape(-1, task.trials, d, d), selection.reshape(-1, task.trials, n)),
    }


def _pairs(W: Tensor, selection: Tensor) -> NDArray[Any]:
    """Correlate every two runs ``(runs, trials, …)`` that select the same tokens."""
    rows = []
    for i, j in combinations(range(len(W)), 2):
        same = (selection[i] == selection[j]).all(-1)
        rows.append(correlation(W[i], W[j]).where(same, torch.nan))
    return torch.stack(rows).numpy()


def _changes(own: Arrays) -> tuple[NDArray[Any], NDArray[Any]]:
    """Mark the trials whose selection depends on the start, and on the step size."""
    s = own["selection"]
    by_start = (s != s[:, :1]).any((-1, 1))  # (rates, trials)
    by_rate = (s != s[:1]).any((-1, 0))  # (starts, trials)
    return by_start, by_rate


def _claims(results: Results) -> list[Claim]:
    claims = []
    for key, (n, T, d) in _SIZES.items():
        own, words = results[key], f"n = T = {n}, d = {d}" if n == T else key
        fits = own["own"]
        claims.append(at_least(f"{words}: correlation with the SVM of the selected tokens, mean",
                               mean_of(np.nanmean(fits, (0, 1))), 0.999))  # fmt: skip
        for k, rate in enumerate(_RATES):
            claims.append(at_least(f"{words}: the same with step size {rate:g}, worst start, mean",
                                   mean_of(np.nanmin(fits[k], 0)), 0.995))  # fmt: skip
        pair = own["pair"][np.isfinite(own["pair"])]
        claims.append(at_least(f"{words}: two runs with one selection, correlation, least",
                               least_of(pair), 0.95))  # fmt: skip
        by_start, by_rate = _changes(own)
        claims.append(at_most(f"{words}: share of trials whose selection depends on the start",
                              share_of(by_start.any(0)), _FEW))  # fmt: skip
        claims.append(at_most(f"{words}: share of trials whose selection depends on the step size",
                              share_of(by_rate.any(0)), _FEW))  # fmt: skip
    few, many = (_changes(results[key])[0].any(0) for key in _SIZES)
    words = "share of trials whose selection depends on the start, d = 5 less d = 20"
    return [*claims, more_than(words, few, many)]


def _shares(results: Results) -> list[Measurement]:
    found = []
    for key, (_, _, d) in _SIZES.items():
        by_start, _by_rate = _changes(results[key])
        for k, rate in enumerate(_RATES):
            what = f"d = {d}, step size {rate:g}: share of trials whose selection depends on start"
            found.append(Measurement(what, float(by_start[k].mean())))
    return found


def _fits(own: Arrays, d: int) -> Panel:
    series: list[Series] = [
        mean_curve("zero" if k == 0 else f"random start {k}", np.arange(len(_RATES)),
                   [1.0 - row[np.isfinite(row)] for row in own["own"][:, k]], log=True, marker="o",
                   style=k)
        for k in range(_STARTS)
    ]  # fmt: skip
    return Panel(title=f"d = {d}: all runs meet their SVM",
                 axes=("step size (η)", "distance (1 − correlation)"), series=series,
                 logarithmic=(False, True), ticks=[f"{rate:g}" for rate in _RATES])  # fmt: skip


def _dependent(results: Results) -> Panel:
    changes = [[own.any(0) for own in _changes(results[key])] for key in _SIZES]
    series = [
        share_curve(
            name, np.arange(len(_SIZES)), [np.asarray(pair[k]) for pair in changes], kind="bar"
        )
        for k, name in enumerate(("on the start", "on the step size"))
    ]
    return Panel(title="the selection depends …", axes=("token width (d)", "share of trials, %"),
                 series=series, ticks=[str(d) for _, _, d in _SIZES.values()])  # fmt: skip


def _pictures(results: Results) -> list[Picture]:
    panels = [_fits(results[key], d) for key, (_, _, d) in _SIZES.items()]
    caption = (
        f"n = T = 5, the same instances with three step sizes from zero and {_STARTS - 1} random "
        f"starts with standard normal entries; all runs travel {_LENGTH:g}. Distance of W from the "
        "SVM of the tokens that the run selects; means with 95 % bands. Section 9: the implicit "
        "bias depends neither on the step size nor on the start."
    )
    return [Picture(name="sec9", caption=caption, panels=[*panels, _dependent(results)])]


EXPERIMENTS = (
    Experiment("A:sec9", "Section 9: other step sizes and starts, the same direction", 50,
               tuple(Point(key, {"size": key, "rates": list(_RATES), "starts": _STARTS,
                                 "length": _LENGTH}) for key in _SIZES),
               _run, _claims, _pictures, measurements=_shares),
)  # fmt: skip
