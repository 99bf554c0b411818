"""Paper B, figures 4 and 5, Theorem 4 and the regularisation paths: mirror descent on W."""

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attnmargin.attention.losses import Logistic
from attnmargin.attention.score import optimal_tokens
from attnmargin.attention.softmax import probabilities
from attnmargin.base.seeds import seed_of
from attnmargin.data.attention_data import AttentionData
from attnmargin.data.random import random_data
from attnmargin.margin.builders import label_problem, token_problem
from attnmargin.margin.implied import implied_method
from attnmargin.papers.b.examples import STEPS, every_selection, example_2
from attnmargin.papers.engine.claims import (
    Claim,
    Measured,
    at_least,
    at_most,
    largest_of,
    mean_of,
    share_of,
    stated,
)
from attnmargin.papers.engine.experiment import Arrays, Experiment, Point, Results, Task
from attnmargin.papers.engine.series import mean_curve
from attnmargin.plot.panels import Panel, Picture, Series
from attnmargin.selections.local_optimality import label_margin
from attnmargin.solvers.entry import solve
from attnmargin.training import Trajectory, regularization_path, train
from attnmargin.training.measures import bregman, fit_rate
from attnmargin.training.regularization.landscape import mean_loss

_SHAPE = (6, 8, 10)
_POWERS = tuple(STEPS)
_RECORDS = 100
# Deviation of the entries of a start near the origin, as in the text of the paper.
_NEAR = 0.01


def _start(trials: int, d: int, name: str, seed: int) -> Tensor:
    """Draw entries from N(0, 1), one seed per trial, ``(trials, d, d)``."""
    drawn = []
    for trial in range(trials):
        generator = torch.Generator().manual_seed(seed_of(name, trial, base=seed))
        drawn.append(torch.randn(d, d, generator=generator, dtype=torch.float64))
    return torch.stack(drawn)


def descend(data: AttentionData, q: float, steps: int, **options: Any) -> Trajectory:
    """Run ℓq descent on W; q = 2 is gradient descent."""
    method = implied_method(q)
    return train(data, method=method, p=q, steps=steps, **options)


def divergence(W_mm: Tensor, W: Tensor, p: float) -> Tensor:
    """Compute ``D_ψ(W_mm/‖W_mm‖_p, W/‖W‖_p)`` along a trajectory, ``(R, B)``, record by record."""
    return torch.stack([bregman(W_mm, w, p) for w in W])


# --- figures 4 and 5 ------------------------------------------------------------------------


def _run_fig4(task: Task) -> Arrays:
    q = task.settings["q"]
    data = random_data(*_SHAPE, trials=task.trials, name="B:fig4", seed=task.seed)
    init = task.settings["scale"] * _start(task.trials, _SHAPE[2], "B:fig4 start", task.seed)
    run = descend(data, q, STEPS[q], lr=0.1, init=init, record=STEPS[q] // _RECORDS,
                  progress=task.progress)  # fmt: skip
    problem = token_problem(data.X, data.z, run.selection[-1])
    solutions = {p: solve(problem, p) for p in _POWERS}
    good = torch.as_tensor(np.stack([s.optimal for s in solutions.values()])).all(0)
    arrays = {"steps": run.steps.numpy(), "solved": good.numpy()}
    for p, solution in solutions.items():
        far = divergence(solution.W[good], run.W[:, good], p)
        arrays[f"far{p:g}"] = far.numpy()
    first = int(good.nonzero()[0])
    largest = solutions[q].W[first].abs().flatten().topk(2).indices.numpy()
    arrays["entries"] = run.W[:, first].flatten(1)[:, largest].numpy()
    arrays["target"] = solutions[q].W[first].flatten()[largest].numpy()
    return arrays


def _claims_fig4(results: Results) -> list[Claim]:
    claims = []
    for q in _POWERS:
        own = results[f"q{q:g}"]
        ends = {p: own[f"far{p:g}"][-1] for p in _POWERS}
        words = f"ℓ{q:g} path: mean divergence to the ℓ{q:g} solution"
        claims.append(at_most(words, mean_of(ends[q]), 0.02))
        away = results[f"q{q:g}-far"][f"far{q:g}"][-1]
        claims.append(at_most(f"{words}, from entries N(0, 1)", mean_of(away), 0.02))
        for p in _POWERS:
            if p != q:
                ratio = _ratio(ends[p] / _scale(p), ends[q] / _scale(q))
                claims.append(at_least(f"ℓ{q:g} path: how much further it is from the ℓ{p:g} one, "
                                       "in units of squared angle", ratio, 3.0))  # fmt: skip
    return claims


