"""The page of token-priority graphs: drawings, a search for any size, and what comes next."""

from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from attnmargin.base.words import counted
from attnmargin.graphs import TokenGraph, TokenGraphs
from attnmargin.graphs.automaton import Automaton, margins
from attnmargin.plot.graph_svg import graph_markup
from attnmargin.plot.svg import Markup
from attnmargin.report.graphs import findings, noise_cells, prompt_marks, score_cells, test_sentence
from attnmargin.report.pages.coloured import marked_sentence
from attnmargin.report.pages.html import (
    figure,
    json_script,
    page,
    paragraph,
    section,
    table,
    terms,
    write_page,
)
from attnmargin.version import VERSION

# Maximum number of drawings, and of tokens in one.
_MOST_DRAWINGS, _LARGEST_DRAWING = 12, 24
# Maximum amount of numbers in the page, and of tokens in a component whose shares it includes.
_MOST_NUMBERS, _LARGEST_COMPONENT = 1_500_000, 300
# Maximum number of edges between components for a graph whose margins it includes.
_MOST_EDGES = 250

_STYLE = """
svg.graph { color: var(--open); } .graph .ring { fill: none; stroke: #4a90d9; stroke-dasharray: 5 4;
  stroke-width: 1.6; } .graph .edge { stroke: currentColor; stroke-width: 1.4; fill: none;
  marker-end: url(#tip); } .graph rect { fill: Canvas; stroke: currentColor; }
.graph text { fill: CanvasText; font-size: 14px; text-anchor: middle; }
.graph .between { stroke: var(--line); stroke-width: 1; }
.drawings { display: grid; gap: 1.2rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); align-items: start; }
.legend .chip { cursor: default; font-size: .85rem; } .ask.wide label, .ask.wide input
  { width: min(100%, 44rem); }
.layer { border-top: 1px solid var(--line); padding: .4rem 0; } .layer h3 { margin: 0 0 .3rem;
  font-size: .85rem; font-weight: 500; }
.groups { display: flex; flex-wrap: wrap; gap: .35rem; } .group { border: 1.5px dashed #3a7bbf;
  border-radius: .7rem; padding: .25rem; display: inline-flex; flex-wrap: wrap; gap: .25rem; }
.chip { font: inherit; color: inherit; background: var(--soft); border: 1px solid var(--line);
  border-radius: .5rem; padding: .05rem .5rem; cursor: pointer; overflow-wrap: anywhere; }
.here .chip { border: 2px solid var(--pick); font-weight: 600; }
.below .chip { background: color-mix(in srgb, var(--good) 25%, transparent); }
.above .chip { background: color-mix(in srgb, var(--pick) 25%, transparent); }
.ask { display: flex; flex-wrap: wrap; gap: .8rem; margin: .6rem 0; }
.ask label { display: grid; gap: .2rem; font-size: .9rem; } .ask input { font: inherit;
  padding: .25rem .5rem; min-width: 12rem; max-width: 100%; box-sizing: border-box; }
.bar { background: var(--pick); height: .8rem; display: inline-block; border-radius: .2rem; }
"""

_WORDS = (
    "For each last token there is one graph. An arrow A → B means: both stood in a sequence with "
    "this last token, and A came next. Tokens that arrows lead to and fro between form a component "
    "(dashed): none of them has priority. Attention, trained long enough to predict the next "
    "token, looks at the last token, keeps the tokens of the component that dominates all others "
    "of the prompt, suppresses the rest, and shares itself among the kept ones."
)
_LAYERS = (
    "The layer of a component is the length of the longest path of arrows down to it. Only "
    "what a path of arrows connects is ordered: tokens of one layer that are not in one component "
    "are neither equal nor ranked."
)
_SOURCE = (
    "Theory: Y. Li, Y. Huang, M. E. Ildiz, A. S. Rawat, S. Oymak, Mechanics of Next Token "
    "Prediction with Self-Attention, Theorem 3: log-loss, a head that reads every token exactly, "
    "and embeddings that are orthonormal."
)


def write_graphs(path: Path, graphs: TokenGraphs, record: dict[str, Any]) -> Path:
    """Write the page of graphs; :mod:`attnmargin.cli.graphs` provides ``record``."""
    title = f"What attention learns from {Path(record['file']).name}"
    parts = [
        f'<div class="verdict">{"".join(map(paragraph, findings(record)))}</div>',
        _next(record.get("next")),
        _noise(record["noise"]),
        _test(record.get("test")),
        _drawings(graphs),
        _explorer(graphs, record["file"]),
        terms(_WORDS, _LAYERS),
        f"<footer><p><small>{escape(_SOURCE)} attnmargin {VERSION}</small></p></footer>",
    ]
    return write_page(path, page(title, "".join(parts), _STYLE))


def _next(record: dict[str, Any] | None) -> str:
    """Show what comes after the prompt of the command."""
    if record is None:
        return ""
    rows = [[own["token"], f"{own['probability']:.4f}", _bar(own["probability"])]
            for own in record["tokens"]]  # fmt: skip
    words = f"{record['rule'].capitalize()}: {record['meaning']}."
    beaten = f"Suppressed: {', '.join(record['beaten'])}." if record["beaten"] else ""
    return section(
        "What comes next",
        marked_sentence(prompt_marks(record)),
        table(["next token", "probability", ""], rows),
        paragraph(f"{words} {beaten}", "legend"),
    )


def _noise(record: dict[str, Any] | None) -> str:
    """Show how many choices are noise, per last token."""
    if record is None:
        return ""
    words = (
        "A choice is noise if another token of its sequence has priority, and such choices are no "
        "more frequent than random ones would be. The share also counts the random choices that "
        "agree with the order by chance."
    )
    return section("Noise", table(*noise_cells(record, _MOST_DRAWINGS)), paragraph(words, "legend"))


