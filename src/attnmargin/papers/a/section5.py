"""Paper A, Section 5.2: the conjecture on wide and on many small instances, from several starts."""

from itertools import product
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attnmargin.attention.score import optimal_tokens, scores
from attnmargin.base.intervals import share_interval
from attnmargin.base.seeds import seed_of
from attnmargin.data.attention_data import AttentionData
from attnmargin.data.random import random_data
from attnmargin.margin.builders import token_problem
from attnmargin.papers.a.conjecture import WIDTHS, conjecture_experiment
from attnmargin.papers.engine.claims import Claim, Measured, at_least, at_most, number_of
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
from attnmargin.training.measures import correlation

_SMALL = ((2, 3, 4), (2, 3, 8), (3, 3, 8), (3, 3, 16))  # n, T, d
_MANY = 20  # small instances for each wide one
_STARTS = ("zero", "random", "adversarial")
_SIZE, _MARGIN = 3.0, 10.0  # entries of random starts; margin of the worst tokens at adversarial
# Steps per round; after each, the trials that are aligned with the SVM of the best tokens stop.
_ROUNDS = (2000, 8000, 30000, 120000)
_ALIGNED = 0.99


def _run(task: Task) -> Arrays:
    if "n" in task.settings:
        return _run_small(task)
    record = conjecture_experiment(task.trials, (task.settings["d"],), seed=task.seed)
    (row,) = record["rows"]
    words = ("trials", "B.1", "B.1 by average margin", "D", "both", "selected", "all selected")
    least = row["least correlation"]
    arrays = {word: np.array(row[word]) for word in words}
    return {**arrays, "least correlation": np.array(np.nan if least is None else least)}


def conditions(data: AttentionData) -> tuple[Tensor, Tensor]:
    """Decide B.1 and D for a batch ``(B,)`` by solving all selections of all instances at once.

    Example:
        >>> import attnmargin as am
        >>> from attnmargin.papers.a.section5 import conditions
        >>> b1, d = conditions(am.random_data(2, 3, 16, trials=5, name="wide"))
        >>> bool((b1 & d).any())
        True
    """
    B, n, T, _ = data.X.shape
    chosen = torch.tensor(list(product(range(T), repeat=n)))  # (S, n)
    others = torch.tensor([[t for t in range(T) if t != a] for a in range(T)])[chosen]
    X, z = (x.repeat_interleave(len(chosen), 0) for x in (data.X, data.z))
    solution = solve(token_problem(X, z, chosen.repeat(B, 1)))
    support = solution.support.reshape(B, len(chosen), n, T - 1)
    feasible = solution.optimal.reshape(B, len(chosen))
    best = optimal_tokens(data)
    is_best = (chosen == best.unsqueeze(1)).all(-1)
    helps = (support & (others == best[:, None, :, None])).flatten(2).any(-1)
    b1 = (support.flatten(2).all(-1) & feasible & is_best).any(-1)
    return b1, (helps | ~feasible | is_best).all(-1)


def _start(kind: str, data: AttentionData, task: Task) -> Tensor:
    """Return zero, Gaussian entries, or the SVM solution of the tokens of least score."""
    shape = (*data.batch_shape, data.d, data.d)
    if kind == "adversarial":
        worst = scores(data).argmin(-1)
        return _MARGIN * solve(token_problem(data.X, data.z, worst)).W.nan_to_num(nan=0.0)
    name = seed_of("A:conjecture start", *data.X.shape, base=task.seed)
    drawn = torch.randn(shape, generator=torch.Generator().manual_seed(name), dtype=torch.float64)
    return _SIZE * drawn if kind == "random" else torch.zeros(shape, dtype=torch.float64)


def _ends(data: AttentionData, W: Tensor) -> tuple[NDArray[Any], NDArray[Any]]:
    """Train until aligned with the SVM of the best tokens, or the rounds end.

    Returns:
        Whether the best tokens are selected, and the correlation with their SVM, ``(B,)`` each.
    """
    best = optimal_tokens(data)
    goal = solve(token_problem(data.X, data.z, best)).W.nan_to_num(nan=0.0)
    selected = torch.zeros(len(best), dtype=torch.bool)
    fit = torch.zeros(len(best), dtype=torch.float64)
    active = torch.arange(len(best))
    for steps in _ROUNDS:
        run = train(data[active], steps=steps, record=steps, init=W)
        selected[active] = (run.selection[-1] == best[active]).all(-1)
        fit[active] = correlation(run.W[-1], goal[active])
        going = ~(selected & (fit >= _ALIGNED))[active]
        active, W = active[going], run.W[-1][going]
        if not len(active):
            break
    return selected.numpy(), fit.numpy()


