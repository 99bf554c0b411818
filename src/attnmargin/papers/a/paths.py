"""Paper A, Sections 3, 5.3 and 7: regularisation paths, and sequence and causal outputs."""

import numpy as np
import torch
from torch import Tensor

from attnmargin.attention.score import optimal_tokens
from attnmargin.base.seeds import seed_of
from attnmargin.data.attention_data import AttentionData
from attnmargin.data.random import normal, random_data
from attnmargin.margin.builders import token_problem
from attnmargin.margin.implied import implied_norm
from attnmargin.papers.engine.claims import Claim, at_least, at_most
from attnmargin.papers.engine.experiment import Arrays, Experiment, Point, Results, Task
from attnmargin.papers.engine.series import mean_curve
from attnmargin.plot.panels import Panel, Picture, Series
from attnmargin.selections.cones import score_barrier
from attnmargin.selections.local_optimality import locality
from attnmargin.solvers.entry import solve
from attnmargin.training import regularization_path, train
from attnmargin.training.measures import correlation, misalignment

RADII = (30.0, 100.0, 300.0, 1000.0)
_CONE = 1e-3  # ε of Definition 3

# --- regularisation paths -------------------------------------------------------------------


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
        falls = float((np.diff(off, axis=0) < 0).all(0).mean())
        claims.append(at_least(f"{name}: share of {off.shape[1]} paths whose gap always falls",
                               falls, 1.0))  # fmt: skip
        words = f"{name}: misalignment at R = {RADII[-1]:g}, worst"
        claims.append(at_most(words, float(off[-1].max()), 1e-3))
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


# --- Section 7 ------------------------------------------------------------------------------

_N, _K, _D = 3, 4, 16


def _mask(kind: str, generator: torch.Generator, trials: int) -> Tensor | None:
    """Mark the tokens that each query sees, ``(trials, n, K, T)``."""
    if kind == "sequence":
        return None
    if kind == "causal":
        lower = torch.ones(_K, _K, dtype=torch.bool).tril()
        return lower.expand(trials, _N, _K, _K)
    mask = torch.rand(trials, _N, _K, _K, generator=generator) < 0.7
    mask[..., 0] = True
    return mask


def _run_sec7(task: Task) -> Arrays:
    kind = task.settings["kind"]
    generator = torch.Generator().manual_seed(seed_of("A:sec7", kind, base=task.seed))
    base = random_data(_N, _K, _D, trials=task.trials, name=f"A:sec7 {kind}", seed=task.seed)
    shape = (task.trials, _N, _K)
    z = normal((*shape, _D), generator)
    y = 2.0 * torch.randint(0, 2, shape, generator=generator).to(torch.float64) - 1.0
    mask = _mask(kind, generator, task.trials)
    data = AttentionData(base.X, z, y, base.v, mask)
    run = train(data, steps=20000, record=200, progress=task.progress)
    solution = solve(token_problem(data.X, data.z, run.selection[-1], mask))
    best = solve(token_problem(data.X, data.z, optimal_tokens(data), mask))
    path = regularization_path(data, [100.0, 1000.0])
    solved = solution.optimal.numpy()
    return {
        "steps": run.steps.numpy(),
        "descent": correlation(run.W, solution.W.nan_to_num(nan=0.0)).numpy()[:, solved],
        "radius": path.steps.numpy(),
        "path": correlation(path.W, best.W).numpy(),
        "unsolved": np.array(int((~solved).sum())),
    }


_KINDS = ("sequence", "causal", "masked")


def _claims_sec7(results: Results) -> list[Claim]:
    claims = []
    for kind in _KINDS:
        descent, path = results[kind]["descent"][-1], results[kind]["path"][-1]
        claims.append(at_least(f"{kind}: descent meets the SVM of what it selects, mean",
                               float(descent.mean()), 0.99))  # fmt: skip
        claims.append(at_least(f"{kind}: the regularisation path meets the SVM, mean",
                               float(path.mean()), 0.99))  # fmt: skip
    return claims


def _pictures_sec7(results: Results) -> list[Picture]:
    descent, path = [], []
    for i, kind in enumerate(_KINDS):
        own = results[kind]
        off = 1.0 - own["descent"][1:]
        descent.append(mean_curve(kind, own["steps"][1:], off, log=True, style=i))
        path.append(mean_curve(kind, own["radius"], 1.0 - own["path"], log=True, style=i))
    caption = (
        f"n = {_N} sequences of {_K} tokens with {_K} outputs each, d = {_D}: all tokens visible, "
        "the first k, or a random mask. Means with 95 % bands. Section 7 extends the theory to "
        "these forms; there is no figure in the paper."
    )
    panels = [
        Panel(title="descent", axes=("training step", "distance (1 − correlation)"), series=descent,
              logarithmic=(True, True)),
        Panel(title="regularisation path",
              axes=("size of the weights (norm R)", "distance (1 − correlation)"), series=path,
              logarithmic=(True, True)),
    ]  # fmt: skip
    return [Picture(name="sec7", caption=caption, panels=panels, columns=2)]


EXPERIMENTS = (
    Experiment("A:path", "Regularisation paths", 20,
               tuple(Point(key, {"kind": key}) for key in _PATHS), _run_path, _claims_path,
               _pictures_path),
    Experiment("A:sec7", "Sequence, causal and masked outputs", 20,
               tuple(Point(key, {"kind": key}) for key in _KINDS), _run_sec7, _claims_sec7,
               _pictures_sec7),
)  # fmt: skip