def _test(record: dict[str, Any] | None) -> str:
    """Show how well unseen sequences are predicted."""
    if record is None:
        return ""
    words = (
        "All rules choose among the tokens of the sequence. Bigram: in proportion to how often a "
        "token followed the last token; most frequent: to how often it came next at all; uniform: "
        "to how often it stands in the sequence. Log-loss is in nats per sequence; intervals are "
        "of 95 %."
    )
    own = table(*score_cells(record), wide=True)
    return section("Unseen sequences", paragraph(test_sentence(record)), own,
                   paragraph(words, "legend"))  # fmt: skip


def _bar(share: float) -> Markup:
    return Markup(f'<td><span class="bar" style="width:{9 * share:.2f}rem"></span></td>')


def _drawings(graphs: TokenGraphs) -> str:
    """Draw the most frequent graphs that are small enough."""
    small = [graph for graph in _by_frequency(graphs) if len(graph.tokens) <= _LARGEST_DRAWING]
    if not small:
        return ""
    shown = [
        figure(graph_markup(graph), f"after “{graph.name}”: {_count(graph)}")
        for graph in small[:_MOST_DRAWINGS]
    ]
    left = len(graphs) - len(shown)
    note = (
        f"Drawn are the most frequent last tokens whose graphs have at most {_LARGEST_DRAWING} "
        f"tokens; the other {counted(left, 'graph')} can be looked through below."
        if left
        else ""
    )
    words = (
        "An arrow A → B: both stood in a sequence with this last token, and A came next. A dashed "
        "ring is a component: none of its tokens has priority, and an arrow at the ring is one of "
        "all of them. The first layer is on top; arrows that others imply are left out. "
        f"{note}"
    )
    pictures = f'<div class="drawings">{"".join(shown)}</div>'
    return section("The graphs", pictures, paragraph(words, "legend"))


def _count(graph: TokenGraph) -> str:
    return f"{counted(len(graph.tokens), 'token')}, {counted(len(graph.layer), 'component')}"


def _explorer(graphs: TokenGraphs, file: str) -> str:
    """Build the fields to choose a graph and ask what comes next, with the graphs as data."""
    carried, rest = _carried(graphs)
    names = [graphs.vocabulary.name(k) for k in range(graphs.K)]
    data = {"names": names, "graphs": carried, "rest": rest, "file": file}
    options = "".join(f'<option value="{escape(names[g["last"]])}">' for g in carried)
    first = escape(names[carried[0]["last"]]) if carried else ""
    script = files("attnmargin.report.pages").joinpath("graphs.js").read_text("utf-8")
    note = f"{len(rest):,} graphs are left out to keep this page small. " if rest else ""
    fields = (
        '<div class="ask"><label>last token<input id="last" list="lasts" value="' + first + '">'
        f'</label><datalist id="lasts">{options}</datalist>'
        '<label>only tokens that contain<input id="filter"></label></div>'
        '<p id="about" aria-live="polite"></p>'
        '<p class="legend"><span class="here"><span class="chip">chosen</span></span> '
        '<span class="below"><span class="chip">dominated by it</span></span> '
        '<span class="above"><span class="chip">dominates it</span></span></p>'
        '<div id="layers"></div>'
    )
    ask = (
        '<div class="ask wide"><label>tokens of a sequence, separated by blanks, the last one last'
        f'<input id="prompt" placeholder="{escape(_example(graphs))}"></label></div>'
        '<p id="answer" aria-live="polite"></p>'
    )
    return (
        '<div class="screen">'
        + section("Ask what comes next", ask)
        + section("Look through the graphs", paragraph(note) if note else "", fields)
        + "</div>"
        + json_script("graphs", data)
        + f"<script>{script}</script>"
    )


def _example(graphs: TokenGraphs) -> str:
    """Return the first sequence of the data, as a prompt."""
    if graphs.samples is None or graphs.samples.n == 0:
        return ""
    first = graphs.samples.tokens[: graphs.samples.start[1]]
    return " ".join(graphs.vocabulary.name(int(k)) for k in first[-12:])


def _carried(graphs: TokenGraphs) -> tuple[list[dict[str, Any]], list[int]]:
    """List graphs as plain numbers, most frequent last tokens first; also list those left out."""
    left, found, rest = _MOST_NUMBERS, [], []
    automaton = Automaton(graphs) if graphs.samples is not None else None
    for graph in _by_frequency(graphs):
        size = 4 * len(graph.tokens) + 2 * len(graph.condensation)
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
                "soft": _soft(automaton, graph),
                "hard": _hard(graph),
                "noise": 0.0 if graphs.noise is None else round(graphs.noise.at(graph.last), 4),
            }
        )
    return found, rest


def _by_frequency(graphs: TokenGraphs) -> list[TokenGraph]:
    if graphs.samples is None:
        return list(graphs)
    count = np.bincount(graphs.samples.last, minlength=graphs.K)
    return sorted(graphs, key=lambda graph: -int(count[graph.last]))


def _soft(automaton: Automaton | None, graph: TokenGraph) -> list[float | None]:
    """Compute rounded logits inside components; all None without data or if one is too large."""
    largest = int(np.bincount(graph.component).max())
    if automaton is None or largest > _LARGEST_COMPONENT:
        return [None] * len(graph.tokens)
    return [round(float(x), 6) for x in automaton.shares(graph)]


def _hard(graph: TokenGraph) -> list[float] | None:
    """Compute rounded logits of W_mm; None if there are too many edges to solve for them here."""
    if len(graph.condensation) > _MOST_EDGES:
        return None
    return [round(float(x), 6) for x in margins(graph)]
