"""A solution of a margin problem → plot data."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnmargin.base.errors import InputError
from attnmargin.margin.solution import Solution
from attnmargin.plot.bands import array
from attnmargin.plot.panels import GREY, Panel, Picture, Series

# Most bars with names, and most rows with a bar each; above, each sequence has one bar.
_NAMED, _MOST = 24, 120
_CAPTION = (
    "Every bar is one demand that a token wins over another: how far apart their logits are for "
    "weights of length one. No bar ends below the margin, the dotted line. The support rows end on "
    "it: they alone decide the direction."
)


def margin_picture(solution: Solution) -> Picture:
    """Show the margin of every row of one problem; with many rows, the smallest per sequence."""
    problem = solution.problem
    there = array(problem.mask)
    if not there.any():
        raise InputError("solution", "a problem without rows", "at least one row")
    value = float(solution.value)
    if not np.isfinite(value) or value == 0.0:
        got = "an infeasible problem" if np.isnan(value) else "W = 0"
        raise InputError("solution", got, "a W that separates")
    height = array(problem.apply(solution.W))[there] / value
    guards, equal = array(solution.support)[there], array(problem.equality)[there]
    names = _names(solution, there)
    if len(height) <= _MOST:
        words, axis = [name for name, _ in names], "row (sequence: winner > loser)"
        kinds = np.where(equal, 2, np.where(guards, 1, 0))
    else:
        height, kinds, words = _smallest(height, guards, equal, names)
        axis = "sequence, by its closest rival"
    panel = _bars(height, kinds, words, axis)
    panel["series"].append(
        Series(kind="level", name=f"margin (1/‖W‖ = {1.0 / value:.4g})", x=np.zeros(1),
               y=np.array(1.0 / value))
    )  # fmt: skip
    size = (min(max(0.5 * len(words), 4.6), 12.0) if "ticks" in panel else 7.0, 3.4)
    return Picture(name="margins", caption=_CAPTION, panels=[panel], size=size)


def _bars(height: NDArray[Any], kinds: NDArray[Any], words: list[str], axis: str) -> Panel:
    looks: tuple[tuple[str, int | str], ...] = (
        ("other rows", 0), ("support rows", 1), ("rows that must tie", GREY))  # fmt: skip
    series = [
        Series(kind="bar", name=name, x=places, y=height[places], colour=colour)
        for k, (name, colour) in enumerate(looks)
        if len(places := (kinds == k).nonzero()[0])
    ]
    panel = Panel(
        title="by how much each selected token wins",
        axes=(axis, "margin (logit difference over ‖W‖)"),
        series=series,
        overlaid=True,
        limits=(min(1.1 * float(height.min()), 0.0), 1.35 * float(height.max())),  # for the legend
    )
    if len(words) <= _NAMED:
        panel["ticks"] = words
    return panel


def _names(solution: Solution, there: NDArray[Any]) -> list[tuple[str, str]]:
    """Name each row, and the sequence or graph that it belongs to."""
    own, shape = solution.problem.names, solution.problem.mask.shape
    parts = (own.sequence, own.position, own.chosen, own.other)
    rows = np.stack([array(part.expand(shape))[there] for part in parts], -1)
    return [_name(*row) for row in rows.tolist()]


def _name(sequence: int, position: int, chosen: int, other: int) -> tuple[str, str]:
    subject = f"{sequence}" if position < 0 else f"{sequence}.{position}"
    return (f"{subject}: {chosen}>{other}" if other >= 0 else subject), subject


def _smallest(
    height: NDArray[Any], guards: NDArray[Any], equal: NDArray[Any], names: list[tuple[str, str]]
) -> tuple[NDArray[Any], NDArray[Any], list[str]]:
    """Find the smallest margin of each sequence, and whether the sequence has a support row."""
    subjects = np.array([subject for _, subject in names])[~equal]
    words, first = np.unique(subjects, return_index=True)
    order = np.argsort(first)
    least = np.array([height[~equal][subjects == word].min() for word in words[order]])
    tight = np.array([guards[~equal][subjects == word].any() for word in words[order]])
    return least, tight.astype(int), words[order].tolist()
