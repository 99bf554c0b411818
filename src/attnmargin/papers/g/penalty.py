"""G:penalty: rank and nuclear norm of K Qᵀ on paper A's data, by the strength of the decay."""

import math

import numpy as np
from numpy.typing import NDArray

from attnmargin.data.random import random_data
from attnmargin.margin.builders import token_problem
from attnmargin.papers.engine.claims import Claim, at_least, at_most, largest_of, mean_of, more_than
from attnmargin.papers.engine.experiment import (
    Arrays,
    Experiment,
    Measurement,
    Point,
    Results,
    Task,
)
from attnmargin.papers.engine.series import mean_curve
from attnmargin.plot.panels import Panel, Picture
from attnmargin.solvers.entry import solve
from attnmargin.training import train
from attnmargin.training.measures import correlation, imbalance, nuclear_excess, rank_profile
from attnmargin.training.methods import Decaying

_SHAPE = (6, 8, 10)
PENALTIES = (0.0, 1e-60, 1e-30, 2.0**-52, 1e-8, 1e-4, 1e-2)
_STEPS, _RATE = 20_000, 0.5
_RANK = 1e-3  # singular values above this share of the largest count
# The slope of the nuclear norm is taken between these two, where the loss is exponential.
_SMALL, _LARGE = 1e-60, 1e-30


def _key(penalty: float) -> str:
    return f"penalty{penalty:.1e}"


def _run(task: Task) -> Arrays:
    penalty = task.settings["penalty"]
    data = random_data(*_SHAPE, trials=task.trials, name="G:penalty", seed=task.seed)
    run = train(data, "KQ", steps=_STEPS, record=_STEPS, lr=Decaying(_RATE, 0.5), penalty=penalty,
                seed=task.seed, progress=task.progress)  # fmt: skip
    K, Q = run.last
    W = run.W[-1]
    solution = solve(token_problem(data.X, data.z, run.selection[-1]), "nuc")
    profile = rank_profile(W)
    nuclear = solution.norm.value(W)
    return {
        "nuclear": nuclear.numpy(),
        # With the most decay, some runs end in zero, where ratios mean nothing.
        "excess": (nuclear_excess(K, Q) / (1.0 + nuclear)).numpy(),
        "imbalance": (imbalance(K, Q) / (1.0 + nuclear)).numpy(),
        "rank": (profile > _RANK).sum(-1).numpy(),
        "beyond": profile[:, _SHAPE[0]].numpy(),  # the first that n queries cannot have
        "correlation": correlation(W, solution.W).numpy(),
        "value": solution.value.numpy(),
        "selection": run.selection[-1].numpy(),
    }


def slopes(results: Results) -> NDArray[np.float64]:
    """Compute how fast the nuclear norm grows with log(1/λ), over the norm of the nuclear SVM.

    Trials that select other tokens with the two penalties are left out.
    """
    small, large = results[_key(_SMALL)], results[_key(_LARGE)]
    same = (small["selection"] == large["selection"]).all(-1)
    rise = (small["nuclear"] - large["nuclear"]) / math.log(_LARGE / _SMALL)
    return np.asarray((rise / small["value"])[same])


def _claims(results: Results) -> list[Claim]:
    own = {penalty: results[_key(penalty)] for penalty in PENALTIES}
    plain, strong, weak = own[0.0], own[PENALTIES[-1]], own[_SMALL]
    ranks = [own[penalty]["rank"] for penalty in PENALTIES[1:]]
    return [
        at_most("with decay: (½(‖K‖² + ‖Q‖²) − ‖K Qᵀ‖_*)/(1 + ‖K Qᵀ‖_*), largest",
                largest_of([own[penalty]["excess"] for penalty in PENALTIES[1:]]), 0.01),
        more_than("‖KᵀK − QᵀQ‖/(1 + ‖K Qᵀ‖_*) without decay, less that with λ = 1e-60",
                  plain["imbalance"], weak["imbalance"]),
        at_most("with decay: rank of K Qᵀ above 1e-3, largest; n = 6",
                largest_of(np.concatenate(ranks)), 6.0),
        at_most("nuclear norm per log(1/λ), over ‖W_mm‖_*: mean distance to one",
                mean_of(np.abs(slopes(results) - 1.0)), 0.05),
        at_least("λ = 1e-60: correlation with the nuclear SVM, mean",
                 mean_of(weak["correlation"]), 0.999),
        more_than("that correlation, less that without decay",
                  weak["correlation"], plain["correlation"]),
        more_than("rank with λ = 1e-60 less that with λ = 0.01", weak["rank"], strong["rank"]),
    ]  # fmt: skip


def _measurements(results: Results) -> list[Measurement]:
    words = {
        "nuclear": "‖K Qᵀ‖_*",
        "rank": "rank above 1e-3",
        "imbalance": "‖KᵀK − QᵀQ‖/(1 + ‖K Qᵀ‖_*)",
        "beyond": "seventh singular value, relative",
        "correlation": "correlation with the nuclear SVM",
    }
    return [
        Measurement(f"λ = {penalty:.2g}: {text}, mean", float(results[_key(penalty)][name].mean()))
        for name, text in words.items()
        for penalty in PENALTIES
    ]


def _pictures(results: Results) -> list[Picture]:
    decays = PENALTIES[1:]
    x = np.array([math.log10(1.0 / penalty) for penalty in decays])

    def curve(name: str) -> list[NDArray[np.float64]]:
        return [results[_key(penalty)][name] for penalty in decays]

    value = [results[_key(penalty)]["value"] * math.log(1.0 / penalty) for penalty in decays]
    axis = "digits of the decay (log₁₀ 1/λ)"
    panels = [
        Panel(title="the nuclear norm grows with log(1/λ)", axes=(axis, "nuclear norm ‖K Qᵀ‖_*"),
              series=[mean_curve("trained", x, curve("nuclear"), marker="o"),
                      mean_curve("‖W_mm‖_* log(1/λ)", x, value, style=1)]),
        Panel(title="more decay, lower rank", axes=(axis, "rank of K Qᵀ"),
              series=[mean_curve("singular values above 1e-3", x, curve("rank"), marker="o")]),
        Panel(title="less decay, closer to the nuclear SVM", axes=(axis, "correlation"),
              series=[mean_curve("with the nuclear SVM", x, curve("correlation"),
                                 marker="o")]),
    ]  # fmt: skip
    caption = (
        f"K and Q trained on random data of paper A, n, T, d = 6, 8, 10, {_STEPS:,} normalised "
        "steps with the penalty λ(‖K‖² + ‖Q‖²), λ from 1e-60 to 1e-2. Each factor of e less decay "
        "lengthens K Qᵀ by one nuclear max-margin solution."
    )
    return [Picture(name="penalty", caption=caption, panels=panels, columns=3)]


EXPERIMENTS = (
    Experiment("G:penalty", "Rank and nuclear norm of K Qᵀ by the strength of the decay", 50,
               tuple(Point(_key(penalty), {"penalty": penalty}) for penalty in PENALTIES),
               _run, _claims, _pictures, measurements=_measurements),
)  # fmt: skip
