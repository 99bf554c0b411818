"""Paper B, Examples 1 and 2: figures 2, 3, 6 and 7."""

import numpy as np
import torch
from torch import Tensor

from attnmargin.data.attention_data import AttentionData
from attnmargin.margin.builders import label_problem, token_problem
from attnmargin.margin.certificate import Status
from attnmargin.margin.implied import implied_method
from attnmargin.papers.engine.claims import (
    Claim,
    Measured,
    at_least,
    at_most,
    largest_of,
    least_of,
    stated,
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
from attnmargin.selections.local_optimality import label_margin
from attnmargin.solvers.entry import solve
from attnmargin.training import train
from attnmargin.training.measures import correlation, token_probability

# Example 1: two tokens per sequence; the first is both the optimal token and the query.
_X1 = [[[5.0, 0.0], [0.0, 1.0]], [[-5.0, 0.0], [0.0, -1.0]]]
_PRINTED = [[0.03846, 0.0], [-0.00769, 0.0]]
_P1 = 3.0

# Example 2 (eq. 39).
_X2 = [[[-5.4, 2.4], [2.8, 4.2], [2.6, -0.2]], [[0.8, -4.4], [-2.2, -0.8], [1.8, 0.2]]]
STEPS = {1.75: 1500, 2.0: 2000, 3.0: 20_000}


def example_1() -> AttentionData:
    """Return the tokens, queries and labels of Example 1."""
    X = torch.tensor(_X1, dtype=torch.float64)
    return AttentionData(X, X[:, 0].clone(), torch.tensor([1.0, -1.0], dtype=torch.float64))


def example_2() -> AttentionData:
    """Return the tokens, queries and labels of Example 2."""
    X = torch.tensor(_X2, dtype=torch.float64)
    return AttentionData(X, X[:, 0].clone(), torch.tensor([1.0, -1.0], dtype=torch.float64))


# --- Example 1 ------------------------------------------------------------------------------


def _run_example1(task: Task) -> Arrays:
    data = example_1()
    problem = token_problem(data.X, data.z, [0, 0])
    solutions = {p: solve(problem, p) for p in (2.0, _P1)}
    return {
        "two": solutions[2.0].W.numpy(),
        "three": solutions[_P1].W.numpy(),
        "gap": np.array([float(s.certificate.gap) for s in solutions.values()]),
        "optimal": np.array([s.status == Status.OPTIMAL for s in solutions.values()]),
    }


def _claims_example1(results: Results) -> list[Claim]:
    own = results["data"]
    off = {k: float(np.abs(own[k] - _PRINTED).max()) for k in ("two", "three")}
    cubes = [float((np.abs(W) ** 3).sum() ** (1 / 3)) for W in (own["three"], own["two"])]
    entry = own["three"][0, 0], own["three"][1, 0]
    return [
        at_most("printed W against the solution for p = 2, largest difference", off["two"], 1e-5),
        at_least("printed W against the solution for p = 3, largest difference", off["three"],
                 1e-3),
        stated(f"ℓ3 norm at p = 3, W = ({entry[0]:.4f}, 0; {entry[1]:.4f}, 0)", cubes[0],
              f"< {cubes[1]:.5f}, that of the printed one", cubes[0] < cubes[1] - 1e-4),
        at_most("relative duality gap of both, worst", largest_of(own["gap"]), 1e-9),
    ]  # fmt: skip


def _claims_fig2(results: Results) -> list[Claim]:
    """Claim the margins, computed from W and the tokens alone."""
    X, W = np.array(_X1), results["data"]["three"]
    rows = [(x[0] - x[1]) @ W @ x[0] for x in X]
    return [at_least("least margin of the optimal tokens, p = 3", least_of(rows), 1.0 - 1e-9)]


def _pictures_fig2(results: Results) -> list[Picture]:
    X = np.array(_X1)
    panels = []
    for name, W in (("p = 3", results["data"]["three"]), ("p = 2, as printed for p = 3",
                                                          results["data"]["two"])):  # fmt: skip
        series: list[Series] = []
        for i in range(2):
            series += _tokens(X[i], i)
            away = W @ X[i, 0]
            across = np.array([-away[1], away[0]]) / np.linalg.norm(away)
            middle = 0.5 * (X[i, 0] + X[i, 1])
            ends = middle + np.outer([-2.0, 2.0], across)
            series.append({"kind": "line", "name": "", "x": ends[:, 0], "y": ends[:, 1],
                           "style": 1, "colour": i})  # fmt: skip
            tip = 3.0 * away / np.linalg.norm(away)
            series.append({"kind": "arrow", "name": f"W z, sequence {i + 1}",
                           "x": np.array([0.0, tip[0]]), "y": np.array([0.0, tip[1]]),
                           "colour": i})  # fmt: skip
        panels.append(
            Panel(
                title=name,
                axes=("first coordinate (x₁)", "second coordinate (x₂)"),
                series=series,
                square=True,
            )
        )
    caption = (
        "Example 1: optimal tokens (stars) and the others (dots); dashed lines are orthogonal to "
        "W z. The W that the paper prints for p = 3 is the solution for p = 2; both are certified."
    )
    return [Picture(name="fig2", caption=caption, panels=panels, columns=2)]


def _tokens(X: np.ndarray, colour: int) -> list[Series]:
    """Draw one sequence: its first token as a star, the others as dots."""
    return [
        {"kind": "points", "name": "", "x": X[:1, 0], "y": X[:1, 1], "marker": "*",
         "colour": colour},
        {"kind": "points", "name": "", "x": X[1:, 0], "y": X[1:, 1], "marker": "o",
         "colour": colour},
    ]  # fmt: skip


# --- figure 3 -------------------------------------------------------------------------------

_CHOICES = ((0, 0), (0, 1), (1, 0), (1, 1))


def _run_fig3(task: Task) -> Arrays:
    data = example_1()
    chosen = torch.tensor(_CHOICES)
    assert data.y is not None
    v = [solve(label_problem(data.X, data.y, alpha), _P1).vector for alpha in chosen]
    return {
        "margin": label_margin(data, chosen, _P1).numpy(),
        "v": torch.stack(v).numpy(),
    }


def _claims_fig3(results: Results) -> list[Claim]:
    margin = results["data"]["margin"]
    words = "label margin of the optimal tokens, ℓ3-SVM"
    others = ", ".join(f"{m:.4g}" for m in margin[1:])
    best = bool((margin[0] > margin[1:]).all())
    return [stated(words, Measured(float(margin[0]), count=len(margin)), f"> {others}", best)]


def _pictures_fig3(results: Results) -> list[Picture]:
    own, X, panels = results["data"], np.array(_X1), []
    for alpha, v, margin in zip(_CHOICES, own["v"], own["margin"], strict=True):
        series: list[Series] = []
        across = np.array([-v[1], v[0]]) / np.linalg.norm(v)
        for level, style in ((-1.0, 1), (0.0, 0), (1.0, 1)):
            ends = level * v / (v @ v) + np.outer([-6.0, 6.0], across)
            series.append({"kind": "line", "name": "", "x": ends[:, 0], "y": ends[:, 1],
                           "style": style, "colour": 7})  # fmt: skip
        for i, a in enumerate(alpha):
            marked = X[i, a]
            series.append({"kind": "points", "name": f"label {'+−'[i]}1", "x": X[i, :, 0],
                           "y": X[i, :, 1], "colour": i})  # fmt: skip
            series.append({"kind": "points", "name": "", "x": marked[:1], "y": marked[1:],
                           "marker": "*", "colour": i})  # fmt: skip
        title = f"tokens {alpha[0] + 1} and {alpha[1] + 1}: margin {margin:.3g}"
        panels.append(Panel(title=title,
                            axes=("first coordinate (x₁)", "second coordinate (x₂)"),
                            series=series, limits=(-6.0, 6.0),
                            square=True))  # fmt: skip
    caption = (
        "Example 1: the ℓ3-SVM of every choice of one token per sequence (stars). Solid: vᵀx = 0; "
        "dashed: vᵀx = ±1. The optimal tokens, the first ones, have the largest margin."
    )
    return [Picture(name="fig3", caption=caption, panels=panels, columns=4)]


# --- Example 2: joint descent ---------------------------------------------------------------


def _run_joint(task: Task) -> Arrays:
    p = task.settings["p"]
    data = example_2()
    method = implied_method(p)
    run = train(data, parameter="vW", method=method, p=p, lr=0.1, steps=STEPS[p],
                record=STEPS[p] // 100, progress=task.progress)  # fmt: skip
    chosen = run.selection[-1]
    assert data.y is not None
    assert run.v is not None
    W = solve(token_problem(data.X, data.z, chosen), p)
    v = solve(label_problem(data.X, data.y, chosen), p)
    margin = data.y * (data.X[torch.arange(2), chosen] * run.v.unsqueeze(-2)).sum(-1)
    return {
        "steps": run.steps.numpy(),
        "W": run.W.numpy(),
        "v": run.v.numpy(),
        "W_mm": W.W.numpy(),
        "v_mm": v.vector.numpy(),
        "chosen": chosen.numpy(),
        "margins": label_margin(data, every_selection(data), p).numpy(),
        "W_correlation": correlation(run.W, W.W).numpy(),
        "v_correlation": correlation(run.v.unsqueeze(-1), v.W).numpy(),
        "softmax": _along(data, run.W, chosen).numpy(),
        "logistic": torch.sigmoid(margin).mean(-1).numpy(),
    }


def every_selection(data: AttentionData) -> Tensor:
    """List all selections, int ``(T^n, n)``."""
    return torch.cartesian_prod(*[torch.arange(data.T)] * data.n)


def _measured_fig7(results: Results) -> list[Measurement]:
    """Name the selection of largest label margin beside the one that training ends in."""
    found, every = [], every_selection(example_2()).numpy()
    for p in STEPS:
        own = results[f"p{p:g}"]
        place = int((every == own["chosen"]).all(-1).argmax())
        most = int(own["margins"].argmax())
        for words, k in (("what training selects", place), ("the selection of the largest", most)):
            name = f"p = {p:g}: label margin of {words}, {tuple(every[k].tolist())}"
            found.append(Measurement(name, float(own["margins"][k])))
    return found


def _along(data: AttentionData, W: Tensor, chosen: Tensor) -> Tensor:
    """Compute the softmax probability of the chosen tokens at every record, mean over sequences."""
    return torch.stack([token_probability(data, w, chosen) for w in W])


_POINTS2 = tuple(Point(f"p{p:g}", {"p": p}) for p in STEPS)


def _claims_fig6(results: Results) -> list[Claim]:
    claims = []
    for p in STEPS:
        own = results[f"p{p:g}"]
        claims += [
            at_least(f"p = {p:g}: correlation of W with ℓp-AttSVM", own["W_correlation"][-1], 0.99),
            at_least(f"p = {p:g}: correlation of v with ℓp-SVM", own["v_correlation"][-1], 0.99),
        ]
    return claims


def _claims_fig7(results: Results) -> list[Claim]:
    claims = []
    for p in STEPS:
        own = results[f"p{p:g}"]
        claims += [
            at_least(f"p = {p:g}: softmax probability of the optimal tokens", own["softmax"][-1],
                     0.99),
            at_least(f"p = {p:g}: logistic probability", own["logistic"][-1], 0.99),
        ]  # fmt: skip
    return claims


def _pictures_fig6(results: Results) -> list[Picture]:
    panels = []
    for p in STEPS:
        own, series = results[f"p{p:g}"], []
        for i in range(2):
            path = own["W"] @ np.array(_X2)[i, 0]
            series += _path(path, own["W_mm"] @ np.array(_X2)[i, 0], f"W z, sequence {i + 1}", i)
        series += _path(own["v"], own["v_mm"], "v", 2)
        panels.append(
            Panel(
                title=f"p = {p:g}",
                axes=("first coordinate (x₁)", "second coordinate (x₂)"),
                series=series,
            )
        )
    caption = (
        "Example 2, head and weights trained together from zero: paths of W zᵢ and v (solid), and "
        "the directions of ℓp-AttSVM and ℓp-SVM (dashed), each path scaled to length one."
    )
    return [Picture(name="fig6", caption=caption, panels=panels, columns=3)]


def _path(path: np.ndarray, target: np.ndarray, name: str, k: int) -> list[Series]:
    """Draw a path scaled to length one, and its expected final direction."""
    size = np.linalg.norm(path[-1])
    tip = target / np.linalg.norm(target)
    return [
        {"kind": "line", "name": name, "x": path[:, 0] / size, "y": path[:, 1] / size, "colour": k},
        {"kind": "line", "name": "", "x": np.array([0.0, 1.15 * tip[0]]),
         "y": np.array([0.0, 1.15 * tip[1]]), "style": 1, "colour": k},
    ]  # fmt: skip


def _pictures_fig7(results: Results) -> list[Picture]:
    panels = []
    words = {"softmax": "softmax probability of the optimal tokens", "logistic":
             "logistic probability"}  # fmt: skip
    for key, name in words.items():
        series: list[Series] = []
        for i, p in enumerate(STEPS):
            own = results[f"p{p:g}"]
            series.append({"kind": "line", "name": f"p = {p:g}", "x": own["steps"][1:],
                           "y": own[key][1:], "style": i})  # fmt: skip
        panels.append(Panel(title=name,
                            axes=("training step", "mean of both sequences"), series=series,
                            logarithmic=(True, False)))  # fmt: skip
    caption = "Example 2, joint training: both probabilities tend to one."
    return [Picture(name="fig7", caption=caption, panels=panels, columns=2)]


EXPERIMENTS = (
    Experiment("B:example1", "Example 1: the printed solution is that of p = 2", 1,
               (Point("data"),), _run_example1, _claims_example1, _pictures_fig2, unit="example"),
    Experiment("B:fig2", "Example 1: the ℓ3 attention SVM", 1, (Point("data"),), _run_example1,
               _claims_fig2, _pictures_fig2, source="B:example1", unit="example"),
    Experiment("B:fig3", "Example 1: label margins of all choices", 1, (Point("data"),), _run_fig3,
               _claims_fig3, _pictures_fig3, unit="example"),
    Experiment("B:fig6", "Example 2: joint descent of head and weights", 1, _POINTS2, _run_joint,
               _claims_fig6, _pictures_fig6, unit="example"),
    Experiment("B:fig7", "Example 2: probabilities in joint descent", 1, _POINTS2, _run_joint,
               _claims_fig7, _pictures_fig7, _measured_fig7, source="B:fig6", unit="example"),
)  # fmt: skip
