"""N:classes and N:momentum: linear classifiers of several classes, and the margins they reach."""

import numpy as np
from numpy.typing import NDArray

from attnmargin.papers.engine.claims import Claim, at_most, difference_of, mean_of, more_than
from attnmargin.papers.engine.experiment import (
    Arrays,
    Experiment,
    Measurement,
    Point,
    Results,
    Task,
)
from attnmargin.papers.engine.series import mean_curve
from attnmargin.papers.n.linear import largest_margins, random_classes
from attnmargin.plot.panels import GREY, Panel, Picture, Series
from attnmargin.training.methods import Adam, Decaying, Method, Steepest

_STEPS, _RECORD = 2000, 50
# Examples per class, and fewer for the longer runs with momentum.
_PER, _FEW = 50, 10
# Much momentum is late: it forgets more slowly than gradients fall, until rates are small.
_MOMENTUM_STEPS = 10_000
NAMES = {"fro": "Frobenius", "spectral": "spectral", "max": "max"}
# The first rate of η_t = η₀ t^{-1/2}, for weights that are long enough at the end.
_RATES = {"fro": 3.0, "spectral": 1.0, "max": 0.2, "adam": 0.2}
_MOMENTA = (0.0, 0.5, 0.9, 0.98)
# Adam's ε is absolute: gradients that fall below it move nothing.
_EPSILONS = (0.0, 1e-8, 1e-4)
# The slope of log gap against log steps is taken from this step on; the theory bounds it by −1/2.
_FROM, _SLOPE, _NEAR, _SAME = 500, -0.4, 0.1, 0.02


def _method(name: str, momentum: float = 0.0, eps: float = 0.0) -> Method:
    # β₂ = 0.99 forgets fast enough for this number of steps; 0.999 would not.
    return Adam((0.9, 0.99), eps=eps) if name == "adam" else Steepest(name, momentum)


def _run(task: Task) -> Arrays:
    name, steps = task.settings["method"], task.settings["steps"]
    method = _method(name, task.settings["momentum"], task.settings.get("eps", 0.0))
    per = task.settings["per"]
    classes = random_classes(task.trials, task.seed, per=per)
    run = classes.train(method, task.progress, steps=steps, record=_RECORD,
                        lr=Decaying(_RATES[name]))  # fmt: skip
    gaps = {}
    for norm in task.settings["norms"]:
        largest = largest_margins(task.trials, task.seed, norm, per)
        gaps[norm] = 1.0 - classes.margin(run.W, norm)[1:] / largest
    return {norm: gap.mT.numpy() for norm, gap in gaps.items()}


_MOMENTS = np.arange(_RECORD, _STEPS + 1, _RECORD)
_MOMENTUM_MOMENTS = np.arange(_RECORD, _MOMENTUM_STEPS + 1, _RECORD)


def slopes(gaps: NDArray[np.float64]) -> NDArray[np.float64]:
    """Fit the slope of log gap against log steps, for each trial ``(trials, R)``."""
    late = _MOMENTS >= _FROM
    x = np.log(_MOMENTS[late])
    y = np.log(np.maximum(gaps[:, late], 1e-12))
    x = x - x.mean()
    return np.asarray((y @ x) / (x @ x))


def _claims(results: Results) -> list[Claim]:
    claims = []
    for norm, words in NAMES.items():
        own = results[norm][norm]
        claims.append(at_most(f"{words} descent: gap to the largest {words} margin",
                              mean_of(own[:, -1]), _NEAR))  # fmt: skip
        claims.append(at_most(f"{words} descent: slope of log gap against log steps",
                              mean_of(slopes(own)), _SLOPE))  # fmt: skip
        for other, of in NAMES.items():
            if other != norm:
                text = f"{words} margin: {of} descent is farther from the largest"
                claims.append(more_than(text, results[other][norm][:, -1], own[:, -1]))
    return claims


