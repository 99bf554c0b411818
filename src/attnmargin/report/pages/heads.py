"""The page of heads: a map of layers and heads, and for each head its sentences."""

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from attnmargin.models.collection import Heads
from attnmargin.models.shown import Shown
from attnmargin.models.study import HeadStudy
from attnmargin.report.heads import head_cells, wanted_cells
from attnmargin.report.numbers import number
from attnmargin.report.pages.html import (
    folded,
    json_script,
    page,
    paragraph,
    section,
    table,
    write_page,
)

# Queries of a head that are shown, and the least attention that is shaded.
_QUERIES, _LEAST = 8, 0.005
_FACTS = ("layer", "head", "saturation", "entropy", "efficiency", "cosine", "free", "kept", "norms",
          "asked", "draws", "feasible", "words", "reason")  # fmt: skip

_ASKED = {
    "widest": "its most decided queries",
    "saturated": "all its saturated queries",
    "all": "all its queries",
}
_SLACK = (
    "With slack, a query may miss its lead of one by ξ; the solution makes ½ ‖W‖² + C Σ ξ² least. "
    "Efficiency then says how much of what can be gained over W = 0 the head gains, at the scale "
    "that suits it best. A query without slack has its lead; one with a slack below 1 still "
    "selects its token."
)

STYLE = """
.map { display: grid; gap: 2px; width: max-content; min-width: min(100%, 44rem);
  font-variant-numeric: tabular-nums; font-size: .8rem; }
.map span { display: grid; place-items: center; padding: 0 .25rem; }
.map button { all: unset; box-sizing: border-box; min-width: 1.55rem; min-height: 1.7rem;
  text-align: center; cursor: pointer; border-radius: .2rem; border: 2px solid transparent;
  print-color-adjust: exact;
  background: color-mix(in srgb, var(--warm) calc(var(--a) * 70%), var(--soft)); }
.map button.below { background: color-mix(in srgb, var(--cool) calc(var(--a) * 70%), var(--soft)); }
.map button:hover, .map button:focus-visible { border-color: currentColor; }
.map button[aria-pressed=true] { border-color: currentColor; font-weight: 700; }
.choice { display: flex; flex-wrap: wrap; gap: .3rem 1rem; margin: .6rem 0; }
.facts { display: grid; gap: .5rem 1.5rem; margin: 0;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 13rem), 1fr)); }
.facts dt { font-size: .85rem; }
.facts dd { margin: 0; font-variant-numeric: tabular-nums; }
.query { border-left: .3rem solid var(--line); margin: 1rem 0; padding: .1rem 0 .1rem .8rem; }
.query p { margin: .2rem 0; max-width: none; }
.query .says { font-size: .9rem; }
.words .on { margin-left: -2px; }
.words .on:not(.wins, .guards) { margin-left: calc(-.15rem - 2px); padding-left: 0; }
.walk { display: flex; gap: .5rem; align-items: center; flex-wrap: wrap; }
.walk button { font: inherit; padding: .2rem .7rem; border: 1px solid var(--line); color: inherit;
  border-radius: .4rem; background: var(--soft); cursor: pointer; }
@media (max-width: 40rem) { .map { font-size: .62rem; gap: 1px; min-width: 100%; }
  .map button { min-width: 1.35rem; } .map span { padding: 0 .1rem; } }
@media print { .choice { display: none; } }
"""


def write_heads(
    path: Path, heads: Heads, studies: Sequence[HeadStudy], record: dict[str, Any]
) -> Path:
    """Write one self-contained page about the heads of a model on some texts."""
    script = (files("attnmargin.report.pages") / "heads.js").read_text("utf-8")
    body = [
        f'<div class="verdict">{"".join(map(paragraph, _verdict(record)))}</div>',
        _map(),
        _head(record),
    ]
    if "wanted" in record:
        body.append(_wanted(record["wanted"]))
    body += [
        _numbers(record),
        _reading(record),
        json_script("data", _data(heads, studies, record)),
        f"<script>{script}</script>",
    ]
    title = f"What the heads of {Path(record['model']).name} select"
    return write_page(path, page(title, "".join(body), STYLE))


def _verdict(record: dict[str, Any]) -> list[str]:
    """Return the sentences about all heads; those about wanted pairs have a section."""
    wanted = record.get("wanted", {}).get("sentences", ())
    return [own for own in record["sentences"] if own not in wanted]


