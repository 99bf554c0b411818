"""Paper A, figures 8 and 11: a ReLU head, and the SVM equivalent of its mixtures (Section 6)."""

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attnmargin.attention.heads import ReLUHead
from attnmargin.attention.softmax import probabilities
from attnmargin.data.attention_data import AttentionData
from attnmargin.data.random import normal
from attnmargin.papers.a.mixtures import SELECTED, clear_cut, compare, generator_of
from attnmargin.papers.engine.claims import Claim, at_least, stated
from attnmargin.papers.engine.experiment import Arrays, Experiment, Point, Results, Task
from attnmargin.papers.engine.series import mean_curve
from attnmargin.plot.panels import Panel, Picture, Series
from attnmargin.training import Guarded, Trajectory, train

_D8, _MASKED8, _STEPS = (4, 6, 8, 10), 1e-6, 2000
_BLOCKS, _LEAST = 25, 200  # blocks of draws, and draws per block
_RATE = Guarded(0.1)  # as in the authors' published code
_POINTS = tuple(
    Point(
        f"d{d}", {"d": d, "steps": _STEPS, "rate": repr(_RATE), "start": "±1/√d", "kept": "masked"}
    )
    for d in _D8
)


class _Trials(NamedTuple):
    data: AttentionData
    head: ReLUHead  # 1ᵀReLU(V x) with ‖V‖_F = 1
    W: Tensor  # initial weights, entries uniform in ±1/√d

    def part(self, places: Tensor) -> "_Trials":
        return _Trials(self.data[places], ReLUHead(self.head.V[places]), self.W[places])


def _relu_trials(d: int, trials: int, block: int, seed: int) -> _Trials:
    """Draw tokens, heads and initial weights; drop draws without a label −1."""
    generator = generator_of("A:fig8", d, block, seed=seed)
    X, z = normal((trials, 3, 4, d), generator), normal((trials, 3, d), generator)
    V = torch.randn(trials, d, d, generator=generator, dtype=torch.float64)
    V = V / torch.linalg.matrix_norm(V)[:, None, None]
    y = 2.0 * torch.randint(0, 2, (trials, 3), generator=generator).to(torch.float64) - 1.0
    W = (2.0 * torch.rand(trials, d, d, generator=generator, dtype=torch.float64) - 1.0) / d**0.5
    drawn = _Trials(AttentionData(X, z, y), ReLUHead(V), W)
    return drawn.part((y < 0).any(-1).nonzero().flatten())


def _run_fig8(task: Task) -> Arrays:
    d = task.settings["d"]
    kept: dict[str, list[NDArray[Any]]] = {}
    count = block = drawn = 0
    while count < task.trials and block < _BLOCKS:
        own = _relu_trials(d, max(4 * task.trials, _LEAST), block, task.seed)
        run = train(own.data, lr=_RATE, head=own.head, init=own.W, steps=_STEPS, record=100,
                    progress=task.progress)  # fmt: skip
        found = _kept(own, run, task.trials - count)
        for name, values in found.items():
            kept.setdefault(name, []).append(values)
        count += found["eq"].shape[1]
        drawn += len(own.W)
        block += 1
    joined = {name: np.concatenate(parts, -1) for name, parts in kept.items()}
    return {**joined, "steps": run.steps.numpy(), "drawn": np.array(drawn)}


def _kept(own: _Trials, run: Trajectory, most: int) -> dict[str, NDArray[Any]]:
    """Correlate the trials that are clear-cut, mask a token and are solvable, ``(R, ·)``."""
    s = probabilities(own.data, run.W[-1])
    chosen, clear = clear_cut(s, _MASKED8)
    keep = (clear & ~chosen.flatten(1).all(-1)).nonzero().flatten()
    measured = compare(own.part(keep).data, run.W[:, keep], s[keep], chosen[keep])
    solvable = ~torch.stack([x[-1].isnan() for x in measured.values()]).any(0)
    use = solvable.nonzero().flatten()[:most]
    largest = s[keep].where(~chosen[keep], 0.0).flatten(1).amax(-1)[use]
    arrays = {name: x[:, use].numpy() for name, x in measured.items()}
    return {**arrays, "masked": largest.numpy(), "eq_free": _free(own.part(keep[use]))}


def _free(own: _Trials) -> NDArray[Any]:
    """Correlate with SVMeq after as many steps without the guard; NaN if not solvable."""
    run = train(own.data, head=own.head, init=own.W, steps=_STEPS, record=_STEPS)
    s = probabilities(own.data, run.W[-1])
    return compare(own.data, run.W[-1:], s, s > SELECTED)["eq"][0].numpy()


def _ends(results: Results, d: int) -> dict[str, float]:
    return {name: float(results[f"d{d}"][name][-1].mean()) for name in ("eq", "gen", "one")}