def _measurements(results: Results) -> list[Measurement]:
    return [
        Measurement(f"{name} descent: gap to the largest {words} margin",
                    float(arrays[norm][:, -1].mean()))
        for name, arrays in results.items()
        for norm, words in NAMES.items()
    ]  # fmt: skip


def _pictures(results: Results) -> list[Picture]:
    panels: list[Panel] = []
    for norm, words in NAMES.items():
        curves = [
            mean_curve(NAMES.get(name, "Adam"), _MOMENTS, list(arrays[norm].T), log=True)
            for name, arrays in results.items()
        ]
        best = results[norm][norm].mean(0)[0]
        rate: Series = {"kind": "line", "name": "t^(-1/2)", "x": _MOMENTS, "style": 1,
                        "y": best * (_MOMENTS / _RECORD) ** -0.5, "colour": GREY}  # fmt: skip
        curves.append(rate)
        panels.append(Panel(title=f"{words} margin", axes=("step", "gap to the largest margin"),
                            series=curves, logarithmic=(True, True)))  # fmt: skip
    caption = (
        f"Linear classifiers of 15 classes, {15 * _PER} examples of 25 features, steps of length "
        "η₀ t^(-1/2): how far the margin in each norm is from the largest one. Only the method "
        "of the norm closes the gap."
    )
    return [Picture(name="classes", caption=caption, panels=panels, columns=3)]


def _momentum_key(norm: str, momentum: float) -> str:
    return f"{norm}-{momentum:g}"


def _momentum_claims(results: Results) -> list[Claim]:
    claims = []
    for norm, words in NAMES.items():
        plain = results[_momentum_key(norm, 0.0)][norm][:, -1]
        for momentum in _MOMENTA[1:]:
            gap = results[_momentum_key(norm, momentum)][norm][:, -1]
            text = f"{words} descent, momentum {momentum:g}: gap beyond that without momentum"
            claims.append(at_most(text, difference_of(gap, plain), _SAME))
    return claims


def _momentum_measurements(results: Results) -> list[Measurement]:
    return [
        Measurement(f"Adam, ε = {eps:g}: gap to the largest max margin",
                    float(results[f"adam-{eps:g}"]["max"][:, -1].mean()))
        for eps in _EPSILONS
    ]  # fmt: skip


def _momentum_pictures(results: Results) -> list[Picture]:
    panels = [
        Panel(
            title=f"{words} descent",
            axes=("step", f"gap to the largest {words} margin"),
            series=[
                mean_curve(f"momentum {momentum:g}", _MOMENTUM_MOMENTS,
                           list(results[_momentum_key(norm, momentum)][norm].T), log=True)
                for momentum in _MOMENTA
            ],
            logarithmic=(True, True),
        )
        for norm, words in NAMES.items()
    ]  # fmt: skip
    caption = (
        f"Classifiers with {15 * _FEW} examples, momentum before the steepest step: the margin "
        "is the same in the end, but much momentum is late."
    )
    return [Picture(name="momentum", caption=caption, panels=panels, columns=3)]


EXPERIMENTS = (
    Experiment("N:classes", "Margins of linear classifiers by method and norm", 5,
               tuple(Point(name, {"method": name, "momentum": 0.0, "norms": tuple(NAMES),
                                  "steps": _STEPS, "per": _PER})
                     for name in (*NAMES, "adam")),
               _run, _claims, _pictures, measurements=_measurements),
    Experiment("N:momentum", "Momentum keeps the margin", 3,
               (*(Point(_momentum_key(norm, momentum),
                        {"method": norm, "momentum": momentum, "norms": (norm,),
                         "steps": _MOMENTUM_STEPS, "per": _FEW})
                  for norm in NAMES for momentum in _MOMENTA),
                *(Point(f"adam-{eps:g}",
                        {"method": "adam", "momentum": 0.0, "eps": eps, "norms": ("max",),
                         "steps": _MOMENTUM_STEPS, "per": _FEW})
                  for eps in _EPSILONS)),
               _run, _momentum_claims, _momentum_pictures, measurements=_momentum_measurements),
)  # fmt: skip
