"""Paper A, figures 1, 3 and 7: the direction of descent."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attnmargin.base.seeds import seed_of
from attnmargin.data.attention_data import AttentionData
from attnmargin.data.random import random_data
from attnmargin.margin.builders import label_problem, token_problem
from attnmargin.margin.implied import implied_norm
from attnmargin.papers.engine.claims import Claim, at_least, stated
from attnmargin.papers.engine.experiment import Arrays, Experiment, Point, Results, Task
from attnmargin.papers.engine.series import mean_curve
from attnmargin.plot.panels import Panel, Picture, Series
from attnmargin.solvers.entry import solve
from attnmargin.training import train
from attnmargin.training.measures import correlation

# The published code penalises ‖K‖² + ‖Q‖² by machine epsilon.
PENALTY = 2.0**-52


def uniform_factors(data: AttentionData, m: int, name: str, seed: int) -> tuple[Tensor, Tensor]:
    """Draw K and Q as in the published code: uniform in ±1/√d, one seed per trial."""
    d, trials = data.d, data.batch_shape[0]
    K, Q = (torch.empty(trials, d, m, dtype=torch.float64) for _ in "KQ")
    for trial in range(trials):
        generator = torch.Generator().manual_seed(seed_of(name, "factors", trial, base=seed))
        for part in (K, Q):
            part[trial].uniform_(-(d**-0.5), d**-0.5, generator=generator)
    return K, Q


# --- figure 1 -------------------------------------------------------------------------------


def _run_fig1(task: Task) -> Arrays:
    """Train one instance with n = d = 2 and T = 3; record the paths of W z_i and K Qᵀ z_i."""
    data = random_data(2, 3, 2, trials=1, name="A:fig1", seed=task.seed, min_gap=0.3)
    KQ = task.settings["parameter"] == "KQ"
    init = uniform_factors(data, 2, "A:fig1", task.seed) if KQ else None
    run = train(
        data,
        task.settings["parameter"],
        steps=2000,
        init=init,
        penalty=PENALTY if KQ else 0.0,
        record=10,
        progress=task.progress,
    )
    solution = solve(
        token_problem(data.X, data.z, run.selection[-1]), implied_norm("KQ" if KQ else "W")
    )
    z = data.z[0].mT  # (2, n)
    return {
        "tokens": data.X[0].numpy(),
        "selected": run.selection[-1, 0].numpy(),
        "path": (run.W[:, 0] @ z).mT.numpy(),
        "svm": (solution.W[0] @ z).mT.numpy(),
        "correlation": correlation(run.W[:, 0], solution.W[0]).numpy(),
    }


def _claims_fig1(results: Results) -> list[Claim]:
    words = {"W": "W(k) meets the Frobenius solution", "KQ": "K Qᵀ meets the nuclear solution"}
    return [
        at_least(f"{words[key]}: correlation at the end", results[key]["correlation"][-1], 0.999)
        for key in words
    ]


def _pictures_fig1(results: Results) -> list[Picture]:
    panels = [_plane(results[key], key) for key in ("W", "KQ")]
    caption = (
        "Tokens of two sequences (n = d = 2, T = 3), stars are the selected ones. Paths are "
        "W(k) z_i (left) and K Qᵀ z_i (right) in 2000 steps, lengths on a log scale; arrows are "
        "the directions of the Frobenius and nuclear SVM. Paper: the paths end along them."
    )
    return [Picture(name="fig1", caption=caption, panels=panels, columns=2)]


def _plane(arrays: Arrays, key: str) -> Panel:
    series: list[Series] = []
    for i in range(2):
        tokens, star = arrays["tokens"][i], int(arrays["selected"][i])
        path = arrays["path"][:, i]
        size = np.linalg.norm(path, axis=-1, keepdims=True)
        path = path * np.log1p(size) / np.where(size > 0, size, 1.0) / np.log1p(size.max())
        arrow = arrays["svm"][i] / np.linalg.norm(arrays["svm"][i])
        series += [
            {"kind": "points", "name": f"tokens of sequence {i + 1}", "x": tokens[:, 0],
             "y": tokens[:, 1], "colour": i},
            {"kind": "points", "name": "", "x": tokens[star : star + 1, 0],
             "y": tokens[star : star + 1, 1], "colour": i, "marker": "*"},
            {"kind": "line", "name": f"path, z{i + 1}", "x": path[:, 0], "y": path[:, 1],
             "colour": i, "style": 2},
            {"kind": "arrow", "name": f"SVM, z{i + 1}", "x": np.array([0.0, arrow[0]]),
             "y": np.array([0.0, arrow[1]]), "colour": i + 2},
        ]  # fmt: skip
    title = "gradient descent on W" if key == "W" else "gradient descent on K and Q"
    return Panel(title=title,
                 axes=("first coordinate (x₁)", "second coordinate (x₂)"), series=series,
                 square=True)  # fmt: skip


# --- figure 3 -------------------------------------------------------------------------------


def _run_fig3(task: Task) -> Arrays:
    """Run descent for logistic regression on separable points, and for attention on tokens."""
    generator = torch.Generator().manual_seed(seed_of("A:fig3", base=task.seed))
    points = torch.randn(20, 2, generator=generator, dtype=torch.float64)
    normal = torch.tensor([1.0, 0.6], dtype=torch.float64)
    y = torch.sign(points @ normal)
    points = points + 0.5 * y.unsqueeze(-1) * normal  # opens a gap between the classes
    v = torch.zeros(2, dtype=torch.float64)
    path = [v]
    for _ in range(2000):
        g = -(torch.sigmoid(-y * (points @ v)) * y) @ points
        v = v - 0.1 * g / g.norm()
        path.append(v)
    tokens = points.unsqueeze(1)
    svm = solve(label_problem(tokens, y, torch.zeros(20, dtype=torch.int64))).vector
    attention = _run_fig1(Task({"parameter": "W"}, 1, task.seed, task.progress))
    walked = torch.stack(path)[::10]
    return {
        "points": points.numpy(),
        "labels": y.numpy(),
        "path": walked.numpy(),
        "svm": svm.numpy(),
        "correlation": correlation(walked.unsqueeze(-1), svm.unsqueeze(-1)).numpy(),
        "attention": attention["correlation"],
    }


def _claims_fig3(results: Results) -> list[Claim]:
    arrays = results["all"]
    return [
        at_least("logistic regression meets the max-margin classifier: correlation",
                 arrays["correlation"][-1], 0.99),
        at_least("attention meets the attention SVM: correlation", arrays["attention"][-1], 0.99),
    ]  # fmt: skip


def _pictures_fig3(results: Results) -> list[Picture]:
    arrays = results["all"]
    points, labels, svm = arrays["points"], arrays["labels"], arrays["svm"]
    steps = 10 * np.arange(len(arrays["correlation"]))
    across = np.array([-svm[1], svm[0]])
    line = 2.5 * np.outer([-1.0, 1.0], across / np.linalg.norm(across))
    plane: list[Series] = [
        {"kind": "points", "name": f"label {word}", "x": points[labels == sign, 0],
         "y": points[labels == sign, 1], "colour": k}
        for k, (sign, word) in enumerate(((1, "+1"), (-1, "−1")))
    ]  # fmt: skip
    plane.append({"kind": "line", "name": "max-margin line", "x": line[:, 0], "y": line[:, 1]})
    curves: list[Series] = [
        {"kind": "line", "name": name, "x": steps[1:], "y": 1.0 - arrays[key][1:], "style": k}
        for k, (name, key) in enumerate(
            (("logistic regression, with the SVM", "correlation"),
             ("attention, with the attention SVM", "attention"))
        )
    ]  # fmt: skip
    caption = (
        "Left: separable points and the ℓ2 max-margin line. Right: 1 − correlation of gradient "
        "descent with the max-margin direction, for logistic regression on these points and for "
        "attention on the tokens of figure 1. Paper: both biases are of one kind."
    )
    return [
        Picture(
            name="fig3",
            caption=caption,
            columns=2,
            panels=[
                Panel(title="logistic regression",
                      axes=("first coordinate (x₁)", "second coordinate (x₂)"),
                      series=plane, square=True),
                Panel(title="both turn to their SVM",
                      axes=("training step", "distance (1 − correlation)"),
                      series=curves, logarithmic=(True, True)),
            ],
        )
    ]  # fmt: skip


# --- figure 7 -------------------------------------------------------------------------------


def _run_fig7(task: Task) -> Arrays:
    """Correlate W or K Qᵀ with both solutions of the selection that training makes."""
    own = task.settings
    data = random_data(6, 8, 10, trials=task.trials, name="A:fig7", seed=task.seed, min_gap=0.1)
    KQ = own["parameter"] == "KQ"
    init = uniform_factors(data, 10, "A:fig7", task.seed) if KQ else None
    run = train(
        data,
        own["parameter"],
        steps=own["steps"],
        init=init,
        penalty=own.get("penalty", 0.0),
        record=own["record"],
        progress=task.progress,
    )
    problem = token_problem(data.X, data.z, run.selection[-1])
    solutions = {norm: solve(problem, norm) for norm in ("fro", "nuc")}
    measured = {norm: correlation(run.W, s.W).numpy() for norm, s in solutions.items()}
    return {
        "steps": run.steps.numpy(),
        "probability": run.probability.numpy(),
        "norm": torch.linalg.matrix_norm(run.W).numpy(),
        **measured,
    }


def _at(arrays: Arrays, norm: str, step: int) -> NDArray[Any]:
    """Return the correlations of all trials at a step."""
    chosen: NDArray[Any] = arrays[norm][int(np.searchsorted(arrays["steps"], step))]
    return chosen


def _claims_fig7(results: Results) -> list[Claim]:
    W, KQ, long = results["W"], results["KQ"], results["W-long"]
    ends = {"W": _at(W, "fro", 2000).mean(), "KQ": _at(KQ, "nuc", 2000).mean()}
    cross = {"W": _at(W, "nuc", 2000).mean(), "KQ": _at(KQ, "fro", 2000).mean()}
    return [
        at_least("largest softmax entry of W at 2000 steps, mean", W["probability"][-1].mean(),
                 0.99),
        at_least("largest softmax entry of K Qᵀ at 2000 steps, mean", KQ["probability"][-1].mean(),
                 0.99),
        at_least("W with the Frobenius solution at 1000 steps, mean", _at(W, "fro", 1000).mean(),
                 0.979),
        at_least("W with the Frobenius solution at 2000 steps, mean", ends["W"], 0.993),
        at_least("K Qᵀ with the nuclear solution at 1000 steps, mean", _at(KQ, "nuc", 1000).mean(),
                 0.9966),
        at_least("K Qᵀ with the nuclear solution at 2000 steps, mean", ends["KQ"], 0.9971),
        at_least("W with the Frobenius solution at 20,000 steps, worst trial",
                 _at(long, "fro", 20000).min(), 0.9999),
        stated("W is farther from the nuclear solution", cross["W"], f"< {ends['W']:.4f} − 0.05",
              bool(cross["W"] < ends["W"] - 0.05)),
        stated("K Qᵀ is farther from the Frobenius solution", cross["KQ"],
              f"< {ends['KQ']:.4f} − 0.05", bool(cross["KQ"] < ends["KQ"] - 0.05)),
    ]  # fmt: skip


def _band(name: str, x: NDArray[Any], values: NDArray[Any], off: bool = False) -> Series:
    """Build the mean curve over trials with its 95 % band; ``off`` draws 1 − value."""
    return mean_curve(name, x, 1.0 - values if off else values, log=off)


def _pictures_fig7(results: Results) -> list[Picture]:
    W, KQ = results["W"], results["KQ"]
    x = W["steps"]
    panels = [
        Panel(title="(a) largest softmax entry",
              axes=("training step", "largest share of attention"),
              series=[_band(n, x, r["probability"]) for n, r in (("W", W), ("K Qᵀ", KQ))]),
        Panel(title="(b) with the Frobenius solution", axes=("training step", "correlation"),
              series=[_band(n, x, r["fro"]) for n, r in (("W", W), ("K Qᵀ", KQ))]),
        Panel(title="(c) with the nuclear solution", axes=("training step", "correlation"),
              series=[_band(n, x, r["nuc"]) for n, r in (("W", W), ("K Qᵀ", KQ))]),
    ]  # fmt: skip
    long = results["W-long"]
    panels.append(
        Panel(title="(d) W for longer: mean, worst",
              axes=("training step", "distance (1 − correlation)"),
              logarithmic=(True, True),
              series=[_band("mean", long["steps"][1:], long["fro"][1:], off=True),
                      {"kind": "line", "name": "worst trial", "x": long["steps"][1:],
                       "y": 1.0 - long["fro"][1:].min(-1), "style": 1}])
    )  # fmt: skip
    caption = (
        "n = 6, T = 8, d = 10, score gap ≥ 0.1, normalised descent with step 0.1, means of the "
        "trials with 95 % bands. K, Q as published: uniform ±1/√d, penalty 2.2e-16. Paper: W meets "
        "the Frobenius solution, K Qᵀ the nuclear one."
    )
    return [Picture(name="fig7", caption=caption, panels=panels, columns=2)]


# --- figure 7, penalties --------------------------------------------------------------------

_PENALTIES = {"0": 0.0, "2.2e-16": PENALTY, "1e-60": 1e-60, "1e-120": 1e-120}


def _claims_penalty(results: Results) -> list[Claim]:
    def end(key: str) -> float:
        return float(_at(results[key], "nuc", 5000).mean())

    published = results["2.2e-16"]["norm"]
    still = float(published[-1].mean() / published[len(published) // 2].mean())
    return [
        stated("without penalty, correlation at 5000 steps is lower than with 1e-60", end("0"),
              f"< {end('1e-60'):.4f}", end("0") < end("1e-60")),
        stated("with 2.2e-16 the norm of K Qᵀ stands still: ratio of 5000 to 2500 steps", still,
              "within 2 % of 1", abs(still - 1.0) < 0.02),
        at_least("with 1e-60, correlation at 5000 steps, mean", end("1e-60"), 0.9995),
        stated("with 1e-60 it is higher than with the published penalty", end("1e-60"),
              f"> {end('2.2e-16'):.4f}", end("1e-60") > end("2.2e-16")),
    ]  # fmt: skip


def _pictures_penalty(results: Results) -> list[Picture]:
    x = results["0"]["steps"]
    panels = [
        Panel(title="misalignment of K Qᵀ with the nuclear solution",
              axes=("training step", "distance (1 − correlation)"), logarithmic=(True, True),
              series=[_band(f"penalty {k}", x[1:], results[k]["nuc"][1:], off=True)
                      for k in _PENALTIES]),
        Panel(title="norm of K Qᵀ",
              axes=("training step", "length of K Qᵀ (Frobenius norm)"), logarithmic=(True, True),
              series=[_band(f"penalty {k}", x[1:], results[k]["norm"][1:]) for k in _PENALTIES]),
    ]  # fmt: skip
    caption = (
        "The runs of figure 7 on (K, Q) with other penalties, gradients exact in the log domain. "
        "The published penalty of 2.2e-16 stops the growth of K Qᵀ and with it the alignment; "
        "without a penalty the alignment is slow; a vanishing penalty follows the regularisation "
        "path, which Theorem 2 is about."
    )
    return [Picture(name="fig7-penalty", caption=caption, panels=panels, columns=2)]


EXPERIMENTS = (
    Experiment("A:fig1", "Paths of descent and SVM directions in the plane", 1,
               tuple(Point(key, {"parameter": key}) for key in ("W", "KQ")),
               _run_fig1, _claims_fig1, _pictures_fig1),
    Experiment("A:fig3", "Logistic regression beside attention", 1, (Point("all"),),
               _run_fig3, _claims_fig3, _pictures_fig3),
    Experiment("A:fig7", "W meets the Frobenius solution, K Qᵀ the nuclear one", 100,
               (Point("W", {"parameter": "W", "steps": 2000, "record": 20}),
                Point("KQ", {"parameter": "KQ", "steps": 2000, "record": 20, "penalty": PENALTY}),
                Point("W-long", {"parameter": "W", "steps": 20000, "record": 200})),
               _run_fig7, _claims_fig7, _pictures_fig7),
    Experiment("A:fig7-penalty", "What the published penalty does", 100,
               tuple(Point(key, {"parameter": "KQ", "steps": 5000, "record": 50, "penalty": value})
                     for key, value in _PENALTIES.items()),
               _run_fig7, _claims_penalty, _pictures_penalty),
)  # fmt: skip