def _claims_fig8(results: Results) -> list[Claim]:
    claims = []
    for d in _D8:
        end, own = _ends(results, d), results[f"d{d}"]
        if d >= 8:
            kept, drawn = own["eq"].shape[1], int(own["drawn"])
            words = f"d = {d}: mean correlation with SVMeq ({kept} kept of {drawn} drawn)"
            claims.append(at_least(words, end["eq"], 0.99))
        both = np.isfinite(own["eq_free"])
        held, free = (float(x[both].mean()) for x in (own["eq"][-1], own["eq_free"]))
        words = f"d = {d}: the guard raises the mean correlation of {both.sum()} of them, to"
        claims.append(stated(words, held, f"> {free:.4f} without", held > free))
        order = end["eq"] >= end["gen"] > end["one"]
        claims.append(
            stated(f"d = {d}: SVMeq ≥ Gen-SVM > one token, mean of Gen-SVM", end["gen"],
                  f"{end['eq']:.4f} ≥ · > {end['one']:.4f}", order)
        )  # fmt: skip
    return claims


def _pictures_fig8(results: Results) -> list[Picture]:
    panels = []
    names = {"eq": "SVMeq: W_fin + γ W_mm", "gen": "Gen-SVM", "one": "one token"}
    for d in _D8:
        arrays = results[f"d{d}"]
        series = [
            mean_curve(name, arrays["steps"][1:], 1.0 - arrays[key][1:], log=True, style=k)
            for k, (key, name) in enumerate(names.items())
        ]
        panels.append(Panel(title=f"d = {d}",
                            axes=("training step", "distance (1 − correlation)"), series=series,
                            logarithmic=(False, True)))  # fmt: skip
    for d in _D8:
        arrays = results[f"d{d}"]
        cloud: Series = {"kind": "points", "name": "", "x": arrays["masked"],
                         "y": np.maximum(1.0 - arrays["eq"][-1], 1e-9)}  # fmt: skip
        panels.append(Panel(title=f"d = {d}",
                            axes=("largest masked entry", "distance from SVMeq (1 − corr)"),
                            series=[cloud], logarithmic=(True, True)))  # fmt: skip
    caption = (
        "Head 1ᵀReLU(V x), n = 3, T = 4, at least one label −1; steps 0.1 ∇L / (‖∇L‖ + 2.2e-16). "
        "Kept: every token above 1e-3 or below 1e-6 at the end, and one below. Above: means with "
        "95 % bands; below: single instances. Paper: SVMeq fits best, one token worst, and the fit "
        "grows with d."
    )
    return [Picture(name="fig8", caption=caption, panels=panels, columns=4)]


_THRESHOLDS = 10.0 ** np.arange(-16, -5)


def _by_threshold(arrays: Arrays) -> NDArray[Any]:
    """Average the correlation with SVMeq over trials whose masked tokens are below a threshold."""
    end, masked = arrays["eq"][-1], arrays["masked"]
    return np.array([end[masked < g].mean() if (masked < g).any() else np.nan for g in _THRESHOLDS])


def _claims_fig11(results: Results) -> list[Claim]:
    claims = [
        at_least(f"d = {d}: mean correlation with SVMeq", _ends(results, d)["eq"], 0.99)
        for d in _D8
        if d >= 8
    ]
    small = _THRESHOLDS <= 1e-9
    for d in _D8:
        least = np.nanmin(_by_threshold(results[f"d{d}"])[small])
        claims.append(at_least(f"d = {d}: the same for Γ ≤ 1e-9, least", least, 0.99))
    return claims


def _pictures_fig11(results: Results) -> list[Picture]:
    left: list[Series] = []
    right: list[Series] = []
    for d in _D8:
        arrays = results[f"d{d}"]
        steps = arrays["steps"][1:]
        left.append(mean_curve(f"d = {d}", steps, 1.0 - arrays["eq"][1:], log=True))
        right.append({"kind": "line", "name": f"d = {d}", "x": _THRESHOLDS, "marker": "o",
                      "y": 1.0 - _by_threshold(arrays)})  # fmt: skip
    panels = [
        Panel(title="(a) in training",
              axes=("training step", "distance from SVMeq (1 − corr)"), series=left,
              logarithmic=(False, True)),
        Panel(title="(b) by the threshold of masked tokens",
              axes=("threshold of masked tokens (Γ)", "distance from SVMeq (1 − corr)"),
              series=right, logarithmic=(True, True)),
    ]  # fmt: skip
    caption = (
        "The runs of figure 8. Right: mean over instances whose masked tokens have a probability "
        "below Γ. Paper: the correlation is above 0.99 for d ≥ 8 or Γ ≤ 1e-9."
    )
    return [Picture(name="fig11", caption=caption, panels=panels, columns=2)]


EXPERIMENTS = (
    Experiment("A:fig8", "ReLU head: mixtures and their SVM equivalent", 500, _POINTS, _run_fig8,
               _claims_fig8, _pictures_fig8, unit="kept trials"),
    Experiment("A:fig11", "SVM equivalence by width and threshold", 500, _POINTS, _run_fig8,
               _claims_fig11, _pictures_fig11, source="A:fig8", unit="kept trials"),
)  # fmt: skip
