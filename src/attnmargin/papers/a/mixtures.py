"""Paper A, figures 9 and 12: a quadratic head makes attention mix tokens (Section 6)."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attnmargin.attention.heads import QuadraticHead
from attnmargin.attention.softmax import probabilities
from attnmargin.base.seeds import seed_of
from attnmargin.data.attention_data import AttentionData
from attnmargin.data.random import normal
from attnmargin.margin.builders import finite_problem, token_problem
from attnmargin.papers.engine.claims import Claim, at_least, stated
from attnmargin.papers.engine.experiment import Arrays, Experiment, Point, Results, Task
from attnmargin.papers.engine.series import mean_curve
from attnmargin.plot.panels import Panel, Picture, Series
from attnmargin.selections.composition import optimal_composition
from attnmargin.solvers.entry import solve
from attnmargin.training import train
from attnmargin.training.measures import composed_correlation, correlation

SELECTED = 1e-3


def generator_of(*names: object, seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed_of(*names, base=seed))


def clear_cut(s: Tensor, masked: float) -> tuple[Tensor, Tensor]:
    """Mark the selected tokens, and the trials in which all other tokens are below ``masked``."""
    chosen = s > SELECTED
    return chosen, (chosen | (s < masked)).flatten(1).all(-1)


def compare(data: AttentionData, W: Tensor, s: Tensor, chosen: Tensor) -> dict[str, Tensor]:
    """Correlate weights ``(R, B, d, d)`` with Gen-SVM, W_fin + γ W_mm and the one-token SVM.

    The correlation is NaN if a problem has no solution.
    """
    gen = solve(token_problem(data.X, data.z, chosen, data.mask))
    fin = solve(finite_problem(data.X, data.z, s.where(chosen, 0.0), data.mask))
    one = solve(token_problem(data.X, data.z, s.argmax(-1), data.mask))

    both = composed_correlation(W, fin.W.nan_to_num(nan=0.0), gen.W.nan_to_num(nan=0.0))
    return {
        "gen": correlation(W, gen.W.nan_to_num(nan=0.0)).where(gen.optimal, torch.nan),
        "eq": both.where(gen.optimal & fin.optimal, torch.nan),
        "one": correlation(W, one.W.nan_to_num(nan=0.0)).where(one.optimal, torch.nan),
    }


_LAMBDAS = (0.0, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0)
_TAUS, _MASKED9, _T = (3, 5, 7, 9), 1e-8, 10


def _orthonormal(trials: int, *names: object, seed: int) -> AttentionData:
    """Draw one sequence of ten orthonormal tokens, a query and a head on the sphere; label 1."""
    generator = generator_of(*names, seed=seed)
    G = torch.randn(trials, _T, _T, generator=generator, dtype=torch.float64)
    X = torch.linalg.qr(G).Q.unsqueeze(1)
    z, v = normal((trials, 1, _T), generator), normal((trials, _T), generator)
    return AttentionData(X, z, torch.ones(trials, 1, dtype=torch.float64), v)


def _run_fig9(task: Task) -> Arrays:
    weight = task.settings["lambda"]
    data = _orthonormal(task.trials, "A:fig9", seed=task.seed)
    assert data.v is not None
    head = QuadraticHead(data.v, weight)
    run = train(data, loss="linear", head=head, steps=2000, record=2000, progress=task.progress)
    s = probabilities(data, run.W[-1])
    chosen, clear = clear_cut(s, _MASKED9)
    measured = compare(data, run.W[-1:], s, chosen)
    exact = (optimal_composition(data, head) > 0).sum((-2, -1))
    return {
        "selected": chosen.sum((-2, -1)).numpy(),
        "exact": exact.numpy(),
        "clear": clear.numpy(),
        # If all tokens are selected, there is nothing to separate: Gen-SVM has no direction.
        "gen": measured["gen"][0].where(~chosen.all(-1)[:, 0], torch.nan).numpy(),
        "eq": measured["eq"][0].numpy(),
    }


def _fig9(results: Results, weight: float) -> Arrays:
    return results[f"lambda{weight:g}"]


def _nanmean(values: NDArray[Any]) -> float:
    good = values[np.isfinite(values)]
    return float(good.mean()) if len(good) else float("nan")


def _claims_fig9(results: Results) -> list[Claim]:
    counts = [float(_fig9(results, w)["selected"].mean()) for w in _LAMBDAS]
    fall = max(0.0, -float(np.diff(counts).min()))
    fits = [_nanmean(_fig9(results, w)["eq"][_fig9(results, w)["clear"]]) for w in _LAMBDAS]
    seen = [fit for fit in fits if np.isfinite(fit)]
    beyond = [_fig9(results, w)["selected"].min() for w in _LAMBDAS if w > 2.0]
    best = [_fig9(results, w)["exact"].min() for w in _LAMBDAS if w > 2.0]
    return [
        stated("number of selected tokens rises with λ, largest fall", fall, "≤ 0.1", fall <= 0.1),
        stated("λ = 0: tokens selected, most", float(_fig9(results, 0.0)["selected"].max()), "1",
              int(_fig9(results, 0.0)["selected"].max()) == 1),
        stated(f"λ > 2: tokens selected, fewest (in the best mixture: {int(min(best))})",
              float(min(beyond)), f"{_T} (all)", int(min(beyond)) == _T),
        at_least(f"mean correlation with SVMeq, least over the {len(seen)} of {len(fits)} λ with "
                 "clear-cut trials", min(seen), 0.95),
    ]  # fmt: skip


def _pictures_fig9(results: Results) -> list[Picture]:
    x = np.array(_LAMBDAS)
    chosen = [_fig9(results, w)["selected"] for w in _LAMBDAS]
    exact = np.array([_fig9(results, w)["exact"].mean() for w in _LAMBDAS])
    count: list[Series] = [
        mean_curve("in training", x, chosen, marker="o"),
        {"kind": "line", "name": "best mixture, computed", "x": x, "y": exact, "style": 1},
    ]  # fmt: skip
    fits: list[Series] = []
    for k, (key, name) in enumerate((("eq", "SVMeq"), ("gen", "Gen-SVM"))):
        means = [1.0 - _nanmean(_fig9(results, w)[key][_fig9(results, w)["clear"]])
                 for w in _LAMBDAS]  # fmt: skip
        fits.append({"kind": "line", "name": name, "x": x, "y": np.array(means), "style": k,
                     "marker": "o"})  # fmt: skip
    panels = [
        Panel(title="(a) selected tokens", axes=("head penalty (λ)", "number of tokens, mean"),
              series=count),
        Panel(title="(b) fit", axes=("head penalty (λ)", "distance (1 − correlation)"), series=fits,
              logarithmic=(False, True)),
        Panel(title="(c) fit by number of tokens",
              axes=("selected tokens", "distance (1 − correlation)"),
              series=_by_count(results), logarithmic=(False, True)),
    ]  # fmt: skip
    caption = (
        "h(x) = vᵀx − λ‖x‖², a sequence of ten orthonormal tokens, ℓ(u) = −u, 2000 steps; kept in "
        "(b), (c): tokens above 1e-3 or below 1e-8. Paper: the number of tokens grows with λ, all "
        "are selected for λ > 2, and the correlation stays above 0.95."
    )
    return [Picture(name="fig9", caption=caption, panels=panels)]


def _by_count(results: Results) -> list[Series]:
    parts = [_fig9(results, w) for w in _LAMBDAS]
    counts = np.concatenate([p["selected"][p["clear"]] for p in parts])
    series: list[Series] = []
    for k, (key, name) in enumerate((("eq", "SVMeq"), ("gen", "Gen-SVM"))):
        values = np.concatenate([p[key][p["clear"]] for p in parts])
        present = np.unique(counts[np.isfinite(values)])
        means = [1.0 - _nanmean(values[counts == c]) for c in present]
        series.append({"kind": "line", "name": name, "x": present, "y": np.array(means), "style": k,
                       "marker": "o"})  # fmt: skip
    return series


def _run_fig12(task: Task) -> Arrays:
    """Draw random λ in the setting of Lemma 6, and keep those with τγ_τ/2 > λ > γ_1."""
    tau = task.settings["tau"]
    X: list[Tensor] = []
    weights: list[float] = []
    block = 0
    while len(weights) < task.trials and block < 400:
        data = _orthonormal(200, "A:fig12", tau, block, seed=task.seed)
        assert data.v is not None
        generator = generator_of("A:fig12 lambda", tau, block, seed=task.seed)
        ordered = torch.einsum("btd,bd->bt", data.X[:, 0], data.v).sort(descending=True).values
        gaps = -ordered.diff(dim=-1)
        weight = torch.rand(200, generator=generator, dtype=torch.float64)
        keep = (0.5 * tau * gaps[:, tau - 1] > weight) & (weight > gaps[:, 0])
        for i in keep.nonzero().flatten().tolist():
            X.append(torch.cat((data.X[i, 0], data.z[i], data.v[i : i + 1])))
            weights.append(float(weight[i]))
        block += 1
        task.progress(min(len(weights), task.trials), task.trials)
    chosen = torch.stack(X[: task.trials])
    lam = torch.tensor(weights[: task.trials], dtype=torch.float64)
    trials = AttentionData(
        chosen[:, None, :_T],
        chosen[:, _T : _T + 1],
        torch.ones(len(lam), 1).double(),
        chosen[:, -1],
    )
    assert trials.v is not None
    head = QuadraticHead(trials.v, lam)
    run = train(trials, loss="linear", head=head, steps=2000, record=2000)
    s = probabilities(trials, run.W[-1])
    exact = (optimal_composition(trials, head) > 0).sum((-2, -1))
    return {
        "selected": (s > SELECTED).sum((-2, -1)).numpy(),
        "exact": exact.numpy(),
        "lambda": lam.numpy(),
    }


def _claims_fig12(results: Results) -> list[Claim]:
    claims = []
    for tau in _TAUS:
        count = results[f"tau{tau}"]["selected"]
        inside = float(((count >= 2) & (count <= tau)).mean())
        words = f"τ = {tau}: share of {len(count)} trials with 2 to {tau} tokens selected"
        claims.append(at_least(words, inside, 1.0))
    return claims


def _pictures_fig12(results: Results) -> list[Picture]:
    panels = []
    for tau in _TAUS:
        arrays = results[f"tau{tau}"]
        series: list[Series] = []
        for key, name in (("selected", "in training"), ("exact", "best mixture, computed")):
            share = np.bincount(arrays[key], minlength=_T + 1)[1:] / len(arrays[key])
            series.append({"kind": "bar", "name": name, "x": np.arange(1, _T + 1),
                           "y": share})  # fmt: skip
        panels.append(Panel(title=f"τ = {tau}", axes=("selected tokens", "share of trials"),
                            series=series))  # fmt: skip
    caption = (
        "The setting of Lemma 6: ten orthonormal tokens, random λ kept when τγ_τ/2 > λ > γ_1 for "
        "the gaps γ of the ordered scores. Lemma: between 2 and τ tokens are selected."
    )
    return [Picture(name="fig12", caption=caption, panels=panels, columns=4)]


EXPERIMENTS = (
    Experiment("A:fig9", "Quadratic head: how many tokens are selected", 100,
               tuple(Point(f"lambda{w:g}", {"lambda": w}) for w in _LAMBDAS), _run_fig9,
               _claims_fig9, _pictures_fig9),
    Experiment("A:fig12", "Lemma 6: between 2 and τ tokens", 100,
               tuple(Point(f"tau{t}", {"tau": t}) for t in _TAUS), _run_fig12, _claims_fig12,
               _pictures_fig12, unit="kept trials"),
)  # fmt: skip