def _ratio(far: NDArray[Any], near: NDArray[Any]) -> Measured:
    """Measure the ratio of two means over the same trials, with its error to first order."""
    ratio = float(far.mean() / near.mean())
    return replace(mean_of((far - ratio * near) / near.mean()), value=ratio)


def _scale(p: float) -> float:
    """Return the divergence per squared distance near the solution, (p − 1)/2, as for p = 2."""
    return 0.5 * (p - 1.0)


def _band(name: str, steps: NDArray[Any], values: NDArray[Any], style: int) -> Series:
    """Build the mean curve with a band of one standard deviation, as in the paper."""
    mean, spread = values.mean(1), values.std(1)
    return {"kind": "line", "name": name, "x": steps, "y": mean,
            "low": np.maximum(mean - spread, 0.1 * mean), "high": mean + spread,
            "style": style}  # fmt: skip


def _pictures_fig4(results: Results) -> list[Picture]:
    panels = []
    for start, words in (("", "near the origin"), ("-far", "from N(0, 1)")):
        for q in _POWERS:
            own = results[f"q{q:g}{start}"]
            series = [_band(f"to the ℓ{p:g} solution", own["steps"][1:], own[f"far{p:g}"][1:], i)
                      for i, p in enumerate(_POWERS)]  # fmt: skip
            panels.append(Panel(title=f"ℓ{q:g} descent {words}",
                                axes=("training step", "distance (Bregman divergence)"),
                                series=series, logarithmic=(False, True)))  # fmt: skip
    caption = (
        "n = 6, T = 8, d = 10: directional Bregman divergence of ℓq mirror descent to the "
        "solutions of ℓp-AttSVM for the tokens that it selects; means with bands of one "
        "standard deviation. It vanishes for p = q only."
    )
    return [Picture(name="fig4", caption=caption, panels=panels, columns=3)]


