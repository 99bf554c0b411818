"""Paper C, figure 2: two token-priority graphs, their components, and the cyclic data.

The text of the paper lacks the drawing; these seven sequences satisfy every statement about it.
"""

import numpy as np
from numpy.typing import NDArray

from attnmargin.graphs import TokenGraph, cyclic_data, token_graphs
from attnmargin.graphs.layout import Layout, layout
from attnmargin.papers.engine.claims import (
    Claim,
    stated,
)
from attnmargin.papers.engine.experiment import Arrays, Experiment, Point, Results, Task
from attnmargin.plot.panels import Panel, Picture, Series

# Tokens e₁ to e₄: sequences, each with the token that follows it.
VOCABULARY = ("e1", "e2", "e3", "e4")
SEQUENCES = (
    (("e2", "e3", "e1"), "e2"),
    (("e3", "e4", "e1"), "e3"),
    (("e4", "e4", "e1"), "e4"),
    (("e1", "e3", "e2"), "e1"),
    (("e3", "e1", "e2"), "e3"),
    (("e1", "e4", "e2"), "e2"),
    (("e3", "e4", "e2"), "e2"),
)


def _run(task: Task) -> Arrays:
    """Return the sequences as ids, ``(7, 3)``, and the labels."""
    place = {word: k for k, word in enumerate(VOCABULARY)}
    return {
        "sequences": np.array([[place[word] for word in words] for words, _ in SEQUENCES]),
        "labels": np.array([place[label] for _, label in SEQUENCES]),
    }


def _holds(words: str, found: object, wanted: object) -> Claim:
    return stated(words, None, f"{found} = {wanted}", found == wanted)


def _claims(results: Results) -> list[Claim]:
    x, y = results["data"]["sequences"], results["data"]["labels"]
    graphs = token_graphs(x, y, len(VOCABULARY))
    cyclic = cyclic_data(x, y, graphs)
    # Positions in the sequence count from one, as in the paper.
    own = [t + 1 for t in range(3) if x[-1, t] == y[-1]]
    related = [t + 1 for t in range(3) if x[-1, t] in cyclic.sequences[-1]]
    left = sorted({token + 1 for sequence in cyclic.sequences for token in sequence})
    parts = [[[k + 1 for k in part] for part in graph.components] for graph in graphs]
    right = [(int(g.last) + 1, [[k + 1 for k in part] for part in g.components])
             for g in _right(x, y)]  # fmt: skip
    return [
        _holds("last tokens", [int(k) + 1 for k in graphs.roots], [1, 2]),
        _holds("components of G(1) are four single tokens", sorted(parts[0]), [[1], [2], [3], [4]]),
        _holds("components of G(2)", parts[1], [[1, 2, 3], [4]]),
        _holds("cyclic samples", [int(i) + 1 for i in cyclic.index], [4, 5, 6, 7]),
        _holds("tokens that the cyclic data keep", left, [1, 2, 3]),
        _holds("graphs of the cyclic data, on the right", right, [(2, [[1, 2, 3]])]),
        _holds("O of the last sequence", own, [3]),
        _holds("R of the last sequence", related, [1, 3]),
    ]


def _right(x: NDArray[np.int64], y: NDArray[np.int64]) -> list[TokenGraph]:
    """Build the graphs of the cyclic data: the right-hand side of the figure."""
    cyclic = cyclic_data(x, y, token_graphs(x, y, len(VOCABULARY)))
    return list(token_graphs(cyclic.sequences, cyclic.labels, len(VOCABULARY)))


def _series(graph: TokenGraph, names: tuple[str, ...]) -> list[Series]:
    """Draw arrows, rings around components, and names."""
    plan: Layout = layout(graph)
    series: list[Series] = []
    for i, j in graph.edges:
        ends = plan.places[[i, j]]
        way = ends[1] - ends[0]
        ends = ends + np.outer([0.16, -0.16], way / np.linalg.norm(way))
        side = 0.05 * np.array([-way[1], way[0]]) / np.linalg.norm(way)
        ends = ends + side  # opposite arrows lie side by side
        series.append({"kind": "arrow", "name": "", "x": ends[:, 0], "y": ends[:, 1], "colour": 7})
    turn = np.linspace(0.0, 2.0 * np.pi, 61)
    for ring in plan.rings:
        x, y = ring.x + ring.radius * np.cos(turn), ring.y + ring.radius * np.sin(turn)
        series.append({"kind": "line", "name": "", "x": x, "y": y, "style": 1, "colour": 0})
    for place, token in zip(plan.places, graph.tokens, strict=True):
        series.append({"kind": "text", "name": names[int(token)], "x": place[:1], "y": place[1:]})
    return series


def _pictures(results: Results) -> list[Picture]:
    x, y = results["data"]["sequences"], results["data"]["labels"]
    sides = [(graph, "all data") for graph in token_graphs(x, y, len(VOCABULARY))]
    sides += [(graph, "cyclic data") for graph in _right(x, y)]
    panels = [
        Panel(title=f"{side}, G({graph.last + 1}): last token {VOCABULARY[graph.last]}",
              axes=("", ""), series=_series(graph, VOCABULARY), square=True, bare=True)
        for graph, side in sides
    ]  # fmt: skip
    caption = (
        "Seven sequences over four tokens: an arrow from each label to each token that it was seen "
        "with, per last token; dashed rings are components, the highest priority on top. "
        "Edges of a token to itself are left out. The cyclic data, on the right, keep only the "
        "component of several tokens."
    )
    return [Picture(name="fig2", caption=caption, panels=panels, columns=3)]


EXPERIMENTS = (
    Experiment("C:fig2", "Token-priority graphs of seven sequences", 1, (Point("data"),), _run,
               _claims, _pictures, unit="example"),
)  # fmt: skip
