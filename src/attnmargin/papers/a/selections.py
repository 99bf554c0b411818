"""Paper A, figures 2, 5 and 6: which tokens descent selects."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from attnmargin.attention.score import optimal_tokens
from attnmargin.base.files import own_place
from attnmargin.base.npz import write_npz
from attnmargin.data.attention_data import AttentionData
from attnmargin.data.random import random_data
from attnmargin.margin.builders import token_problem
from attnmargin.margin.implied import implied_norm
from attnmargin.papers.a.directions import PENALTY, uniform_factors
from attnmargin.papers.a.settle import LONG_ROUNDS, ROUNDS, Settled, settle
from attnmargin.papers.engine.claims import (
    Claim,
    Measured,
    at_least,
    difference_of,
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
from attnmargin.papers.engine.series import share_curve
from attnmargin.plot.panels import Panel, Picture, Series
from attnmargin.solvers.entry import solve
from attnmargin.theory.paper_a import AVERAGE_MARGIN

GAP = 0.1
_D5 = (2, 3, 4, 5, 8, 10, 15, 20, 30, 50)
_KINDS = (
    "local",
    "rests at a finite norm",
    "SVM infeasible",
    "softmax not saturated",
    "marginal",
    "still growing",
)
_SATURATED = 0.99
# Steadily growing weights double their norm in the last round; below this, they have stopped.
_GROWS = 1.5


def _kinds(end: Settled) -> NDArray[Any]:
    """Classify the end of each trial, as an index into the kinds."""
    reasons = [end.local, end.growth < _GROWS, ~end.feasible, end.least < _SATURATED, end.marginal]
    return np.select(reasons, range(len(reasons)), default=len(reasons))


def _settled(
    data: AttentionData, task: Task, name: str, rounds: tuple[int, ...] = ROUNDS
) -> Settled:
    parameter = task.settings["parameter"]
    if parameter == "W":
        return settle(data, "W", progress=task.progress, rounds=rounds)
    init = uniform_factors(data, data.d, name, task.seed)
    return settle(data, "KQ", init, PENALTY, task.progress, rounds)


# --- figures 2 and 5 ------------------------------------------------------------------------


def _run_fig5(task: Task) -> Arrays:
    d, parameter = task.settings["d"], task.settings["parameter"]
    name = f"A:fig5 d={d}"
    data = random_data(5, 5, d, trials=task.trials, name=name, seed=task.seed, min_gap=GAP)
    end = _settled(data, task, name, LONG_ROUNDS)
    norm = implied_norm(parameter)
    solution = solve(token_problem(data.X, data.z, optimal_tokens(data)), norm)
    average = solution.problem.apply(solution.W).mean(-1).numpy()
    solved = solution.optimal.numpy()
    rest = np.flatnonzero(~end.local)
    parts = {f"rest_{k}": getattr(data[torch.from_numpy(rest)], k).numpy() for k in "Xzyv"}
    return {
        "global": end.optimal,
        "local": end.local,
        "B.1": solved & (average < AVERAGE_MARGIN),
        "kind": _kinds(end),
        "steps": end.steps,
        "least": end.least,
        "rest": rest,
        **parts,
    }


def _flags(results: Results, parameter: str, word: str) -> list[NDArray[Any]]:
    return [results[f"{parameter}-d{d}"][word] for d in _D5]


def _least(found: list[Measured]) -> Measured:
    return min(found, key=lambda own: own.value or 0.0)


def _least_rise(flags: list[NDArray[Any]]) -> Measured:
    """Measure how much a share rises between neighbouring widths; return the least."""
    return _least([difference_of(b, a) for a, b in pairwise(flags)])


def _claims_for(results: Results, parameter: str) -> list[Claim]:
    name = "W" if parameter == "W" else "(K, Q)"
    glob, local, b1 = (_flags(results, parameter, word) for word in ("global", "local", "B.1"))
    wide, enough = _D5.index(20), _D5.index(5)
    excess = [difference_of(a, b) for a, b in zip(glob, b1, strict=True)]
    return [
        at_least(f"{name}: share of Global for d ≥ 20, least",
                 _least([share_of(own) for own in glob[wide:]]), 0.99),
        at_least(f"{name}: share of Local for d ≥ 5, least",
                 _least([share_of(own) for own in local[enough:]]), 0.995),
        at_least(f"{name}: share of Global at one d less at the d before, least", _least_rise(glob),
                 0.0),
        at_least(f"{name}: share of B.1 by average margin at one d less at the d before, least",
                 _least_rise(b1), 0.0),
        more_than(f"{name}: share of B.1 by average margin at d = {_D5[-1]} less d = {_D5[0]}",
                  b1[-1], b1[0], by=0.5),
        at_least(f"{name}: share of Global less share of B.1 by average margin, least over d",
                 _least(excess), 0.0),
    ]  # fmt: skip


def _claims_fig5(results: Results) -> list[Claim]:
    return [claim for key in ("W", "KQ") for claim in _claims_for(results, key)]


def _not_local(results: Results) -> list[Measurement]:
    """Count the instances that do not end locally optimal, by what they do instead."""
    kinds = np.concatenate([arrays["kind"] for arrays in results.values()])
    counts = np.bincount(kinds, minlength=len(_KINDS))
    total = Measurement("instances that are Not Local", float(counts[1:].sum()))
    kinds_of = zip(_KINDS[1:], counts[1:], strict=True)
    return [total, *(Measurement(f"Not Local: {kind}", float(c)) for kind, c in kinds_of if c)]


def _panel(results: Results, parameter: str, title: str) -> Panel:
    series: list[Series] = []
    words = (("Not Local", None), ("Local, with Global", "local"), ("Global", "global"),
             ("B.1 by average margin", "B.1"))  # fmt: skip
    for name, word in words:
        flags = [results[f"{parameter}-d{d}"]["local" if word is None else word] for d in _D5]
        flags = [~f if word is None else f for f in flags]
        series.append(share_curve(name, np.arange(len(_D5)), flags, kind="bar"))
    return Panel(title=title, axes=("token width (d)", "share of instances, %"), series=series,
                 ticks=[str(d) for d in _D5])  # fmt: skip


_CAPTION = (
    "n = T = 5, score gap ≥ 0.1, trained until the selection is made and locally optimal, or "
    "128,000 normalised steps; bars with 95 % intervals. Global: the optimal tokens; Local: "
    "locally optimal by Definition 2. Paper: Global and B.1 rise to 100 % with d, B.1 never above "
    "Global."
)


def _pictures_fig5(results: Results) -> list[Picture]:
    panels = [_panel(results, "W", "(a) W"), _panel(results, "KQ", "(b) (K, Q)")]
    return [Picture(name="fig5", caption=_CAPTION, panels=panels, columns=2)]


def _pictures_fig2(results: Results) -> list[Picture]:
    return [Picture(name="fig2", caption=_CAPTION, panels=[_panel(results, "W", "W")], columns=1)]


def _claims_fig2(results: Results) -> list[Claim]:
    return _claims_for(results, "W")


def _not_local_files(results: Results, folder: Path) -> list[Path]:
    """Save the instances that end not locally optimal as one batch, readable by ``predict``.

    Tokens, queries and heads are zero-padded to the largest width. ``names`` records the origin of
    each instance and how its training ended.
    """
    widths = [a["rest_v"].shape[-1] for a in results.values() if len(a["rest"])]
    widest = max(widths, default=1)
    parts: dict[str, list[NDArray[Any]]] = {name: [] for name in "Xzyv"}
    names: list[str] = []
    for key, arrays in results.items():
        kinds = arrays["kind"][arrays["rest"]]
        names += [f"{key} trial {trial}: {_KINDS[kind]}"
                  for trial, kind in zip(arrays["rest"], kinds, strict=True)]  # fmt: skip
        for name, own in parts.items():
            x = arrays[f"rest_{name}"]
            room = widest - x.shape[-1] if name != "y" else 0
            if len(x):
                own.append(np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, room)]))
    if not names:
        return []
    batch = {name: np.concatenate(own) for name, own in parts.items()}
    return [write_npz(own_place(folder, "instances.npz"), batch | {"names": np.array(names)})]


# --- figure 6 -------------------------------------------------------------------------------

_CURVES = ((5, 5), (10, 5), (20, 5), (5, 10), (5, 20))
_D6 = (2, 5, 10, 15, 20, 30, 40, 60)


def _run_fig6(task: Task) -> Arrays:
    n, T, d = (task.settings[key] for key in ("n", "T", "d"))
    name = f"A:fig6 n={n} T={T} d={d}"
    data = random_data(n, T, d, trials=task.trials, name=name, seed=task.seed, min_gap=GAP)
    end = _settled(data, task, name)
    return {"global": end.optimal, "local": end.local, "steps": end.steps}


def _key(parameter: str, n: int, T: int, d: int) -> str:
    return f"{parameter}-n{n}-T{T}-d{d}"


def _claims_fig6(results: Results) -> list[Claim]:
    claims = []
    for parameter, name in (("W", "W"), ("KQ", "(K, Q)")):
        for n, T in _CURVES:
            last = share_of(results[_key(parameter, n, T, _D6[-1])]["global"])
            claim = f"{name}, n = {n}, T = {T}: probability of global convergence at d = {_D6[-1]}"
            claims.append(at_least(claim, last, 0.99))
    return claims


def _curve(results: Results, parameter: str, n: int, T: int, name: str, k: int) -> Series:
    flags = [results[_key(parameter, n, T, d)]["global"] for d in _D6]
    words = f"{name}, {'W' if parameter == 'W' else '(K, Q)'}"
    return share_curve(words, _D6, flags, colour=k, style=int(parameter == "KQ"), marker="o")


def _pictures_fig6(results: Results) -> list[Picture]:
    groups = (
        ("(a) T = 5", [(n, 5, f"n = {n}") for n in (5, 10, 20)]),
        ("(b) n = 5", [(5, T, f"T = {T}") for T in (5, 10, 20)]),
    )
    panels = [
        Panel(title=title, axes=("token width (d)", "probability of global convergence"),
              series=[_curve(results, p, n, T, name, k) for p in ("W", "KQ")
                      for k, (n, T, name) in enumerate(curves)])
        for title, curves in groups
    ]  # fmt: skip
    caption = (
        "Share of instances in which training selects the optimal tokens, with 95 % intervals; "
        "score gap ≥ 0.1. Solid: W, dashed: (K, Q). Paper: every curve rises to 1 as d grows."
    )
    return [Picture(name="fig6", caption=caption, panels=panels, columns=2)]


def _points5(parameters: tuple[str, ...]) -> tuple[Point, ...]:
    return tuple(
        Point(f"{parameter}-d{d}", {"parameter": parameter, "d": d})
        for parameter in parameters
        for d in _D5
    )


EXPERIMENTS = (
    Experiment("A:fig2", "Convergence of W to global and local directions", 500, _points5(("W",)),
               _run_fig5, _claims_fig2, _pictures_fig2,
               measurements=_not_local, source="A:fig5"),
    Experiment("A:fig5", "Convergence types and Assumption B.1, for W and (K, Q)", 500,
               _points5(("W", "KQ")), _run_fig5, _claims_fig5, _pictures_fig5,
               measurements=_not_local, files=_not_local_files),
    Experiment("A:fig6", "Probability of global convergence", 100,
               tuple(Point(_key(p, n, T, d), {"parameter": p, "n": n, "T": T, "d": d})
                     for p in ("W", "KQ") for n, T in _CURVES for d in _D6),
               _run_fig6, _claims_fig6, _pictures_fig6),
)  # fmt: skip
