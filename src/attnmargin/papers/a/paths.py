"""Paper A, Sections 3 and 5.3: regularisation paths."""

import numpy as np

from attnmargin.attention.score import optimal_tokens
from attnmargin.data.random import random_data
from attnmargin.margin.builders import token_problem
from attnmargin.margin.implied import implied_norm
from attnmargin.papers.engine.claims import Claim, at_most, largest_of, number_of
from attnmargin.papers.engine.experiment import Arrays, Experiment, Point, Results, Task
from attnmargin.papers.engine.series import mean_curve
from attnmargin.plot.panels import Panel, Picture, Series
from attnmargin.selections.cones import score_barrier
from attnmargin.selections.local_optimality import locality
from attnmargin.solvers.entry import solve
from attnmargin.training import regularization_path, train
from attnmargin.training.measures import misalignment

RADII = (30.0, 100.0, 300.0, 1000.0)
_CONE = 1e-3  # ε of Definition 3


def _run_path(task: Task) -> Arrays:
    """Measure the misalignment between the best weights of growing norm and the SVM direction."""
    kind = task.settings["kind"]
    data = random_data(6, 8, 10, trials=task.trials, name="A:path", seed=task.seed, min_gap=0.1)
    if kind == "local":
        return _local_path(task)
    norm = implied_norm(kind)
    run = regularization_path(data, list(RADII), parameter=kind)
    solution = solve(token_problem(data.X, data.z, optimal_tokens(data)), norm)
    return {"off": misalignment(run.W, solution.W).numpy(), "radius": run.steps.numpy()}


def _local_path(task: Task) -> Arrays:
    """Compute paths within the cone of Definition 3 around selections found by training."""
    data = random_data(5, 5, 4, trials=8 * task.trials, name="A:path local", seed=task.seed,
                       min_gap=0.1)  # fmt: skip
    ends = train(data, steps=4000, record=4000).selection[-1]
    found = locality(data, ends)
    # Without support tokens, the cone of a sequence can be empty (docs/errata.md, Lemma 5).
    # Theorem 9 requires an ε for which the direction lies inside the cone.
    shielded = score_barrier(data, found.solution.W.nan_to_num(nan=0.0), ends) > 10 * _CONE
    other = found.local & (ends != optimal_tokens(data)).any(-1) & shielded
    use = other.nonzero().flatten()[: task.trials]
    part, chosen = data[use], ends[use]
    solution = found.solution[use]
    run = regularization_path(part, list(RADII), selection=chosen, init=solution.W, cone=_CONE)
    return {"off": misalignment(run.W, solution.W).numpy(), "radius": run.steps.numpy()}


_PATHS = {"W": "W-RP", "KQ": "(K, Q)-RP", "local": "local RP"}


def _claims_path(results: Results) -> list[Claim]:
    claims = []
    for key, name in _PATHS.items():
        off = results[key]["off"]
        rises = ~(np.diff(off, axis=0) < 0).all(0)
        words = f"{name}: paths whose gap does not always fall"
        claims.append(at_most(words, number_of(rises), 0.0))
        words = f"{name}: misalignment at R = {RADII[-1]:g}, worst"
        claims.append(at_most(words, largest_of(off[-1]), 1e-3))
    return claims


def _pictures_path(results: Results) -> list[Picture]:
    series: list[Series] = []
    for k, (key, name) in enumerate(_PATHS.items()):
        off = results[key]["off"]
        series.append(mean_curve(name, RADII, off, log=True, style=k, marker="o"))
    caption = (
        "Best weights of norm R: misalignment with the Frobenius solution (W), the nuclear one "
        "(K, Q), and the one of a locally optimal selection, within its cone; means with 95 % "
        "bands. Theorems 2 and 9: it tends to zero."
    )
    panel = Panel(title="regularisation paths",
                  axes=("size of the weights (norm R)", "distance (1 − correlation)"),
                  series=series,
                  logarithmic=(True, True))  # fmt: skip
    return [Picture(name="path", caption=caption, panels=[panel], columns=1)]


EXPERIMENTS = (
    Experiment("A:path", "Regularisation paths", 20,
               tuple(Point(key, {"kind": key}) for key in _PATHS), _run_path, _claims_path,
               _pictures_path),
)  # fmt: skip
