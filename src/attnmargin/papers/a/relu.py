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
from attnmargin.papers.engine.claims import (
    Claim,
    Measured,
    at_least,
    mean_of,
    more_than,
    share_of,
)
from attnmargin.papers.engine.experiment import Arrays, Experiment, Point, Results, Task
from attnmargin.papers.engine.series import mean_curve
from attnmargin.plot.panels import Panel, Picture, Series
from attnmargin.training import Guarded, Trajectory, train

_D8, _MASKED8, _STEPS = (4, 6, 8, 10), 1e-6, 2000
_BLOCKS, _LEAST = 25, 200  # blocks of draws, and draws per block
_RATE = Guarded(0.1)  # as in the authors' published code
_SHARED = {"steps": _STEPS, "rate": repr(_RATE), "start": "±1/√d", "kept": "masked"}
_POINTS = tuple(Point(f"d{d}", {"d": d, **_SHARED}) for d in _D8)
# The text's head is 1ᵀReLU(x); with all labels 1 every sequence is to end in one token.
_ENDS = (4, 10)
_TEXT = tuple(
    Point(f"text-d{d}", {"d": d, **_SHARED, "head": "1ᵀReLU(x)", "draws": 4}) for d in _ENDS
)
_ONES = tuple(Point(f"ones-d{d}", {"d": d, **_SHARED, "labels": 1}) for d in _ENDS)


class _Trials(NamedTuple):
    data: AttentionData
    head: ReLUHead  # 1ᵀReLU(V x) with ‖V‖_F = 1
    W: Tensor  # initial weights, entries uniform in ±1/√d

    def part(self, places: Tensor) -> "_Trials":
        return _Trials(self.data[places], ReLUHead(self.head.V[places]), self.W[places])


def _relu_trials(d: int, trials: int, block: int, seed: int, text: bool = False) -> _Trials:
    """Draw tokens, heads and initial weights; drop draws without a label −1."""
    generator = generator_of("A:fig8", d, block, seed=seed)
    X, z = normal((trials, 3, 4, d), generator), normal((trials, 3, d), generator)
    V = torch.randn(trials, d, d, generator=generator, dtype=torch.float64)
    V = torch.eye(d).to(V).expand_as(V) if text else V / torch.linalg.matrix_norm(V)[:, None, None]
    y = 2.0 * torch.randint(0, 2, (trials, 3), generator=generator).to(torch.float64) - 1.0
    W = (2.0 * torch.rand(trials, d, d, generator=generator, dtype=torch.float64) - 1.0) / d**0.5
    drawn = _Trials(AttentionData(X, z, y), ReLUHead(V), W)
    return drawn.part((y < 0).any(-1).nonzero().flatten())


def _trained(own: _Trials, task: Task) -> Trajectory:
    return train(own.data, lr=_RATE, head=own.head, init=own.W, steps=_STEPS, record=100,
                 progress=task.progress)  # fmt: skip


def _run_fig8(task: Task) -> Arrays:
    if "labels" in task.settings:
        return _run_ones(task)
    d, text = task.settings["d"], "head" in task.settings
    if text:  # a single block: the figure is that of the authors' head
        own = _relu_trials(d, max(4 * task.trials, _LEAST), 0, task.seed, text)
        run = _trained(own, task)
        found = _kept(own, run, task.trials)
        return {**found, "steps": run.steps.numpy(), "drawn": np.array(len(own.W))}
    kept: dict[str, list[NDArray[Any]]] = {}
    count = block = drawn = 0
    while count < task.trials and block < _BLOCKS:
        own = _relu_trials(d, max(4 * task.trials, _LEAST), block, task.seed)
        run = _trained(own, task)
        found = _kept(own, run, task.trials - count)
        for name, values in found.items():
            kept.setdefault(name, []).append(values)
        count += found["eq"].shape[1]
        drawn += len(own.W)
        block += 1
    joined = {name: np.concatenate(parts, -1) for name, parts in kept.items()}
    return {**joined, "steps": run.steps.numpy(), "drawn": np.array(drawn)}


def _run_ones(task: Task) -> Arrays:
    """Train with all labels 1, and count the tokens that each trial selects per sequence."""
    own = _relu_trials(task.settings["d"], task.trials, 0, task.seed)
    data = AttentionData(own.data.X, own.data.z, torch.ones_like(own.W[:, 0, :1].expand(-1, 3)))
    run = _trained(_Trials(data, own.head, own.W), task)
    chosen, clear = clear_cut(probabilities(data, run.W[-1]), _MASKED8)
    return {"most": chosen.sum(-1).amax(-1).numpy(), "clear": clear.numpy()}


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


def _order(arrays: Arrays, words: str) -> list[Claim]:
    """Claim that SVMeq fits best and one token worst, trial by trial."""
    end = {name: arrays[name][-1] for name in ("eq", "gen", "one")}
    return [
        more_than(f"{words}: correlation with SVMeq less that with Gen-SVM", end["eq"], end["gen"]),
        more_than(f"{words}: correlation with Gen-SVM less that with one token", end["gen"],
                  end["one"]),
    ]  # fmt: skip


def _mean_fit(arrays: Arrays, words: str) -> Claim:
    drawn = int(arrays["drawn"])
    return at_least(f"{words}: mean correlation with SVMeq ({drawn} drawn)",
                    mean_of(arrays["eq"][-1]), 0.99)  # fmt: skip


