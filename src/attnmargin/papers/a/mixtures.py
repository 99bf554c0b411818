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
from attnmargin.papers.engine.claims import (
    Claim,
    Measured,
    at_least,
    at_most,
    largest_of,
    least_of,
    mean_of,
    more_than,
    number_of,
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
_TAUS, _MASKED9, _T, _STEPS = (3, 5, 7, 9), 1e-8, 10, 2000


def _orthonormal(trials: int, *names: object, seed: int) -> AttentionData:
    """Draw one sequence of ten orthonormal tokens, a query and a head on the sphere; label 1."""
    generator = generator_of(*names, seed=seed)
    G = torch.randn(trials, _T, _T, generator=generator, dtype=torch.float64)
    X = torch.linalg.qr(G).Q.unsqueeze(1)
    z, v = normal((trials, 1, _T), generator), normal((trials, _T), generator)
    return AttentionData(X, z, torch.ones(trials, 1, dtype=torch.float64), v)


def settled_inside(data: AttentionData, best: Tensor, W: Tensor) -> tuple[Tensor, Tensor]:
    """Give W the finite part of a composition; return it with the matrices that hold this part.

    The matrices ``(x_t − x̄) zᵀ`` of the selected tokens, n = 1, span all differences between their
    logits; those of other tokens are zero.
    """
    share = (best[:, 0] > 0).to(W).unsqueeze(-1)
    centre = (share * data.X[:, 0]).sum(1, keepdim=True) / share.sum(1, keepdim=True)
    left = share * (data.X[:, 0] - centre)
    inside = torch.einsum("btd,be->btde", left, data.z[:, 0])
    basis = torch.linalg.svd(left, full_matrices=False)
    rows = basis.Vh * (1e-10 * basis.S[:, :1] < basis.S).unsqueeze(-1)
    z = data.z[:, 0] / torch.linalg.vector_norm(data.z[:, 0], dim=-1, keepdim=True)
    own = rows.mT @ (rows @ (W @ z.unsqueeze(-1))) @ z.unsqueeze(-2)
    return W - own + solve(finite_problem(data.X, data.z, best)).W, inside


def _continued(data: AttentionData, head: QuadraticHead, W: Tensor, best: Tensor) -> Tensor:
    """Continue descent outside of the finite part, which is set to that of the best mixture.

    Steps of fixed length circle around the finite part, and their gradient hides the one that
    masks tokens. Normalising the latter by itself makes the weights grow with every step.
    """
    W, inside = settled_inside(data, best, W)
    some = (best <= 0).any(-1)[:, 0].nonzero().flatten()  # the others have nothing to mask
    if len(some):
        run = train(data[some], loss="linear", head=head.member(some), steps=_STEPS, record=_STEPS,
                    init=W[some], fixed=inside[some])  # fmt: skip
        W[some] = run.W[-1]
    return W


def _run_fig9(task: Task) -> Arrays:
    """Train the same sequences with every λ, all at once; arrays are ``(λ, trials)``."""
    weights = task.settings["lambdas"]
    one = _orthonormal(task.trials, "A:fig9", seed=task.seed)
    data = one[torch.arange(task.trials).repeat(len(weights))]
    assert data.v is not None
    head = QuadraticHead(data.v, np.repeat(weights, task.trials))
    run = train(data, loss="linear", head=head, steps=_STEPS, record=_STEPS, progress=task.progress)
    best = optimal_composition(data, head)
    plain = probabilities(data, run.W[-1])
    W = _continued(data, head, run.W[-1], best)
    s = probabilities(data, W)
    chosen, clear = clear_cut(s, _MASKED9)
    measured = compare(data, W.unsqueeze(0), s, chosen)
    # With all tokens selected nothing is masked: any W would fit its own finite part.
    use = clear & ~chosen.all(-1)[:, 0]
    arrays = {
        "plain": (plain > SELECTED).sum((-2, -1)),
        "plain_clear": clear_cut(plain, _MASKED9)[1],
        "apart": 0.5 * (plain - best).abs().sum((-2, -1)),
        "selected": chosen.sum((-2, -1)),
        "exact": (best > 0).sum((-2, -1)),
        "clear": clear,
        **{key: measured[key][0].where(use, torch.nan) for key in ("eq", "gen")},
    }
    return {name: x.reshape(len(weights), -1).numpy() for name, x in arrays.items()}


def _rows(results: Results, key: str) -> NDArray[Any]:
    """Return an array of figure 9, ``(λ, trials)``."""
    rows: NDArray[Any] = results["all"][key]
    return rows


def _known(values: NDArray[Any]) -> NDArray[Any]:
    return values[np.isfinite(values)]


def _per_trial(values: NDArray[Any], where: NDArray[Any]) -> NDArray[Any]:
    """Average each trial over the λ at which it is known; NaN at none."""
    use = where & np.isfinite(values)
    total = np.where(use, values, 0.0).sum(0)
    return np.where(use.any(0), total / np.maximum(use.sum(0), 1), np.nan)


def _less_fit(results: Results) -> list[Claim]:
    """Claim that more selected tokens mean less predictivity, trial by trial.

    With one masked token a single direction is left besides the finite part: SVMeq is exact.
    """
    count, claims = _rows(results, "selected"), []
    groups = (
        ("one", "2 to 8", count == 1, (count > 1) & (count < _T - 1)),
        ("2 to 5", "6 to 8", (count > 1) & (count < 6), (count > 5) & (count < _T - 1)),
    )
    for key, name in (("eq", "SVMeq"), ("gen", "Gen-SVM")):
        for few, many, first, second in groups:
            pair = [_per_trial(_rows(results, key), use) for use in (first, second)]
            both = np.isfinite(pair).all(0)
            words = f"correlation with {name}: {few} selected less {many} selected"
            claims.append(more_than(words, pair[0][both], pair[1][both]))
    return claims


def _least_mean(parts: list[NDArray[Any]]) -> Measured:
    """Measure the mean of each part; return the least."""
    found = [mean_of(part) for part in parts if part.size]
    return min(found, key=lambda own: own.value or 0.0, default=mean_of([]))


def _claims_fig9(results: Results) -> list[Claim]:
    plain, sure = _rows(results, "plain"), _rows(results, "plain_clear")
    beyond = np.array(_LAMBDAS) > 2.0
    rises = list(np.diff(plain, axis=0).astype(float))
    fits = {key: [_known(row) for row in _rows(results, key)] for key in ("eq", "gen")}
    shares = [share_of(row) for row in _rows(results, "clear")]
    return [
        at_least("tokens selected at one λ less at the λ before, mean, least", _least_mean(rises),
                 0.0),
        at_most("λ = 0: tokens selected, most", largest_of(plain[0]), 1.0),
        at_least("λ > 2: tokens selected in the trials that the filter keeps, fewest",
                 least_of(plain[beyond][sure[beyond]]), _T),
        at_most("distance of the trained mixture from the best one (total variation), mean over "
                "all trials", mean_of(_rows(results, "apart").mean(0)), 0.05),
        at_least("continued: share of trials that the filter keeps, least over λ",
                 min(shares, key=lambda own: own.value or 0.0), 0.9),
        *(at_least(f"continued: correlation with {name} where a token is masked, mean, least over "
                   "λ", _least_mean(fits[key]), 0.95)
          for key, name in (("eq", "SVMeq"), ("gen", "Gen-SVM"))),
        *_less_fit(results),
    ]  # fmt: skip


def _counts_fig9(results: Results) -> list[Measurement]:
    """Count the trials that the filter keeps, before and after the continuation."""
    found = []
    for k, weight in enumerate(_LAMBDAS):
        for key, words in (("plain_clear", f"after {_STEPS} steps"), ("clear", "when continued")):
            count = float(_rows(results, key)[k].sum())
            found.append(Measurement(f"λ = {weight:g}: trials kept {words}", count))
    return found


def _counted(results: Results) -> list[Series]:
    """Build the curves of selected tokens: all trials, those kept, and the best mixture."""
    x, series = np.array(_LAMBDAS), []
    series.append(mean_curve("training, all trials", x, _rows(results, "plain"), marker="o"))
    groups = (
        ("training, kept trials", "plain", "plain_clear"),
        ("continued, kept trials", "selected", "clear"),
    )
    for k, (name, key, kept) in enumerate(groups):
        rows, use = _rows(results, key), _rows(results, kept)
        have = use.any(1)
        values = [row[own] for row, own in zip(rows[have], use[have], strict=True)]
        series.append(mean_curve(name, x[have], values, style=k + 1, marker="o"))
    exact = _rows(results, "exact").mean(1)
    series.append({"kind": "line", "name": "best mixture, computed", "x": x, "y": exact,
                   "style": 3})  # fmt: skip
    return series


def _distance(results: Results, key: str) -> NDArray[Any]:
    """Return ``1 − correlation``, at least the rounding of a drawing."""
    return np.maximum(1.0 - _rows(results, key), 1e-7)


def _fit_curve(results: Results, key: str, name: str, k: int) -> Series:
    parts = [_known(_distance(results, key)[k]) for k in range(len(_LAMBDAS))]
    x = [w for w, part in zip(_LAMBDAS, parts, strict=True) if part.size]
    return mean_curve(name, x, [p for p in parts if p.size], log=True, style=k, marker="o")


_FITS = (("eq", "SVMeq"), ("gen", "Gen-SVM"))


def _pictures_fig9(results: Results) -> list[Picture]:
    panels = [
        Panel(title="(a) selected tokens", axes=("head penalty (λ)", "number of tokens, mean"),
              series=_counted(results)),
        Panel(title="(b) fit", axes=("head penalty (λ)", "distance (1 − correlation)"),
              series=[_fit_curve(results, key, name, k) for k, (key, name) in enumerate(_FITS)],
              logarithmic=(False, True)),
        Panel(title="(c) fit by number of tokens",
              axes=("selected tokens", "distance (1 − correlation)"),
              series=_by_count(results), logarithmic=(False, True)),
    ]  # fmt: skip
    caption = (
        "h(x) = vᵀx − λ‖x‖², a sequence of ten orthonormal tokens, ℓ(u) = −u. Kept: every token "
        "above 1e-3 or below 1e-8. After 2000 steps few are; continued: 2000 more steps with the "
        "finite part set to that of the best mixture; (b), (c): these, where a token is masked "
        "(if one is, SVMeq is exact). Paper: more tokens as λ grows, all for λ > 2, correlation "
        "above 0.95, and less with more tokens."
    )
    return [Picture(name="fig9", caption=caption, panels=panels)]


def _by_count(results: Results) -> list[Series]:
    counts = _rows(results, "selected").ravel()
    series: list[Series] = []
    for k, (key, name) in enumerate(_FITS):
        off = _distance(results, key).ravel()
        present = np.unique(counts[np.isfinite(off)])
        values = [_known(off[counts == c]) for c in present]
        series.append(mean_curve(name, present, values, log=True, style=k, marker="o"))
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
    run = train(trials, loss="linear", head=head, steps=_STEPS, record=_STEPS)
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
        words = f"τ = {tau}: trials with fewer than 2 or more than {tau} tokens selected"
        claims.append(at_most(words, number_of((count < 2) | (count > tau)), 0.0))
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
               (Point("all", {"lambdas": list(_LAMBDAS), "continued": _STEPS}),),
               _run_fig9, _claims_fig9, _pictures_fig9, measurements=_counts_fig9),
    Experiment("A:fig12", "Lemma 6: between 2 and τ tokens", 100,
               tuple(Point(f"tau{t}", {"tau": t}) for t in _TAUS), _run_fig12, _claims_fig12,
               _pictures_fig12, unit="kept trials"),
)  # fmt: skip
