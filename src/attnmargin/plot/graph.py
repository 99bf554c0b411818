"""A token-priority graph as a drawing: layers by priority, components as dashed groups."""

from html import escape

import numpy as np
from numpy.typing import NDArray

from attnmargin.graphs import TokenGraph
from attnmargin.graphs.layout import layout

Floats = NDArray[np.float64]
# Height of a box, and distance of rows.
_TALL, _ROW = 26.0, 84.0
_LONGEST = 14


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"


def _box(name: str) -> float:
    """Width of the box around a name."""
    return 16.0 + 8.0 * len(_short(name))


def drawing(graph: TokenGraph) -> str:
    """SVG with tokens in boxes and arrows to what they dominate, a line between layers.

    Dashed rings are around components of several tokens. Inside a component all edges are drawn,
    between components those that no others imply, from ring to ring.
    """
    plan, names = layout(graph), [graph.vocabulary.name(int(k)) for k in graph.tokens]
    unit = np.array([max(_ROW, max(map(_box, names)) + 14.0), -_ROW])
    centre = np.array([(ring.x, ring.y) for ring in plan.rings]) * unit
    size = np.array([ring.radius for ring in plan.rings])[:, None] * np.abs(unit)
    low = (centre - size).min(0) - 4.0
    width, height = (centre + size).max(0) + 4.0 - low
    at, centre = plan.places * unit - low, centre - low
    several = np.bincount(graph.component) > 1
    parts = [_between(unit[1] * y - low[1], float(width)) for y in plan.edges]
    parts += [_ring(centre[c], size[c]) for c in several.nonzero()[0]]
    parts += _arrows(graph, at, np.array([_half(name) for name in names]), (centre, size))
    parts += [_token(at[i], name) for i, name in enumerate(names)]
    words = f"Graph of last token {graph.name}: {len(names)} tokens"
    return (
        f'<svg class="graph" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'role="img" aria-label="{escape(words)}">{_MARKER}{"".join(parts)}</svg>'
    )


def _arrows(graph: TokenGraph, at: Floats, half: Floats, rings: tuple[Floats, Floats]) -> list[str]:
    """Arrows inside components from box to box, and between them from ring to ring."""
    inside = [_arrow(at[i], at[j], half[i], half[j]) for i, j in graph.inner]
    first = [part[0] for part in _places(graph)]
    several = (np.bincount(graph.component) > 1)[:, None]
    middle = np.where(several, rings[0], at[first])
    border = np.where(several, rings[1], half[first])
    # A ring is an ellipse, which reaches less far than its box.
    power = np.where(several[:, 0], 2.0, np.inf)
    between = [
        _arrow(middle[c], middle[e], border[c], border[e], (power[c], power[e]))
        for c, e in graph.covers
    ]
    return inside + between


def _places(graph: TokenGraph) -> list[list[int]]:
    """The places of the tokens of every component."""
    return [(graph.component == c).nonzero()[0].tolist() for c in range(len(graph.layer))]


def _half(name: str) -> Floats:
    return np.array([_box(name), _TALL]) / 2.0 + 2.0


def _between(y: float, width: float) -> str:
    return f'<path class="between" d="M0 {y:.1f}H{width:.0f}"/>'


_MARKER = (
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
    'orient="auto"><path d="M0 0L8 4L0 8z" fill="currentColor"/></marker></defs>'
)


def _ring(at: Floats, size: Floats) -> str:
    return (
        f'<ellipse class="ring" cx="{at[0]:.1f}" cy="{at[1]:.1f}" rx="{size[0]:.1f}" '
        f'ry="{size[1]:.1f}"/>'
    )


def _token(at: Floats, name: str) -> str:
    width = _box(name)
    return (
        f'<g class="token"><title>{escape(name)}</title><rect x="{at[0] - width / 2:.1f}" '
        f'y="{at[1] - _TALL / 2:.1f}" width="{width:.1f}" height="{_TALL:g}" rx="8"/>'
        f'<text x="{at[0]:.1f}" y="{at[1] + 5:.1f}">{escape(_short(name))}</text></g>'
    )


def _arrow(
    tail: Floats,
    head: Floats,
    before: Floats,
    after: Floats,
    power: tuple[float, float] = (np.inf, np.inf),
) -> str:
    """A line from border to border, a little to the side, so that arrows to and fro are two."""
    way = (head - tail) / np.linalg.norm(head - tail)
    side = 4.0 * np.array([-way[1], way[0]])
    a = tail + side + _reach(way, before, power[0]) * way
    b = head + side - _reach(way, after, power[1]) * way
    return f'<path class="edge" d="M{a[0]:.1f} {a[1]:.1f}L{b[0]:.1f} {b[1]:.1f}"/>'


def _reach(way: Floats, half: Floats, power: float) -> float:
    """How far the border of a shape of some half size lies from its middle along a direction.

    Power 2 is an ellipse, ∞ a box.
    """
    return 1.0 / float(np.linalg.norm(way / half, power))
