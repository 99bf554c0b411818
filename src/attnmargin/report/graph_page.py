"""The page of token-priority graphs: drawings, a view of graphs of any size, what comes next."""

import json
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from attnmargin.graph_table import findings
from attnmargin.graphs import TokenGraph, TokenGraphs
from attnmargin.report.graph_drawing import drawing
from attnmargin.report.html import figure, page, paragraph, section, write_page
from attnmargin.version import VERSION

# Graphs that are drawn, and their size at most.
_MOST_DRAWINGS, _LARGEST_DRAWING = 12, 24
# Numbers that the page carries at most, and the largest component whose shares it carries.
_MOST_NUMBERS, _LARGEST_COMPONENT = 600_000, 300

_STYLE = """<style>
svg.graph { color: var(--open); } .graph .ring { fill: none; stroke: #3a7bbf; stroke-dasharray: 5 4;
  stroke-width: 1.3; } .graph .edge { stroke: currentColor; stroke-width: 1.4; fill: none;
  marker-end: url(#tip); } .graph rect { fill: Canvas; stroke: currentColor; }
.graph text { fill: CanvasText; font-size: 14px; text-anchor: middle; }
.layer { border-top: 1px solid var(--line); padding: .4rem 0; } .layer h4 { margin: 0 0 .3rem;
  font-size: .85rem; opacity: .75; font-weight: 500; }
.groups { display: flex; flex-wrap: wrap; gap: .35rem; } .group { border: 1.5px dashed #3a7bbf;
  border-radius: .7rem; padding: .25rem; display: inline-flex; flex-wrap: wrap; gap: .25rem; }
.chip { font: inherit; color: inherit; background: var(--soft); border: 1px solid var(--line);
  border-radius: .5rem; padding: .05rem .5rem; cursor: pointer; overflow-wrap: anywhere; }
.here .chip { border: 2px solid var(--pick); font-weight: 600; }
.below .chip { background: color-mix(in srgb, var(--good) 25%, transparent); }
.above .chip { background: color-mix(in srgb, var(--pick) 25%, transparent); }
.ask { display: flex; flex-wrap: wrap; gap: .8rem; margin: .6rem 0; }
.ask label { display: grid; gap: .2rem; font-size: .9rem; } .ask input { font: inherit;
  padding: .25rem .5rem; min-width: 12rem; max-width: 100%; }
.bar { background: var(--pick); height: .8rem; display: inline-block; border-radius: .2rem; }
</style>"""

_WORDS = (
    "For each last token there is one graph. An arrow leads from a token that came next to a token "
    "that it was seen with, and so was preferred to. Tokens that can be reached from each other "
    "form a component (dashed): none of them has priority. Attention, trained long enough to "
    "predict the next token, looks at the last token, keeps the tokens of the highest component "
    "that is present, suppresses all others, and shares itself among the kept ones."
)
_SOURCE = (
    "Theory: Y. Li, Y. Huang, M. E. Ildiz, A. S. Rawat, S. Oymak, Mechanics of Next Token "
    "Prediction with Self-Attention, Theorem 3; log-loss, C Eᵀ = I, orthonormal embeddings."
)


def write_graphs(path: Path, graphs: TokenGraphs, record: dict[str, Any]) -> Path:
    """Write the page of graphs; ``record`` is that of :mod:`attnmargin.graph_table`."""
    title = f"What attention learns from {Path(record['file']).name}"
    parts = [
        _STYLE,
        *map(paragraph, (*findings(record), _WORDS)),
        _next(record.get("next")),
        _drawings(graphs),
        _explorer(graphs),
        f"<footer><p><small>{escape(_SOURCE)} attnmargin {VERSION}</small></p></footer>",
    ]
    return write_page(path, page(title, "".join(parts)))


