"""Positions of tokens in a drawing: layers by priority, components as groups."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from attnmargin.graphs.graph import TokenGraph

# Maximum width of a row, in units.
_WIDEST = 7.0


@final
@dataclass(frozen=True)
class Ring:
    """A circle around a component."""

    component: int
    x: float
    y: float
    radius: float


@final
@dataclass(frozen=True, eq=False)
class Layout:
    """Positions of tokens ``(N, 2)``, the first layer on top, and rings around components.

    ``edges`` are the heights between one layer and the next.
    """

    places: NDArray[np.float64]
    rings: list[Ring]  # in component order
    edges: list[float]


def layout(graph: TokenGraph) -> Layout:
    """Place components of a layer side by side, tokens of a component on a circle, one unit apart.

    A layer that is too wide breaks into several rows.
    """
    count = np.bincount(graph.component, minlength=len(graph.layer))
    radius = np.where(count > 1, 0.5 / np.sin(np.pi / np.maximum(count, 2)), 0.0)
    places = np.zeros((len(graph.tokens), 2))
    rings: list[Ring] = []
    edges: list[float] = []
    y, lean = 0.0, 1.0
    for parts in _rows(graph.layer, 2.0 * radius + 1.0):
        if rings and graph.layer[parts[0]] != graph.layer[rings[-1].component]:
            edges.append(y + 0.55)
        widths = 2.0 * radius[parts] + 1.0
        tall = float(radius[parts].max())
        y -= tall
        centres = np.cumsum(widths) - 0.5 * widths - 0.5 * widths.sum()
        # Rows of one token swing left and right, so that long edges do not hide behind tokens.
        alone = len(parts) == 1 and count[parts[0]] == 1
        lean = -lean
        for part, x in zip(parts, centres + (0.45 * lean if alone else 0.0), strict=True):
            inside = (graph.component == part).nonzero()[0]
            angle = 2.0 * np.pi * np.arange(len(inside)) / len(inside) + 0.5 * np.pi
            circle = np.stack((np.cos(angle), np.sin(angle)), -1)
            places[inside] = (x, y) + radius[part] * circle
            rings.append(Ring(int(part), float(x), y, float(radius[part]) + 0.3))
        y -= tall + 1.1
    rings.sort(key=lambda ring: ring.component)
    return Layout(places, rings, edges)


def _rows(layer: NDArray[np.int64], widths: NDArray[np.float64]) -> Iterator[list[int]]:
    """Yield components row by row, from the highest layer down."""
    for depth in range(int(layer.max(initial=-1)) + 1):
        row: list[int] = []
        for part in (layer == depth).nonzero()[0].tolist():
            if row and widths[row].sum() + widths[part] > _WIDEST:
                yield row
                row = []
            row.append(part)
        yield row
