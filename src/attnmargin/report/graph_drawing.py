"""A token-priority graph as a drawing: layers by priority, components as dashed groups."""

from html import escape

import numpy as np
from numpy.typing import NDArray

from attnmargin.graphs import TokenGraph
from attnmargin.graphs.layout import layout

_UNIT, _TALL = 84.0, 26.0
_LONGEST = 12


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"


def _box(name: str) -> float:
    """Width of the box around a name."""
    return 16.0 + 8.0 * len(_short(name))


def drawing(graph: TokenGraph) -> str:
    """SVG with tokens in boxes and arrows to what they dominate.

    Dashed rings are around components of several tokens. Inside a component all edges are drawn,
    between components those that no others imply.
    """
    plan = layout(graph)
    at = plan.places * (_UNIT, -_UNIT)
    names = [graph.vocabulary.name(int(k)) for k in graph.tokens]
    edge = max((_box(name) for name in names), default=0.0)
    circles = np.array([(r.x, -r.y, r.radius) for r in plan.rings]) * _UNIT
    border = np.array([0.5 * edge, 4.0])
    low = (circles[:, :2] - circles[:, 2:]).min(0) - border
    width, height = (circles[:, :2] + circles[:, 2:]).max(0) + border - low
    several = np.bincount(graph.component)[[r.component for r in plan.rings]] > 1
    parts = [_ring(x - low[0], y - low[1], r) for x, y, r in circles[several]]
    parts += [_arrow(at[i] - low, at[j] - low, names[i], names[j]) for i, j in _shown(graph, at)]
    parts += [_token(at[i] - low, name) for i, name in enumerate(names)]
    words = f"Graph of last token {graph.name}: {len(names)} tokens"
    return (
        f'<svg class="graph" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'role="img" aria-label="{escape(words)}">{_MARKER}{"".join(parts)}</svg>'
    )


_MARKER = (
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
    'orient="auto"><path d="M0 0L8 4L0 8z" fill="currentColor"/></marker></defs>'
)


def _shown(graph: TokenGraph, at: NDArray[np.float64]) -> list[tuple[int, int]]:
    """Edges to draw: all inside components, and the shortest of each pair that is not implied."""
    ends = [(int(i), int(j)) for i, j in graph.edges]
    shortest: dict[tuple[int, int], tuple[int, int]] = {}
    for i, j in sorted(ends, key=lambda e: -float(np.linalg.norm(at[e[0]] - at[e[1]]))):
        shortest[int(graph.component[i]), int(graph.component[j])] = (i, j)
    inside = [e for e in ends if graph.component[e[0]] == graph.component[e[1]]]
    return inside + [shortest[int(a), int(b)] for a, b in graph.covers]


def _ring(x: float, y: float, radius: float) -> str:
    return f'<circle class="ring" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"/>'


def _token(at: NDArray[np.float64], name: str) -> str:
    width = _box(name)
    return (
        f'<g class="token"><title>{escape(name)}</title><rect x="{at[0] - width / 2:.1f}" '
        f'y="{at[1] - _TALL / 2:.1f}" width="{width:.1f}" height="{_TALL:g}" rx="8"/>'
        f'<text x="{at[0]:.1f}" y="{at[1] + 5:.1f}">{escape(_short(name))}</text></g>'
    )


def _arrow(tail: NDArray[np.float64], head: NDArray[np.float64], name: str, other: str) -> str:
    """A line from box to box, a little to the side, so that arrows to and fro are two."""
    way = (head - tail) / np.linalg.norm(head - tail)
    side = 4.0 * np.array([-way[1], way[0]])
    a = tail + side + _reach(way, name) * way
    b = head + side - _reach(way, other) * way
    return f'<path class="edge" d="M{a[0]:.1f} {a[1]:.1f}L{b[0]:.1f} {b[1]:.1f}"/>'


def _reach(way: NDArray[np.float64], name: str) -> float:
    """How far the border of a box lies from its middle along a direction."""
    half = np.array([_box(name), _TALL]) / 2.0 + 2.0
    return float(np.min(half / np.maximum(np.abs(way), 1e-9)))