def _next(record: dict[str, Any] | None) -> str:
    """What comes after the prompt of the command."""
    if record is None:
        return ""
    rows = "".join(
        f"<tr><td>{escape(token['token'])}</td><td>{token['probability']:.4f}</td><td>"
        f'<span class="bar" style="width:{9 * token["probability"]:.2f}rem"></span></td></tr>'
        for token in record["tokens"]
    )
    prompt = " ".join(record["prompt"])
    words = f"{record['rule'].capitalize()}: {record['meaning']}."
    beaten = f"Suppressed: {', '.join(record['beaten'])}." if record["beaten"] else ""
    return section(f"After “{prompt}”", f"<table>{rows}</table>", paragraph(f"{words} {beaten}"))


def _drawings(graphs: TokenGraphs) -> str:
    """The first graphs that are small enough to be drawn."""
    small = [graph for graph in _by_frequency(graphs) if len(graph.tokens) <= _LARGEST_DRAWING]
    if not small:
        return ""
    shown = [
        figure(drawing(graph), f"after “{graph.name}”: {_count(graph)}")
        for graph in small[:_MOST_DRAWINGS]
    ]
    left = len(graphs) - len(shown)
    note = f"{left:,} more graphs are in the list below." if left else ""
    words = "The highest priority is on top; arrows that others imply are left out. " + note
    pictures = f'<div class="pictures">{"".join(shown)}</div>'
    return section("The graphs", paragraph(words), pictures)


def _count(graph: TokenGraph) -> str:
    tokens, parts = len(graph.tokens), len(graph.layer)
    return f"{tokens} token{'s' * (tokens > 1)}, {parts} component{'s' * (parts > 1)}"


def _explorer(graphs: TokenGraphs) -> str:
    """Fields to choose a graph and to ask what comes next, with the graphs as data."""
    carried, rest = _carried(graphs)
    names = [graphs.vocabulary.name(k) for k in range(graphs.K)]
    data = {"names": names, "graphs": carried, "rest": rest}
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")
    options = "".join(f'<option value="{escape(names[g["last"]])}">' for g in carried)
    first = escape(names[carried[0]["last"]]) if carried else ""
    script = files("attnmargin.report").joinpath("explorer.js").read_text("utf-8")
    note = f"{len(rest):,} graphs are too large for this page. " if rest else ""
    fields = (
        '<div class="ask"><label>last token<input id="last" list="lasts" value="' + first + '">'
        f'</label><datalist id="lasts">{options}</datalist>'
        '<label>show tokens with<input id="filter"></label></div>'
        '<p id="about" aria-live="polite"></p><div id="layers"></div>'
    )
    ask = (
        '<div class="ask"><label>tokens, separated by blanks<input id="prompt"></label></div>'
        '<p id="answer" aria-live="polite"></p>'
    )
    return (
        section("Ask what comes next", ask)
        + section("Look through the graphs", paragraph(note) if note else "", fields)
        + f'<script type="application/json" id="graphs">{text}</script><script>{script}</script>'
    )


def _carried(graphs: TokenGraphs) -> tuple[list[dict[str, Any]], list[int]]:
    """Graphs as plain numbers, the most frequent last tokens first, and those left out."""
    left, found, rest = _MOST_NUMBERS, [], []
    for graph in _by_frequency(graphs):
        size = 2 * len(graph.tokens) + 2 * len(graph.condensation)
        if size > left:
            rest.append(graph.last)
            continue
        left -= size
        found.append(
            {
                "last": graph.last,
                "tokens": graph.tokens.tolist(),
                "components": graph.component.tolist(),
                "layers": graph.layer.tolist(),
                "edges": graph.condensation.tolist(),
                "soft": _soft(graphs, graph),
            }
        )
    return found, rest


def _by_frequency(graphs: TokenGraphs) -> list[TokenGraph]:
    if graphs.samples is None:
        return list(graphs)
    count = np.bincount(graphs.samples.last, minlength=graphs.K)
    return sorted(graphs, key=lambda graph: -int(count[graph.last]))


def _soft(graphs: TokenGraphs, graph: TokenGraph) -> list[float | None]:
    """Logits inside components, rounded; None where the component is too large."""
    largest = int(np.bincount(graph.component).max())
    if graphs.samples is None or largest > _LARGEST_COMPONENT:
        return [None] * len(graph.tokens)
    return [round(float(x), 6) for x in graphs.shares(graph)]