def _run_small(task: Task) -> Arrays:
    """Train all instances with B.1 from three starts; those without D are the control."""
    n, T, d = (task.settings[key] for key in ("n", "T", "d"))
    name = f"A:conjecture n={n} T={T} d={d}"
    data = random_data(n, T, d, trials=_MANY * task.trials, name=name, seed=task.seed)
    b1, other = conditions(data)
    part = data[b1.nonzero().flatten()]
    arrays = {"trials": np.array(len(b1)), "d": other[b1].numpy()}
    for k, kind in enumerate(_STARTS):
        selected, fit = _ends(part, _start(kind, part, task))
        arrays |= {f"selected {kind}": selected, f"fit {kind}": fit}
        task.progress(k + 1, len(_STARTS))
    return arrays


def _key(n: int, T: int, d: int) -> str:
    return f"n{n}-T{T}-d{d}"


def _small(results: Results, word: str, both: bool = True) -> NDArray[Any]:
    """Join an array of the small instances with B.1, those with D or those without."""
    parts = [results[_key(*sizes)] for sizes in _SMALL]
    return np.concatenate([own[word][own["d"] == both] for own in parts])


def _claims(results: Results) -> list[Claim]:
    wide = [results[f"d{d}"] for d in WIDTHS]
    both, hit = (sum(int(own[word]) for own in wide) for word in ("both", "selected"))
    least = [float(own["least correlation"]) for own in wide if int(own["both"])]
    claims = [
        at_most("n = T = 5, instances with B.1 and D: training from zero selects other tokens",
                Measured(float(both - hit), count=both), 0.0),
        at_least("n = T = 5: instances with B.1 and D, so that the claim is not empty",
                 Measured(float(both), count=sum(int(own["trials"]) for own in wide)), 20.0),
        at_least("n = T = 5: their correlation with the SVM at 4000 steps, least",
                 Measured(min(least, default=None), count=both), _ALIGNED),
    ]  # fmt: skip
    for kind in _STARTS:
        words = f"small instances with B.1 and D, {kind} start"
        missed = ~_small(results, f"selected {kind}")
        claims.append(at_most(f"{words}: training selects other tokens", number_of(missed), 0.0))
        far = ~(_small(results, f"fit {kind}") >= _ALIGNED)
        words += f": correlation with the SVM below {_ALIGNED} after {sum(_ROUNDS):,} steps"
        claims.append(at_most(words, number_of(far), 0.0))
    return claims


def _control(results: Results) -> list[Measurement]:
    """Count how often training ends elsewhere if B.1 holds and D does not."""
    total = len(_small(results, "d", both=False))
    found = [Measurement("small instances with B.1 and without D", float(total))]
    for kind in _STARTS:
        missed = float((~_small(results, f"selected {kind}", both=False)).sum())
        found.append(Measurement(f"of these, other tokens selected from the {kind} start", missed))
    return found


def _shares(results: Results) -> Panel:
    rows = [results[f"d{d}"] for d in WIDTHS]
    series: list[Series] = []
    words = ("B.1", "D", "both", "all selected")
    names = ("B.1, exactly", "D, by search", "both", "training selects the optimal tokens")
    for word, name in zip(words, names, strict=True):
        counts = np.array([int(row[word]) for row in rows])
        low, high = share_interval(counts, int(rows[0]["trials"]))
        series.append({"kind": "line", "name": name, "x": np.array(WIDTHS), "marker": "o",
                       "y": counts / int(rows[0]["trials"]), "low": low, "high": high})  # fmt: skip
    return Panel(title="n = T = 5, from zero", axes=("token width (d)", "share of instances"),
                 series=series)  # fmt: skip


def _by_start(results: Results) -> Panel:
    series: list[Series] = []
    for both, name in ((True, "B.1 and D"), (False, "B.1 without D")):
        flags = [_small(results, f"selected {kind}", both) for kind in _STARTS]
        if len(flags[0]):
            counts = np.array([own.sum() for own in flags])
            low, high = share_interval(counts, len(flags[0]))
            series.append({"kind": "bar", "name": name, "x": np.arange(len(_STARTS)),
                           "y": 100.0 * counts / len(flags[0]), "low": 100.0 * low,
                           "high": 100.0 * high})  # fmt: skip
    return Panel(title="small instances, from three starts",
                 axes=("start of training", "optimal tokens selected, %"), series=series,
                 ticks=list(_STARTS))  # fmt: skip


def _pictures(results: Results) -> list[Picture]:
    caption = (
        "Left: n = T = 5; Assumption D is decided by solving all 3125 selections of every "
        "instance. Right: thousands of small instances (n = 2, 3, T = 3, d = 4, 8, 16) from zero, "
        "from random weights, and from the SVM solution of the worst tokens; bars with 95 % "
        "intervals. Paper, Section 5.2: where B.1 and D hold, training selects the optimal tokens."
    )
    panels = [_shares(results), _by_start(results)]
    return [Picture(name="conjecture", caption=caption, panels=panels, columns=2)]


EXPERIMENTS = (
    Experiment("A:conjecture", "Section 5.2: B.1 and D, and what training selects", 50,
               (*(Point(f"d{d}", {"d": d, "direction": True}) for d in WIDTHS),
                *(Point(_key(n, T, d), {"n": n, "T": T, "d": d}) for n, T, d in _SMALL)),
               _run, _claims, _pictures, measurements=_control),
)  # fmt: skip
