"""Paper A, figures 4 and 10: ranks of the solutions, and the required width of K and Q."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from attnmargin.attention.score import optimal_tokens
from attnmargin.data.random import random_data
from attnmargin.margin.builders import token_problem
from attnmargin.papers.a.directions import PENALTY, uniform_factors
from attnmargin.papers.engine.claims import Claim, at_most, difference_of, more_than, number_of
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
from attnmargin.training import train
from attnmargin.training.measures import misalignment

_CURVES = ((5, 5), (10, 5), (15, 5), (5, 10), (5, 15))
_D4 = (1, 2, 3, 4, 5, 10, 15, 20)
# Maximum number of draws to find feasible instances, which are rare for narrow tokens.
_DRAWS, _BLOCK = 8000, 500


def _key(n: int, T: int, last: str) -> str:
    return f"n{n}-T{T}-{last}"


def _run_fig4(task: Task) -> Arrays:
    """Compute the ranks of the Frobenius and nuclear solutions of feasible instances."""
    n, T, d = (task.settings[key] for key in ("n", "T", "d"))
    ranks: dict[str, list[NDArray[Any]]] = {"fro": [], "nuc": []}
    found = drawn = 0
    while found < task.trials and drawn < _DRAWS:
        name = f"A:fig4 n={n} T={T} d={d} block={drawn // _BLOCK}"
        data = random_data(n, T, d, trials=_BLOCK, name=name, seed=task.seed)
        problem = token_problem(data.X, data.z, optimal_tokens(data))
        solution = solve(problem)
        good = np.flatnonzero(solution.optimal.numpy())[: task.trials - found]
        drawn += _BLOCK
        if len(good):
            kept = torch.from_numpy(good)
            ranks["fro"].append(solution[kept].rank.numpy())
            ranks["nuc"].append(solve(problem[kept], "nuc").rank.numpy())
            found += len(good)
        task.progress(min(max(found, drawn * task.trials // _DRAWS), task.trials), task.trials)
    empty = np.zeros(0, dtype=np.int64)
    joined = {norm: np.concatenate([empty, *parts]) for norm, parts in ranks.items()}
    return {**joined, "drawn": np.array(drawn)}


def _claims_fig4(results: Results) -> list[Claim]:
    above, gaps = [], []
    for n, T in _CURVES:
        for d in _D4:
            arrays = results[_key(n, T, f"d{d}")]
            above += [arrays[norm] > min(n, d) for norm in ("fro", "nuc")]
            if len(arrays["fro"]):
                gaps.append(difference_of(arrays["nuc"], arrays["fro"]))
    worst = max(gaps, key=lambda own: own.value or 0.0)
    return [
        at_most("solutions with a rank above min(n, d)", number_of(np.concatenate(above)), 0.0),
        at_most("nuclear rank less Frobenius rank, mean, largest over all points", worst, 0.0),
    ]


def _missing(results: Results) -> list[Measurement]:
    keys = [_key(n, T, f"d{d}") for n, T in _CURVES for d in _D4]
    count = sum(len(results[key]["fro"]) == 0 for key in keys)
    what = f"points without a feasible instance in {_DRAWS} draws (not drawn)"
    return [Measurement(what, float(count))]


def _rank_curve(results: Results, n: int, T: int, norm: str, name: str, k: int) -> Series:
    widths = [d for d in _D4 if len(results[_key(n, T, f"d{d}")]["fro"]) > 1]
    ranks = [results[_key(n, T, f"d{d}")][norm] for d in widths]
    words = f"{name}, {'Frobenius' if norm == 'fro' else 'nuclear'}"
    return mean_curve(words, widths, ranks, colour=k, style=int(norm == "nuc"), marker="o")


_GROUPS = (
    ("(a) T = 5", [(n, 5, f"n = {n}") for n in (5, 10, 15)]),
    ("(b) n = 5", [(5, T, f"T = {T}") for T in (5, 10, 15)]),
)


def _pictures_fig4(results: Results) -> list[Picture]:
    panels = [
        Panel(title=title, axes=("token width (d)", "rank of the solution"),
              series=[_rank_curve(results, n, T, norm, name, k) for norm in ("fro", "nuc")
                      for k, (n, T, name) in enumerate(curves)])
        for title, curves in _GROUPS
    ]  # fmt: skip
    caption = (
        "Rank of the solutions for the optimal tokens of feasible instances: singular values above "
        "1e-7 of the largest; means with 95 % bands. Lemma 1: at most min(n, d) (the paper's text "
        "says max). Solid: Frobenius, dashed: nuclear."
    )
    return [Picture(name="fig4", caption=caption, panels=panels, columns=2)]


# --- figure 10 ------------------------------------------------------------------------------

_D10, _M = 20, tuple(range(1, 11))
_ALIGNED = 0.05  # a misalignment that counts as aligned


def _run_fig10(task: Task) -> Arrays:
    """Measure the misalignment of K Qᵀ of width m with the unconstrained nuclear solution."""
    n, T, m = (task.settings[key] for key in ("n", "T", "m"))
    name = f"A:fig10 n={n} T={T}"
    data = random_data(n, T, _D10, trials=task.trials, name=name, seed=task.seed)
    init = uniform_factors(data, m, name, task.seed)
    run = train(data, "KQ", steps=2000, init=init, penalty=PENALTY, record=2000,
                progress=task.progress)  # fmt: skip
    solution = solve(token_problem(data.X, data.z, run.selection[-1]), "nuc")
    solved = solution.optimal
    return {"off": misalignment(run.W[-1][solved], solution.W[solved]).numpy()}


def _off(results: Results, n: int, T: int, m: int) -> NDArray[Any]:
    own: NDArray[Any] = results[_key(n, T, f"m{m}")]["off"]
    return own


def _needed(results: Results, n: int) -> NDArray[Any]:
    """Find the least width at which each trial aligns, T = 5; one more than all where none does."""
    off = np.stack([_off(results, n, 5, m) for m in _M])
    good = np.concatenate([off <= _ALIGNED, np.ones_like(off[:1], dtype=bool)])
    return good.argmax(0) + _M[0]


def _claims_fig10(results: Results) -> list[Claim]:
    claims = []
    for n, T in _CURVES:
        m = min(n, _M[-1])
        words = f"n = {n}, T = {T}: a quarter of the misalignment at m = 1 less that at m = {m}"
        claims.append(more_than(words, 0.25 * _off(results, n, T, 1), _off(results, n, T, m)))
    ends = sorted((_off(results, 5, T, 5) for T in (5, 10, 15)), key=lambda own: float(own.mean()))
    words = "n = 5, m = 5: misalignment, largest mean less smallest over T = 5, 10, 15"
    claims.append(at_most(words, difference_of(ends[-1], ends[0]), 0.05))
    for few, many in ((5, 10), (10, 15)):
        words = f"T = 5: least m with misalignment ≤ {_ALIGNED:g}, for n = {many} less n = {few}"
        claims.append(more_than(words, _needed(results, many), _needed(results, few)))
    return claims


def _widths(results: Results) -> list[Measurement]:
    return [
        Measurement(f"T = 5, n = {n}: least m with misalignment ≤ {_ALIGNED:g}, mean",
                    float(_needed(results, n).mean()))
        for n in (5, 10, 15)
    ]  # fmt: skip


def _pictures_fig10(results: Results) -> list[Picture]:
    panels = []
    for title, curves in _GROUPS:
        series = [
            mean_curve(name, _M, [results[_key(n, T, f"m{m}")]["off"] for m in _M], log=True,
                       marker="o")
            for n, T, name in curves
        ]  # fmt: skip
        panels.append(Panel(title=title,
                            axes=("width of K and Q (m)", "distance (1 − correlation)"),
                            series=series, logarithmic=(False, True)))  # fmt: skip
    caption = (
        "d = 20, K and Q of width m, 2000 normalised steps with the published penalty: "
        "misalignment of K Qᵀ with the nuclear solution of the selected tokens, means with 95 % "
        "bands. Paper: it falls as m reaches n, whatever T is; a larger n needs a larger m."
    )
    return [Picture(name="fig10", caption=caption, panels=panels[::-1], columns=2)]


EXPERIMENTS = (
    Experiment("A:fig4", "Rank of both solutions", 100,
               tuple(Point(_key(n, T, f"d{d}"), {"n": n, "T": T, "d": d})
                     for n, T in _CURVES for d in _D4),
               _run_fig4, _claims_fig4, _pictures_fig4, measurements=_missing),
    Experiment("A:fig10", "How wide K and Q must be", 100,
               tuple(Point(_key(n, T, f"m{m}"), {"n": n, "T": T, "m": m})
                     for n, T in _CURVES for m in _M),
               _run_fig10, _claims_fig10, _pictures_fig10, measurements=_widths),
)  # fmt: skip