def _turn(own: Arrays) -> float:
    """Compute the cosine between the late movement of two entries and their solution."""
    way = own["entries"][-1] - own["entries"][len(own["entries"]) // 2]
    target = own["target"]
    return float(way @ target / (np.linalg.norm(way) * np.linalg.norm(target)))


def _claims_fig5(results: Results) -> list[Claim]:
    return [
        at_least(f"ℓ{q:g} path: cosine of the second half with the line of its solution",
                 _turn(results[f"q{q:g}"]), 0.99)
        for q in _POWERS
    ]  # fmt: skip


def _pictures_fig5(results: Results) -> list[Picture]:
    panels = []
    for q in _POWERS:
        own = results[f"q{q:g}"]
        path, target = own["entries"], own["target"]
        line = np.outer([0.0, np.linalg.norm(path[-1]) / np.linalg.norm(target)], target)
        series: list[Series] = [
            {"kind": "line", "name": "path of W", "x": path[:, 0], "y": path[:, 1]},
            {"kind": "line", "name": f"direction of the ℓ{q:g} solution", "x": line[:, 0],
             "y": line[:, 1], "style": 1},
        ]  # fmt: skip
        panels.append(Panel(title=f"p = {q:g}", axes=("one entry of W", "another"), series=series))
    caption = "One trial of figure 4: the two largest entries of the solution, along training."
    return [Picture(name="fig5", caption=caption, panels=panels, columns=3)]


# --- Theorem 4 ------------------------------------------------------------------------------

_RATE_POWERS = (1.5, 1.75, 2.0, 3.0, 4.0)
_RATE_STEPS = 50_000


def _run_rates(task: Task) -> Arrays:
    """Run plain, unnormalised descent from zero, and compare it with the solution it selects."""
    p = task.settings["p"]
    data = random_data(*_SHAPE, trials=task.trials, name="B:rates", seed=task.seed, min_gap=0.1)
    run = descend(data, p, _RATE_STEPS, lr=1.0, normalize=False, record=_RATE_STEPS // 200,
                  progress=task.progress)  # fmt: skip
    solution = solve(token_problem(data.X, data.z, run.selection[-1]), p)
    good = torch.as_tensor(np.asarray(solution.optimal))
    far = divergence(solution.W[good], run.W[1:, good], p)
    return {"steps": run.steps[1:].numpy(), "far": far.numpy()}


def _bound(p: float, k: NDArray[Any]) -> NDArray[Any]:
    """Evaluate the rate of eq. (6), without its constant."""
    log = np.log(k)
    if p > 2.0:
        return np.log(log) / log
    power = 2.0 if p == 2.0 else 1.0
    return np.log(log) ** power / log ** (1.0 if p == 2.0 else p - 1.0)


def _claims_rates(results: Results) -> list[Claim]:
    claims = []
    for p in _RATE_POWERS:
        own = results[f"p{p:g}"]
        k, far = own["steps"].astype(float), own["far"].mean(1)
        late = k >= k[-1] / 30
        own_fit = fit_rate(np.log(k[late]), far[late])
        allowed = fit_rate(np.log(k[late]), _bound(p, k)[late])
        claims.append(
            stated(f"p = {p:g}: power of log k in the mean divergence",
                   Measured(own_fit.slope, count=own["far"].shape[1]),
                   f"≤ {allowed.slope:.3f}, that of Theorem 4", own_fit.slope <= allowed.slope)
        )  # fmt: skip
    return claims


def _pictures_rates(results: Results) -> list[Picture]:
    series: list[Series] = []
    for i, p in enumerate(_RATE_POWERS):
        own = results[f"p{p:g}"]
        series.append(mean_curve(f"p = {p:g}", own["steps"], own["far"], log=True, colour=i))
        bound = _bound(p, own["steps"].astype(float))
        scaled = bound * own["far"][-1].mean() / bound[-1]
        series.append({"kind": "line", "name": "", "x": own["steps"], "y": scaled, "style": 2,
                       "colour": i})  # fmt: skip
    panel = Panel(title="plain mirror descent",
                  axes=("training step (k)", "distance (Bregman divergence)"),
                  series=series, logarithmic=(True, True))  # fmt: skip
    caption = (
        "Theorem 4: divergence of plain ℓp descent from the solution of what it selects; "
        "means with 95 % bands. Dotted: the rate of the theorem, through the last point."
    )
    return [Picture(name="rates", caption=caption, panels=[panel], columns=1)]


# --- Theorems 1 and 5 -----------------------------------------------------------------------

_RADII = (30.0, 100.0, 300.0, 1000.0)


# Random data of joint paths: small enough to solve every selection. At this radius the attention
# that is not on the selected tokens no longer counts.
_SMALL, _FAR, _MOST = (3, 3, 4), 300.0, 20


def _run_random(task: Task) -> Arrays:
    """Compare joint paths with all selections: by label margin, and by the loss at its solution."""
    p = task.settings["p"]
    trials = min(task.trials, _MOST)
    data = random_data(*_SMALL, trials=trials, name="B:path joint", seed=task.seed)
    assert data.y is not None
    path = regularization_path(data, (_FAR,), "vW", p=p, search=False, progress=task.progress)
    assert path.v is not None
    every = every_selection(data)
    margin, loss = [], []
    for alpha in every:
        chosen = alpha.expand(trials, -1)
        W = solve(token_problem(data.X, data.z, chosen), p)
        v = solve(label_problem(data.X, data.y, chosen), p)
        there = W.feasible & v.feasible
        margin.append(v.margin.where(there, 0.0).nan_to_num(0.0))
        size = _FAR / W.value[:, None, None], _FAR * v.margin[:, None]
        own = _log_loss(data, size[0] * W.W, size[1] * v.vector)
        loss.append(own.where(there, torch.inf))
    margins, losses = torch.stack(margin, -1), torch.stack(loss, -1)
    index = (path.selection[-1].unsqueeze(-2) == every).all(-1).long().argmax(-1)
    reached = margins.gather(-1, index.unsqueeze(-1))[:, 0]
    above = _log_loss(data, path.W[-1], path.v[-1]) - losses.amin(-1)
    return {"largest": (reached >= margins.amax(-1) * (1.0 - 1e-9)).numpy(), "above": above.numpy()}


def _log_loss(data: AttentionData, W: Tensor, v: Tensor) -> Tensor:
    """Compute log of the mean logistic loss, ``(B,)``, without underflow."""
    assert data.y is not None
    mixed = (probabilities(data, W).unsqueeze(-2) @ data.X)[..., 0, :]
    return mean_loss(Logistic(), data.y * (mixed * v.unsqueeze(-2)).sum(-1))[0]


def _run_path(task: Task) -> Arrays:
    if "joint" not in task.settings:
        return _run_random(task)
    p, joint = task.settings["p"], task.settings["joint"]
    if joint:
        data = example_2()
        path = regularization_path(data, _RADII, parameter="vW", p=p, progress=task.progress)
        chosen = path.selection[-1]
        assert data.y is not None
        assert path.v is not None
        W = solve(token_problem(data.X, data.z, chosen), p).W
        v = solve(label_problem(data.X, data.y, chosen), p).W
        far = torch.stack((divergence(W, path.W, p),
                           divergence(v, path.v.unsqueeze(-1), p)), -1)  # fmt: skip
        every = every_selection(data)
        margin = label_margin(data, every, p)
        place = (every == chosen).all(-1).long().argmax()
        return {"radius": path.steps.numpy(), "far": far.numpy(), "margin": margin.numpy(),
                "chosen": place.numpy()}  # fmt: skip
    data = random_data(*_SHAPE, trials=task.trials, name="B:path", seed=task.seed, min_gap=0.1)
    path = regularization_path(data, _RADII, p=p, progress=task.progress)
    W = solve(token_problem(data.X, data.z, optimal_tokens(data)), p).W
    return {"radius": path.steps.numpy(), "far": divergence(W, path.W, p).numpy()}


_PATHS = {
    f"{'joint' if joint else 'W'}{p:g}": {"p": p, "joint": joint}
    for joint in (False, True)
    for p in _POWERS
}


def _claims_path(results: Results) -> list[Claim]:
    claims = []
    for key, settings in _PATHS.items():
        far = results[key]["far"]
        name = "ℓp-JointRP, W and v" if settings["joint"] else "ℓp-AttRP"
        words = f"{name}, p = {settings['p']:g}: divergence at R = {_RADII[-1]:g}, worst"
        claims.append(at_most(words, largest_of(far[-1]), 1e-2))
        if settings["joint"]:
            margin, chosen = results[key]["margin"], int(results[key]["chosen"])
            words = f"ℓp-JointRP, p = {settings['p']:g}: label margin of what the path selects"
            own = Measured(float(margin[chosen]), count=len(margin))
            bound = f"{margin.max():.4f}, the largest"
            claims.append(stated(words, own, bound, chosen == int(margin.argmax())))
    for p in _POWERS:
        name, random = f"random data, p = {p:g}", results[f"random{p:g}"]
        words = f"{name}: share of joint paths that select the largest label margin"
        claims.append(at_least(words, share_of(random["largest"]), 0.95))
        words = f"{name}: log L of the path above that of any selection, largest"
        claims.append(at_most(words, largest_of(random["above"]), 1e-6))
    return claims


def _pictures_path(results: Results) -> list[Picture]:
    panels = []
    for joint in (False, True):
        series: list[Series] = []
        for i, p in enumerate(_POWERS):
            own = results[f"{'joint' if joint else 'W'}{p:g}"]
            series.append(mean_curve(f"p = {p:g}", own["radius"], np.maximum(own["far"], 1e-15),
                                     log=True, style=i, marker="o"))  # fmt: skip
        title = "ℓp-JointRP: W and v, Example 2" if joint else "ℓp-AttRP"
        panels.append(Panel(title=title,
                            axes=("size of the weights (norm R)", "distance (Bregman divergence)"),
                            series=series,
                            logarithmic=(True, True)))  # fmt: skip
    caption = (
        "Best weights of ℓp norm R (Theorem 1), and best head and weights (Theorem 5): divergence "
        "from the solutions of ℓp-AttSVM and ℓp-SVM; means with 95 % bands."
    )
    return [Picture(name="path", caption=caption, panels=panels, columns=2)]


_FIG5 = tuple(Point(f"q{q:g}", {"q": q, "scale": _NEAR}) for q in _POWERS)
_FIG4 = (*_FIG5, *(Point(f"q{q:g}-far", {"q": q, "scale": 1.0}) for q in _POWERS))

EXPERIMENTS = (
    Experiment("B:fig4", "ℓq paths against ℓp solutions", 100, _FIG4, _run_fig4, _claims_fig4,
               _pictures_fig4),
    Experiment("B:fig5", "Two entries of W along training", 100, _FIG5, _run_fig4, _claims_fig5,
               _pictures_fig5, source="B:fig4"),
    Experiment("B:rates", "Theorem 4: rates of convergence", 100,
               tuple(Point(f"p{p:g}", {"p": p}) for p in _RATE_POWERS), _run_rates, _claims_rates,
               _pictures_rates),
    Experiment("B:path", "Theorems 1 and 5: ℓp regularisation paths", 100,
               (*(Point(key, settings) for key, settings in _PATHS.items()),
                *(Point(f"random{p:g}", {"p": p}) for p in _POWERS)),
               _run_path, _claims_path, _pictures_path),
)  # fmt: skip
