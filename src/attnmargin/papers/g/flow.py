"""G:flow: two factors with decay, fitted to a diagonal matrix."""

from itertools import combinations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attnmargin.base.seeds import seed_of
from attnmargin.papers.engine.claims import (
    Claim,
    at_least,
    at_most,
    largest_of,
    least_of,
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
from attnmargin.plot.panels import Panel, Picture, Series
from attnmargin.theory.check import holds
from attnmargin.theory.paper_g import check_decay
from attnmargin.training.decay import decayed_flow, factor_gradients, shrunk
from attnmargin.training.measures import imbalance, nuclear_excess

TARGET = torch.diag(torch.tensor([0.2, 0.4, 0.6, 0.8, 1.0], dtype=torch.float64))
_DECAYS = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.1)
# The paper's picture has λ = 0.4, which is a singular value of the target: there σ falls like 1/2t.
_TIED = 0.4
TIMES = tuple(np.concatenate([np.arange(0.0, 20.5, 0.5), np.arange(25.0, 401.0, 5.0)]).tolist())
# Gaps below this share of the first are not used for a rate: the integration's errors are near.
_SEEN = 1e-7


def fit_gradient(W: Tensor) -> Tensor:
    """Compute the gradient of ½ ‖W − target‖²."""
    return W - TARGET


def starts(trials: int, seed: int) -> tuple[Tensor, Tensor]:
    """Draw factors with normal entries of variance 1/5."""
    drawn = []
    for trial in range(trials):
        generator = torch.Generator().manual_seed(seed_of("G:flow", trial, base=seed))
        drawn.append(torch.randn(2, 5, 5, generator=generator, dtype=torch.float64) / 5**0.5)
    A, B = torch.stack(drawn).unbind(1)
    return A, B


def _run(task: Task) -> Arrays:
    decay = task.settings["decay"]
    A, B = decayed_flow(fit_gradient, *starts(task.trials, task.seed), decay, TIMES)
    W = A @ B.mT
    gap = imbalance(A, B)
    found = {
        "singular": torch.linalg.svdvals(W).numpy(),
        "gap": gap.numpy(),
        "excess": nuclear_excess(A, B).numpy(),
        "off": torch.linalg.matrix_norm(W[-1] - shrunk(TARGET, decay)).numpy(),
    }
    if decay == 0.0:
        return found
    checks = check_decay(fit_gradient(W[-1]), A[-1], B[-1], decay, 1e-5)
    good = torch.stack([holds(check) for check in checks]).all(0)
    return found | {"certified": good.numpy(), "rate": _rates(gap).numpy()} | _saddles(decay)


def _rates(gap: Tensor) -> Tensor:
    """Fit the rate at which the logarithm of each gap ``(R, trials)`` falls, ``(trials,)``."""
    t = torch.tensor(TIMES, dtype=torch.float64)
    found = []
    for own in gap.unbind(1):
        seen = own > _SEEN * own[0]
        x, y = t[seen], own[seen].log()
        found.append(-((x - x.mean()) * (y - y.mean())).sum() / (x - x.mean()).square().sum())
    return torch.stack(found)


def _saddles(decay: float) -> Arrays:
    """Measure all points of rest in which some singular values are left at zero."""
    free = [k for k in range(5) if float(TARGET[k, k]) > decay]
    slopes, excesses, minima = [], [], []
    for size in range(len(free) + 1):
        for kept in combinations(free, size):
            own = torch.zeros(5, dtype=torch.float64)
            own[list(kept)] = (TARGET.diagonal()[list(kept)] - decay).sqrt()
            A = torch.diag(own)
            G = fit_gradient(A @ A.mT)
            parts = factor_gradients(fit_gradient, A, A, decay)
            slopes.append(max(float(part.abs().max()) for part in parts))
            excesses.append(float(nuclear_excess(A, A).abs()))
            minima.append(bool(holds(check_decay(G, A, A, decay)[-1])))
    return {"saddle_slope": np.array(slopes), "saddle_excess": np.array(excesses),
            "saddle_minimum": np.array(minima)}  # fmt: skip


def _key(decay: float) -> str:
    return f"decay{decay:g}"


def _wanted(decay: float) -> NDArray[np.float64]:
    wanted = np.maximum(TARGET.diagonal().numpy()[::-1] - decay, 0.0)
    return np.asarray(wanted)


