"""Paper A, figures 1 and 3: the direction of descent, in the plane."""

import numpy as np
import torch
from torch import Tensor

from attnmargin.base.seeds import seed_of
from attnmargin.data.attention_data import AttentionData
from attnmargin.data.random import random_data
from attnmargin.margin.builders import label_problem, token_problem
from attnmargin.margin.implied import implied_norm
from attnmargin.papers.engine.claims import Claim, at_least, least_of
from attnmargin.papers.engine.experiment import Arrays, Experiment, Point, Results, Task
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
        at_least(f"{words[key]}: correlation at the end",
                 least_of(results[key]["correlation"][-1]), 0.999)
        for key in words
    ]  # fmt: skip


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
                 least_of(arrays["correlation"][-1]), 0.99),
        at_least("attention meets the attention SVM: correlation",
                 least_of(arrays["attention"][-1]), 0.99),
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


EXPERIMENTS = (
    Experiment("A:fig1", "Paths of descent and SVM directions in the plane", 1,
               tuple(Point(key, {"parameter": key}) for key in ("W", "KQ")),
               _run_fig1, _claims_fig1, _pictures_fig1),
    Experiment("A:fig3", "Logistic regression beside attention", 1, (Point("all"),),
               _run_fig3, _claims_fig3, _pictures_fig3),
)  # fmt: skip
