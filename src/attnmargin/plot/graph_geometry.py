"""Geometry of the drawing of a token-priority graph, in pixels."""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from attnmargin.graphs import TokenGraph
from attnmargin.graphs.layout import layout
from attnmargin.plot.labels import letters, shortened

Floats = NDArray[np.float64]
# Box height, row spacing, and margin of the drawing.
_TALL, _ROW, _ROOM = 26.0, 84.0, 6.0
# Letter width, padding of a name in its box, gap between boxes, and longest name in letters.
_LETTER, _PAD, _GAP, _LONGEST = 8.0, 16.0, 14.0, 14


@final
@dataclass(frozen=True, eq=False)
class GraphPlan:
    """Boxes, rings, arrows and lines between layers; the origin is the upper left corner.

    Rings surround components of several tokens. Inside a component, arrows show all edges. Between
    components, arrows run from ring to ring and show the edges that no others imply.
    """

    size: Floats  # (2,): width and height
    names: list[str]
    words: list[str]  # the names as written, long ones shortened
    places: Floats  # (N, 2): centres of boxes
    halves: Floats  # (N, 2): half widths and heights of boxes
    rings: Floats  # (C, 2, 2): centres; half widths and heights
    arrows: Floats  # (A, 2, 2): tails and heads
    between: Floats  # (L,): heights between layers


def graph_plan(graph: TokenGraph) -> GraphPlan:
    """Plan a drawing that fits every box and ring, however long the names are."""
    plan, names = layout(graph), [graph.vocabulary.name(int(k)) for k in graph.tokens]
    words = [shortened(name, _LONGEST) for name in names]
    halves = np.array([(_PAD + _LETTER * letters(word), _TALL) for word in words]) / 2.0
    unit = np.array([max(_ROW, 2.0 * halves[:, 0].max() + _GAP), -_ROW])
    at = plan.places * unit
    centre = np.array([(ring.x, ring.y) for ring in plan.rings]) * unit
    radius = np.array([ring.radius for ring in plan.rings])
    round_size = _around(graph, at - centre[graph.component], halves, unit, radius)
    several = np.bincount(graph.component) > 1
    shapes = np.concatenate((at, centre[several])), np.concatenate((halves, round_size[several]))
    low, high = (shapes[0] - shapes[1]).min(0) - _ROOM, (shapes[0] + shapes[1]).max(0) + _ROOM
    at, centre = at - low, centre - low
    return GraphPlan(
        np.ceil(high - low),
        names,
        words,
        at,
        halves,
        np.stack((centre, round_size), 1)[several],
        _arrows(graph, at, halves + 2.0, (centre, round_size)),
        np.array(plan.edges) * unit[1] - low[1],
    )


def _around(
    graph: TokenGraph, offset: Floats, halves: Floats, unit: Floats, radius: Floats
) -> Floats:
    """Compute half sizes of rings around components, ``(C, 2)``, to enclose the boxes inside."""
    corner = np.linalg.norm((np.abs(offset) + halves + 4.0) / np.abs(unit), axis=-1)
    needed = radius.copy()
    np.maximum.at(needed, graph.component, corner)
    return needed[:, None] * np.abs(unit)


def _arrows(graph: TokenGraph, at: Floats, half: Floats, rings: tuple[Floats, Floats]) -> Floats:
    """Place arrows inside components from box to box, and between them from ring to ring."""
    inside = [_arrow(at[i], at[j], half[i], half[j]) for i, j in graph.inner]
    first = np.array([(graph.component == c).argmax() for c in range(len(graph.layer))])
    several = (np.bincount(graph.component) > 1)[:, None]
    middle = np.where(several, rings[0], at[first])
    border = np.where(several, rings[1], half[first])
    # A ring is an ellipse: its border is closer to the centre than that of its bounding box.
    power = np.where(several[:, 0], 2.0, np.inf)
    between = [
        _arrow(middle[c], middle[e], border[c], border[e], (power[c], power[e]))
        for c, e in graph.covers
    ]
    return np.array(inside + between).reshape(-1, 2, 2)


def _arrow(
    tail: Floats,
    head: Floats,
    before: Floats,
    after: Floats,
    power: tuple[float, float] = (np.inf, np.inf),
) -> Floats:
    """Draw a line from border to border, shifted sideways so that opposite arrows stay apart."""
    way = (head - tail) / np.linalg.norm(head - tail)
    side = 4.0 * np.array([-way[1], way[0]])
    a = tail + side + _reach(way, before, power[0]) * way
    b = head + side - _reach(way, after, power[1]) * way
    return np.stack((a, b))


def _reach(way: Floats, half: Floats, power: float) -> float:
    """Compute the distance from the centre of a shape to its border along a direction.

    Power 2 means an ellipse, ∞ a box.
    """
    return 1.0 / float(np.linalg.norm(way / half, power))
