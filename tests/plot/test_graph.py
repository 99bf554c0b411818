"""Drawings of token-priority graphs: everything inside of the frame, the same plan everywhere."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

import attnmargin as am
from attnmargin.graphs import TokenGraph
from attnmargin.plot.graph_geometry import graph_plan
from attnmargin.plot.graph_svg import graph_markup
from attnmargin.plot.labels import letters, shortened

SHORT = ["a", "b", "c", "d", "e", "f"]
LONG = [f"incomprehensibilities-{word}" for word in SHORT]
WIDE = [f"注意力機制的邊界{word}" for word in SHORT]


def graph_of(names: list[str], cyclic: bool) -> TokenGraph:
    """A chain of five tokens over the last one; or a ring of four over two single ones."""
    labels = [names[0], names[1], names[2], names[3], names[4]]
    rows = [[*names[k:5], names[5]] for k in range(5)]
    if cyclic:
        labels.append(names[3])
        rows.append([names[0], names[3], names[5]])
    return am.token_graphs(rows, labels)[names[5]]


def shapes(svg: str) -> tuple[np.ndarray, np.ndarray]:
    """Size of the viewBox, and the corners ``(N, 4)`` of rectangles, ellipses and paths."""
    root = ElementTree.fromstring(svg)
    size = np.array([float(x) for x in root.attrib["viewBox"].split()[2:]])
    boxes = []
    for part in root.iter():
        get = {name: float(value) for name, value in part.attrib.items() if _is_number(value)}
        if part.tag == "rect":
            boxes.append((get["x"], get["y"], get["x"] + get["width"], get["y"] + get["height"]))
        elif part.tag == "ellipse":
            x, y, a, b = (get[name] for name in ("cx", "cy", "rx", "ry"))
            boxes.append((x - a, y - b, x + a, y + b))
        elif part.tag == "path":
            found = np.array(re.findall(r"-?[\d.]+", part.attrib["d"]), dtype=float)
            if len(found) % 2:  # "M0 yHwidth" of a line between layers
                found = np.array([found[0], found[1], found[2], found[1]])
            places = found.reshape(-1, 2)
            boxes.append((*places.min(0), *places.max(0)))
    return size, np.array(boxes)


def _is_number(text: str) -> bool:
    return re.fullmatch(r"-?[\d.]+", text) is not None


@pytest.mark.parametrize("cyclic", [False, True])
@pytest.mark.parametrize("names", [SHORT, LONG, WIDE])
def test_everything_lies_inside_of_the_view_box(names: list[str], cyclic: bool) -> None:
    size, boxes = shapes(graph_markup(graph_of(names, cyclic)))
    assert len(boxes) >= 10
    assert boxes.min() >= 0.0
    assert (boxes[:, 2:] <= size).all()


def test_rings_hold_their_boxes_and_boxes_their_names() -> None:
    graph = graph_of(LONG, cyclic=True)
    plan = graph_plan(graph)
    (centre, radii), inside = plan.rings[0], graph.component == 0
    assert inside.sum() == 4
    corners = np.abs(plan.places[inside] - centre) + plan.halves[inside]
    assert (np.linalg.norm(corners / radii, axis=-1) < 1.0).all()
    narrow, wide = (graph_plan(graph_of(names, False)).halves[0, 0] for names in (SHORT, WIDE))
    assert narrow < wide
    # A wide character takes about the size of the font, 14 pixels.
    assert 2.0 * wide >= 14.0 * len(graph_plan(graph_of(WIDE, False)).words[0])


def test_boxes_do_not_cover_each_other() -> None:
    plan = graph_plan(graph_of(WIDE, cyclic=True))
    low, high = plan.places - plan.halves, plan.places + plan.halves
    shared = np.minimum(high[:, None], high[None]) - np.maximum(low[:, None], low[None])
    overlap = (shared > 0).all(-1)
    assert overlap.sum() == len(plan.names)  # each with itself


def test_names_are_escaped_and_told_in_full() -> None:
    text = graph_markup(graph_of([*LONG[:4], "<b>", "&"], cyclic=False))
    assert "<title>&lt;b&gt;</title>" in text
    assert f"<title>{LONG[0]}</title>" in text
    assert 'aria-label="Graph of last token &amp;: 6 tokens"' in text


def test_letters_of_all_scripts() -> None:
    assert [letters(word) for word in ("abc", "字", "e\u0301", "")] == [3, 2, 1, 0]
    assert shortened("字字字", 6) == "字字字"
    assert shortened("字字字", 5) == "字字…"
    assert letters(shortened("a" * 50, 14)) == 14


def test_the_figure_has_the_plan_of_the_page() -> None:
    graph = graph_of(LONG, cyclic=True)
    figure = am.plot.graph(am.token_graphs([[*LONG[:5], LONG[5]]], [LONG[0]]), LONG[5])
    axes = figure.axes[0]
    words = {text.get_text() for text in axes.texts} - {""}
    assert words == set(graph_plan(graph).words)
    assert not axes.axison


def test_unknown_last_tokens() -> None:
    graphs = am.token_graphs([["a", "b"]], ["a"])
    with pytest.raises(am.InputError, match="last token: got the token 'x'; needs tokens of"):
        am.plot.graph(graphs, "x")
    with pytest.raises(am.InputError, match="last token: got 'a'; needs a token that ends"):
        am.plot.graph(graphs, "a")
    with pytest.raises(am.InputError, match="graphs: got a dict"):
        am.plot.graph({}, "a")  # type: ignore[arg-type]
