"""Paper A, figures 2, 5 and 6, and the conjecture: which tokens descent selects."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from attnmargin.attention.score import optimal_tokens
from attnmargin.base.intervals import share_interval
from attnmargin.base.npz import write_npz
from attnmargin.data.attention_data import AttentionData
from attnmargin.data.random import random_data
from attnmargin.margin.builders import token_problem
from attnmargin.margin.implied import implied_norm
from attnmargin.papers.a.conjecture import WIDTHS, conjecture_experiment
from attnmargin.papers.a.directions import PENALTY, uniform_factors
from attnmargin.papers.a.settle import LONG_ROUNDS, ROUNDS, Settled, settle
from attnmargin.papers.engine.claims import Claim, at_least, stated
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


def _shares(results: Results, parameter: str, word: str) -> NDArray[Any]:
    return np.array([results[f"{parameter}-d{d}"][word].mean() for d in _D5])


def _claims_for(results: Results, parameter: str) -> list[Claim]:
    name = "W" if parameter == "W" else "(K, Q)"
    glob, local, b1 = (_shares(results, parameter, word) for word in ("global", "local", "B.1"))
    wide, enough = np.array(_D5) >= 20, np.array(_D5) >= 5
    count = len(results[f"{parameter}-d{_D5[0]}"]["global"])
    slack = 2.0 / np.sqrt(count)  # bounds two standard errors of a difference of shares
    fall = float(np.max(-np.diff(glob), initial=0.0))
    return [
        at_least(f"{name}: share of Global for d ≥ 20, least", glob[wide].min(), 0.99),
        at_least(f"{name}: share of Local for d ≥ 5, least", local[enough].min(), 0.995),
        stated(f"{name}: Global rises with d, largest fall", fall, f"≤ {slack:.2g} (sampling)",
              fall <= slack),
        stated(f"{name}: B.1 by average margin never above Global, largest excess",
              float((b1 - glob).max()), f"≤ {slack:.2g} (sampling)",
              bool((b1 - glob).max() <= slack)),
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
    return [write_npz(folder / "instances.npz", batch | {"names": np.array(names)})]


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
            last = results[_key(parameter, n, T, _D6[-1])]["global"].mean()
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


# --- the conjecture -------------------------------------------------------------------------


def _run_conjecture(task: Task) -> Arrays:
    record = conjecture_experiment(task.trials, (task.settings["d"],), seed=task.seed)
    (row,) = record["rows"]
    words = ("trials", "B.1", "B.1 by average margin", "D", "both", "selected", "all selected")
    return {word: np.array(row[word]) for word in words}


def _claims_conjecture(results: Results) -> list[Claim]:
    both = sum(int(arrays["both"]) for arrays in results.values())
    missed = both - sum(int(arrays["selected"]) for arrays in results.values())
    claim = f"instances with B.1 and D ({both}) in which training selects other tokens"
    return [
        stated(claim, float(missed), "0", missed == 0),
        stated("instances with B.1 and D, so that the claim is not empty", float(both), "≥ 20",
              both >= 20),
    ]  # fmt: skip


def _pictures_conjecture(results: Results) -> list[Picture]:
    rows = [results[f"d{d}"] for d in WIDTHS]
    series: list[Series] = []
    words = ("B.1", "D", "both", "all selected")
    names = ("B.1, exactly", "D, by search", "both", "training selects the optimal tokens")
    for word, name in zip(words, names, strict=True):
        counts = np.array([int(row[word]) for row in rows])
        low, high = share_interval(counts, int(rows[0]["trials"]))
        series.append({"kind": "line", "name": name, "x": np.array(WIDTHS), "marker": "o",
                       "y": counts / int(rows[0]["trials"]), "low": low, "high": high})  # fmt: skip
    caption = (
        "n = T = 5. Assumption D is decided by solving all 3125 selections of every instance. "
        "Paper, Section 5.2: where B.1 and D hold, training selects the optimal tokens."
    )
    panel = Panel(title="the conjecture", axes=("token width (d)", "share of instances"),
                  series=series)  # fmt: skip
    return [Picture(name="conjecture", caption=caption, panels=[panel], columns=1)]


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
    Experiment("A:conjecture", "Section 5.2: B.1 and D, and what training selects", 50,
               tuple(Point(f"d{d}", {"d": d}) for d in WIDTHS),
               _run_conjecture, _claims_conjecture, _pictures_conjecture),
)  # fmt: skip