def _data(heads: Heads, studies: Sequence[HeadStudy], record: dict[str, Any]) -> dict[str, Any]:
    """Collect what the script draws; of the attention, only what is seen."""
    shares = {}
    for own in record.get("wanted", {}).get("heads", ()):
        shares[own["layer"], own["head"]] = own["pairs"]
    rows = []
    for study, head in zip(studies, record["heads"], strict=True):
        own = {name: head[name] for name in _FACTS}
        own["norms"] = {k: v for k, v in own["norms"].items() if k != "singular"}
        own["wanted"] = shares.get((study.layer, study.index))
        own["shown"] = [_shown(query) for query in study.shown[:_QUERIES]]
        rows.append(own)
    kind = {name: record[name] for name in ("which", "saturated", "price")}
    return kind | {"words": heads.words, "heads": rows}


def _shown(own: Shown) -> dict[str, Any]:
    return {
        "text": own.text, "query": own.position, "token": own.token,
        "margin": number(own.margin),
        "attention": [[k, round(s, 3)] for k, s in enumerate(own.attention) if s >= _LEAST],
        "guards": [[guard.token, round(guard.weight, 4)] for guard in own.guards],
    }  # fmt: skip


def _map() -> str:
    words = (
        "Layers from top to bottom, heads from left to right. Choose what the colour shows, then "
        "a head. z counts standard deviations of random heads with the same spectrum: orange is "
        "above them, blue below."
    )
    return section(
        "Map of the heads",
        '<div class="choice" id="choice" role="radiogroup" aria-label="what the colour shows">'
        "</div>",
        '<div class="scroll"><div class="map" id="map" role="group" aria-label="heads">'
        "</div></div>",
        paragraph(words, "legend"),
    )


def _head(record: dict[str, Any]) -> str:
    detail = "".join(paragraph(s) for s in record.get("detail", {}).get("sentences", ()))
    legend = (
        '<p class="words">A <i class="asks">query</i> looks at its sentence. The shade is its '
        'attention; <b class="wins" style="--a:.9">this token</b> is selected, and '
        '<i class="guards">these rivals</i> guard the selection: they would take it over first.'
        "</p>"
    )
    return section(
        "One head",
        '<p class="walk"><button id="before" type="button">← before</button>'
        '<strong id="name" aria-live="polite"></strong>'
        '<button id="after" type="button">after →</button></p>',
        '<dl class="facts" id="facts"></dl>',
        detail,
        legend,
        '<div id="shown"></div>',
        "<noscript><p>The sentences of each head need JavaScript; the numbers of all heads are in "
        "the table below.</p></noscript>",
    )


def _wanted(wanted: dict[str, Any]) -> str:
    layers = [[str(own["layer"]), own["words"]] for own in wanted["layers"]]
    return section(
        "The wanted selection",
        *(paragraph(s) for s in wanted["sentences"][:2]),
        table(*wanted_cells(wanted)),
        "<h3>Could any W do it?</h3>",
        table(["layer", "answer"], layers, wide=True),
    )


def _numbers(record: dict[str, Any]) -> str:
    head, rows = head_cells(record["heads"], intervals=True)
    return section("All numbers", folded(f"Numbers of all {len(rows)} heads", table(head, rows)))


def _reading(record: dict[str, Any]) -> str:
    parts = [
        "A head gives token s the logit xₛᵀ W zₜ when query t looks at it, with W = W_Kᵀ [W_Q, "
        "b_Q] / √m and zₜ = [xₜ; 1]. The token with the largest logit is selected; its margin is "
        "its lead over the next one, divided by the length of W.",
        "The attention SVM of a head is the shortest matrix that selects the same tokens for "
        f"{_ASKED[record['which']]} with lead one: no other matrix of its length has a larger "
        "margin. Efficiency is the margin of the head over that best margin, from 0 to 1. The "
        "cosine is that of the two matrices. Both are taken after projecting W on the span of "
        "token differences times the span of queries, because the rest of W changes no selection.",
    ]
    if record["price"] is not None:
        parts.append(_SLACK)
    parts.append(
        "Random heads have the same singular values between random directions, and are judged on "
        "the same texts, each on the queries that it decides most clearly."
    )
    return section("How to read this", *map(paragraph, parts))