def _claims(results: Results) -> list[Claim]:
    off = [results[_key(decay)]["singular"][-1] - _wanted(decay) for decay in _DECAYS]
    with_decay = {decay: results[_key(decay)] for decay in (*_DECAYS[1:], _TIED)}
    rates = [own["rate"] / (2.0 * decay) - 1.0 for decay, own in with_decay.items()]
    own, plain = list(with_decay.values()), results[_key(0.0)]
    certified = [results[_key(decay)]["certified"] for decay in _DECAYS[1:]]
    tied = _growth(results[_key(_TIED)]["singular"][:, :, 3])
    kept = np.abs(plain["gap"][-1] / plain["gap"][0] - 1.0)
    single = [results[_key(decay)]["saddle_minimum"].sum() for decay in _DECAYS[1:]]
    return [
        at_most("singular values at the end: largest distance to (s − λ)₊",
                largest_of(np.abs(np.stack(off))), 1e-6),
        at_most("rate of ‖AᵀA − BᵀB‖ over 2λ: largest distance to one",
                largest_of(np.abs(np.concatenate(rates))), 0.05),
        at_most("½ (‖A‖² + ‖B‖²) − ‖ABᵀ‖_* at the end, largest",
                largest_of([a["excess"][-1] for a in own]), 1e-6),
        at_most("λ = 0: relative change of ‖AᵀA − BᵀB‖", largest_of(kept), 1e-6),
        at_least("λ = 0: ½ (‖A‖² + ‖B‖²) − ‖ABᵀ‖_* at the end, least",
                 least_of(plain["excess"][-1]), 0.01),
        at_least("certified minima of the loss with the nuclear norm, share",
                 share_of(np.concatenate(certified)), 1.0),
        at_most("all points of rest, saddles too: largest gradient",
                largest_of(np.concatenate([a["saddle_slope"] for a in own])), 1e-12),
        at_most("all points of rest: largest ½ (‖A‖² + ‖B‖²) − ‖ABᵀ‖_*",
                largest_of(np.concatenate([a["saddle_excess"] for a in own])), 1e-12),
        at_most("points of rest that are minima in the nuclear norm, most per λ",
                largest_of(single), 1.0),
        at_most(f"λ = {_TIED:g} = s₂: rate at which 1/σ₂ grows, largest distance to 2",
                largest_of(np.abs(tied - 2.0)), 0.05),
    ]  # fmt: skip


def _growth(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute the mean rate of 1/σ over the second half of the time, for ``(R, trials)``."""
    half = TIMES.index(TIMES[-1] / 2.0)
    rise = 1.0 / values[-1] - 1.0 / values[half]
    return np.asarray(rise / (TIMES[-1] - TIMES[half]))


def _measurements(results: Results) -> list[Measurement]:
    tied = results[_key(_TIED)]["singular"][-1, :, 3]
    rests = sum(len(results[_key(decay)]["saddle_slope"]) for decay in (*_DECAYS[1:], _TIED))
    return [
        Measurement(f"λ = {_TIED:g}: the singular value of the target that is λ, at t = 400, mean",
                    float(tied.mean())),
        Measurement("points of rest in closed form, all λ together", float(rests)),
    ]  # fmt: skip


def _pictures(results: Results) -> list[Picture]:
    times = np.array(TIMES)
    decays = sorted((*_DECAYS, _TIED))
    shown = (0.0, 0.1, 0.3, 0.5)
    excess: list[Series] = []
    gap: list[Series] = []
    for k, decay in enumerate(shown):
        own = results[_key(decay)]
        for series, name in ((excess, "excess"), (gap, "gap")):
            series.append({"kind": "line", "name": f"λ = {decay:g}", "x": times, "colour": k,
                           "y": np.maximum(own[name].mean(1), 1e-16)})  # fmt: skip
        if decay:
            first = own["gap"].mean(1)[0]
            gap.append({"kind": "line", "name": "", "x": times, "colour": k, "style": 2,
                        "y": np.maximum(first * np.exp(-2.0 * decay * times), 1e-16)})  # fmt: skip
    ends: list[Series] = []
    for k in range(5):
        found = [results[_key(decay)]["singular"][-1, :, k].mean() for decay in decays]
        s = 1.0 - 0.2 * k
        line = np.linspace(0.0, 1.1, 111)
        ends.append({"kind": "line", "name": "", "x": line, "y": np.maximum(s - line, 0.0),
                     "colour": k, "style": 2})  # fmt: skip
        ends.append({"kind": "points", "name": f"s = {s:.1f}", "x": np.array(decays),
                     "y": np.array(found), "colour": k})  # fmt: skip
    path: list[Series] = [
        {"kind": "line", "name": f"s = {1.0 - 0.2 * k:.1f}", "x": times, "colour": k,
         "y": results[_key(_TIED)]["singular"].mean(1)[:, k]}
        for k in range(5)
    ]  # fmt: skip
    axis = "time (t)"
    panels = [
        Panel(title="the penalty becomes the nuclear norm",
              axes=(axis, "½(‖A‖² + ‖B‖²) − ‖ABᵀ‖_*"), series=excess, logarithmic=(False, True),
              across=(0.0, 100.0), limits=(1e-13, 10.0)),
        Panel(title="factors balance like e^(−2λt)", axes=(axis, "imbalance ‖AᵀA − BᵀB‖"),
              series=gap, logarithmic=(False, True), across=(0.0, 100.0), limits=(1e-13, 10.0)),
        Panel(title="singular values are s − λ, or zero", axes=("decay (λ)", "singular value"),
              series=ends),
        Panel(title="λ = 0.4: one value is exactly λ, and late", axes=(axis, "singular value"),
              series=path, across=(0.0, 40.0)),
    ]  # fmt: skip
    caption = (
        "Gradient flow of ½‖ABᵀ − diag(0.2, …, 1)‖² + λ/2(‖A‖² + ‖B‖²) for 5 × 5 factors, means "
        "over random starts. Dotted: e^(−2λt) and (s − λ)₊."
    )
    return [Picture(name="flow", caption=caption, panels=panels, columns=2)]


EXPERIMENTS = (
    Experiment("G:flow", "Decay balances factors and shrinks singular values", 20,
               tuple(Point(_key(decay), {"decay": decay}) for decay in sorted((*_DECAYS, _TIED))),
               _run, _claims, _pictures, measurements=_measurements),
)  # fmt: skip
