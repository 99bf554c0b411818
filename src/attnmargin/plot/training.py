"""A training run → plot data."""

import torch

from attnmargin.base.errors import InputError
from attnmargin.margin.solution import Solution
from attnmargin.plot.bands import BAND_WORDS, band
from attnmargin.plot.panels import Panel, Picture
from attnmargin.training.measures import misalignment
from attnmargin.training.trajectory import Trajectory

# Below this, 1 − correlation is rounding error.
_EXACT = 1e-16


def trajectory_picture(run: Trajectory, solution: Solution | None = None) -> Picture:
    """Show the loss, the largest softmax entry, the norm of W, and its distance from a solution."""
    along = "path length (arc length, or norm R)" if run.steps.is_floating_point() else (
        "training step")  # fmt: skip
    least, most = float(run.loss.min()), float(run.loss.max())
    falls = 0.0 < 10.0 * least < most
    norm = torch.linalg.matrix_norm(run.W)
    panels = [
        Panel(title="how wrong the model is", axes=(along, "mean loss (L)"),
              logarithmic=(True, falls), series=[band("", run.steps, run.loss)]),
        Panel(title="how far attention has decided",
              axes=(along, "largest share of attention"),
              logarithmic=(True, False), series=[band("", run.steps, run.probability)]),
        Panel(title="how long the weights are", axes=(along, "length of the weights (‖W‖)"),
              logarithmic=(True, False), series=[band("", run.steps, norm)]),
    ]  # fmt: skip
    if solution is not None:
        panels.append(_distance(run, solution, along))
    caption = "Attention has decided where its largest share is 1; the weights then only grow."
    if solution is not None:
        caption += " Their direction turns to the solution: 0 is the same direction."
    if run.loss.ndim > 1:
        caption += f" {BAND_WORDS}"
    columns = 3 if solution is None else 2
    return Picture(
        name="trajectory", caption=caption, panels=panels, columns=columns, size=(4.0, 3.2)
    )


def _distance(run: Trajectory, solution: Solution, along: str) -> Panel:
    if run.W.shape[-2:] != solution.W.shape[-2:]:
        got = f"W of shape {tuple(solution.W.shape[-2:])}"
        raise InputError("solution", got, f"that of the run, {tuple(run.W.shape[-2:])}")
    if bool(solution.W.isnan().any()):
        raise InputError("solution", "an infeasible problem", "a W to compare with")
    off = misalignment(run.W, solution.W.to(run.W)).clamp_min(_EXACT)
    return Panel(
        title="how far W is from the solution",
        axes=(along, "distance (1 − correlation)"),
        logarithmic=(True, True),
        series=[band("", run.steps[1:], off[1:])],
    )