def _claims_fig8(results: Results) -> list[Claim]:
    claims = []
    for d in _D8:
        own = results[f"d{d}"]
        if d >= 8:
            claims.append(_mean_fit(own, f"d = {d}"))
        both = np.isfinite(own["eq_free"])
        words = f"d = {d}: correlation with SVMeq with the guard less without"
        claims.append(more_than(words, own["eq"][-1][both], own["eq_free"][both]))
        claims += _order(own, f"d = {d}")
    for d in _ENDS:
        text, words = results[f"text-d{d}"], f"the text's head, d = {d}"
        claims += [_mean_fit(text, words)] if d >= 8 else []
        claims += _order(text, words)
    return [*claims, *_claims_ones(results)]


def _claims_ones(results: Results) -> list[Claim]:
    """Claim that with all labels 1 the trials that the filter keeps select single tokens."""
    claims = []
    for d in _ENDS:
        own = results[f"ones-d{d}"]
        words = f"all labels 1, d = {d}: share of kept trials with one token in every sequence"
        claims.append(at_least(words, share_of(own["most"][own["clear"]] == 1), 0.95))
    return claims


_FITS = {"eq": "SVMeq: W_fin + γ W_mm", "gen": "Gen-SVM", "one": "one token"}


def _in_training(arrays: Arrays, title: str) -> Panel:
    series = [
        mean_curve(name, arrays["steps"][1:], 1.0 - arrays[key][1:], log=True, style=k)
        for k, (key, name) in enumerate(_FITS.items())
        if arrays[key].shape[1]
    ]
    return Panel(title=title, axes=("training step", "distance (1 − correlation)"), series=series,
                 logarithmic=(False, True))  # fmt: skip


def _cloud(arrays: Arrays, title: str) -> Panel:
    cloud: Series = {"kind": "points", "name": "", "x": arrays["masked"],
                     "y": np.maximum(1.0 - arrays["eq"][-1], 1e-9)}  # fmt: skip
    return Panel(title=title, axes=("largest masked entry", "distance from SVMeq (1 − corr)"),
                 series=[cloud], logarithmic=(True, True))  # fmt: skip


def _pictures_fig8(results: Results) -> list[Picture]:
    panels = [_in_training(results[f"d{d}"], f"d = {d}") for d in _D8]
    panels += [_cloud(results[f"d{d}"], f"d = {d}") for d in _D8]
    for draw in (_in_training, _cloud):
        panels += [draw(results[f"text-d{d}"], f"the text's head, d = {d}") for d in _ENDS]
    caption = (
        "Head 1ᵀReLU(V x), n = 3, T = 4, at least one label −1; steps 0.1 ∇L / (‖∇L‖ + 2.2e-16). "
        "Kept: every token above 1e-3 or below 1e-6 at the end, and one below. Above: means with "
        "95 % bands; in the middle: single instances; below: the head 1ᵀReLU(x), which the text "
        "names. Paper: SVMeq fits best, one token worst, and the fit grows with d."
    )
    return [Picture(name="fig8", caption=caption, panels=panels, columns=4)]


_THRESHOLDS = 10.0 ** np.arange(-16, -5)


def _below(arrays: Arrays) -> list[Measured]:
    """Measure the correlation with SVMeq of trials whose masked tokens are below each threshold."""
    end, masked = arrays["eq"][-1], arrays["masked"]
    return [mean_of(end[masked < threshold]) for threshold in _THRESHOLDS]


def _claims_fig11(results: Results) -> list[Claim]:
    claims = [
        at_least(f"d = {d}: mean correlation with SVMeq", mean_of(results[f"d{d}"]["eq"][-1]), 0.99)
        for d in _D8
        if d >= 8
    ]
    for d in _D8:
        below = zip(_THRESHOLDS, _below(results[f"d{d}"]), strict=True)
        small = [(own, g) for g, own in below if g <= 1.5e-9 and own.count]
        if small:
            least, threshold = min(small, key=lambda pair: pair[0].value or 0.0)
            words = f"d = {d}: mean for Γ ≤ 1e-9, least, at Γ = {threshold:.0e}"
            claims.append(at_least(words, least, 0.99))
    return claims


def _pictures_fig11(results: Results) -> list[Picture]:
    left: list[Series] = []
    right: list[Series] = []
    for d in _D8:
        arrays = results[f"d{d}"]
        steps = arrays["steps"][1:]
        left.append(mean_curve(f"d = {d}", steps, 1.0 - arrays["eq"][1:], log=True))
        have = [(arrays["masked"] < g).any() for g in _THRESHOLDS]
        parts = [1.0 - arrays["eq"][-1][arrays["masked"] < g] for g in _THRESHOLDS[have]]
        right.append(mean_curve(f"d = {d}", _THRESHOLDS[have], parts, log=True, marker="o"))
    panels = [
        Panel(title="(a) in training",
              axes=("training step", "distance from SVMeq (1 − corr)"), series=left,
              logarithmic=(False, True)),
        Panel(title="(b) by the threshold of masked tokens",
              axes=("threshold of masked tokens (Γ)", "distance from SVMeq (1 − corr)"),
              series=right, logarithmic=(True, True)),
    ]  # fmt: skip
    caption = (
        "The runs of figure 8, means with 95 % bands. Right: instances whose masked tokens have a "
        "probability below Γ. Paper: the correlation is above 0.99 for d ≥ 8 or Γ ≤ 1e-9."
    )
    return [Picture(name="fig11", caption=caption, panels=panels, columns=2)]


EXPERIMENTS = (
    Experiment("A:fig8", "ReLU head: mixtures and their SVM equivalent", 500,
               (*_POINTS, *_TEXT, *_ONES), _run_fig8, _claims_fig8, _pictures_fig8,
               unit="kept trials"),
    Experiment("A:fig11", "SVM equivalence by width and threshold", 500, _POINTS, _run_fig8,
               _claims_fig11, _pictures_fig11, source="A:fig8", unit="kept trials"),
)  # fmt: skip
