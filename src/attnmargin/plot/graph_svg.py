"""A token-priority graph as SVG: layers by priority, components as dashed groups."""

from attnmargin.graphs import TokenGraph
from attnmargin.plot.graph_geometry import Floats, graph_plan
from attnmargin.plot.svg import Markup, element, straight


def graph_markup(graph: TokenGraph) -> str:
    """Draw tokens in boxes, arrows to the tokens they dominate, and a line between layers."""
    plan = graph_plan(graph)
    width, height = plan.size
    parts = [_between(y, width) for y in plan.between]
    parts += [_ring(*ring) for ring in plan.rings]
    parts += [element("path", {"class": "edge", "d": straight(*arrow)}) for arrow in plan.arrows]
    parts += [
        _token(at, half, name, word)
        for at, half, name, word in zip(
            plan.places, plan.halves, plan.names, plan.words, strict=True
        )
    ]
    label = f"Graph of last token {graph.name}: {len(plan.names)} tokens"
    frame = {"class": "graph", "viewBox": f"0 0 {width:.0f} {height:.0f}", "width": width}
    return element("svg", {**frame, "role": "img", "aria-label": label}, _MARKER, *parts)


_TIP = {"id": "tip", "viewBox": "0 0 8 8", "refX": 7, "refY": 4, "markerWidth": 7}
_MARKER = element(
    "defs",
    None,
    element(
        "marker",
        {**_TIP, "markerHeight": 7, "orient": "auto"},
        element("path", {"d": "M0 0L8 4L0 8z", "fill": "currentColor"}),
    ),
)


def _between(y: float, width: float) -> Markup:
    return element("path", {"class": "between", "d": straight((0.0, y), (width, y))})


def _ring(at: Floats, half: Floats) -> Markup:
    place = {"cx": at[0], "cy": at[1], "rx": half[0], "ry": half[1]}
    return element("ellipse", {"class": "ring", **place})


def _token(at: Floats, half: Floats, name: str, word: str) -> Markup:
    (x, y), (width, height) = at - half, 2.0 * half
    box = {"x": x, "y": y, "width": width, "height": height, "rx": 8}
    return element(
        "g",
        {"class": "token"},
        element("title", None, name),
        element("rect", box),
        element("text", {"x": at[0], "y": at[1] + 5.0}, word),
    )
