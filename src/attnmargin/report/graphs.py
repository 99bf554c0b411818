"""Token-priority graphs as records and sentences."""

import math
from dataclasses import asdict
from typing import Any

import numpy as np

from attnmargin.base.words import counted
from attnmargin.graphs import Next, Rule, Score, TokenGraph, TokenGraphs
from attnmargin.report.marks import Mark

# Each rule in plain words.
RULES = {
    "retrieval": "one token dominates all others of the prompt: attention retrieves it (Theorem 3)",
    "alone": "the prompt has no other token",
    "composition": "tokens of the dominant component share the attention (Theorem 3)",
    "margin": "the graph leaves the order open; the max-margin direction decides",
    "tie": "the max-margin direction does not tell them apart: the theory is silent about shares",
    "unseen": "no training sequence ends with this token: nothing was learnt about it",
}


def next_record(answer: Next) -> dict[str, Any]:
    """Describe the next-token prediction, ready for JSON."""
    margin = answer.margin if math.isfinite(answer.margin) else None
    alone = answer.rule == Rule.RETRIEVAL and not answer.beaten
    return {
        "rule": str(answer.rule),
        "meaning": RULES["alone" if alone else str(answer.rule)],
        "tokens": [{"token": name, "probability": share} for name, share in answer.tokens],
        "beaten": answer.beaten,
        "margin": margin,
        "strange": answer.strange,
        "decided": answer.decided,
        "noise": answer.noise,
    }


def prompt_marks(record: dict[str, Any]) -> list[Mark]:
    """Mark the tokens of a prompt: those kept, with their shares, and the last one, which asks."""
    share = {own["token"]: own["probability"] for own in record["tokens"]}
    prompt, last = record["prompt"], len(record["prompt"]) - 1
    return [
        Mark(
            name=name,
            role="selected" if name in share else "",
            asks=place == last,
            score=None,
            share=share.get(name, 0.0) / prompt.count(name),
            times=prompt.count(name),
            first=name not in prompt[:place],
        )
        for place, name in enumerate(prompt)
    ]


def graph_record(graph: TokenGraph) -> dict[str, Any]:
    """Describe one graph, with its components from the highest priority down."""
    name = graph.vocabulary.name
    return {
        "last": graph.name,
        "tokens": len(graph.tokens),
        "edges": len(graph.edges),
        "acyclic": graph.acyclic,
        "components": [
            {"layer": int(layer), "tokens": [name(k) for k in part]}
            for part, layer in zip(graph.components, graph.layer, strict=True)
        ],
    }


def graphs_record(graphs: TokenGraphs, *, details: bool = True) -> dict[str, Any]:
    """Describe all graphs in numbers; ``details`` adds a record per graph."""
    samples = graphs.samples
    left_out = 0 if graphs.noise is None else graphs.noise.samples
    record: dict[str, Any] = {
        "samples": None if samples is None else samples.n + left_out,
        "tokens": None if samples is None else len(samples.tokens),
        "dropped": graphs.dropped,
        "unrealisable": graphs.unrealisable,
        "vocabulary": graphs.K,
        "graphs": len(graphs),
        "nodes": len(graphs.last),
        "edges": len(graphs.source),
        "components": len(graphs.size),
        "largest_component": int(graphs.size.max(initial=0)),
        "acyclic": graphs.acyclic,
        "noise": None if graphs.noise is None else noise_record(graphs),
    }
    if details:
        record["details"] = [graph_record(graph) for graph in graphs]
    return record


def noise_record(graphs: TokenGraphs) -> dict[str, Any]:
    """Describe the choices that contradict the graphs, most frequent last tokens first."""
    noise = graphs.noise
    assert noise is not None
    low, high = noise.intervals()
    name = graphs.vocabulary.name
    rows = [
        {
            "last": name(int(noise.last[i])),
            "share": float(noise.share[i]),
            "interval": [float(low[i]), float(high[i])],
            "contradictions": int(noise.wrong[i]),
        }
        for i in np.argsort(-noise.exposed, kind="stable")
    ]
    return {"share": noise.total, "contradictions": int(noise.wrong.sum()),
            "left out": noise.samples, "after": rows}  # fmt: skip


def noise_cells(record: dict[str, Any], most: int) -> tuple[list[str], list[list[str]]]:
    """Return the head and the rows of a table of noise per last token."""
    rows = [
        [own["last"], f"{own['share']:.1%}",
         f"{own['interval'][0]:.1%} to {own['interval'][1]:.1%}", f"{own['contradictions']:,}"]
        for own in record["after"][:most]
    ]  # fmt: skip
    return ["last token", "noise", "95 % interval", "choices against the order"], rows


def scores_record(found: list[Score], tested: int, unknown: int) -> dict[str, Any]:
    """Describe how well unseen sequences are predicted."""
    return {"sequences": tested, "unknown": unknown, "rules": [asdict(own) for own in found]}


def test_sentence(record: dict[str, Any]) -> str:
    """Say whether the automaton predicts unseen sequences better than simple rules."""
    worse = [own for own in record["rules"][1:] if own["worse"][1] <= 0.0]
    names = " and ".join(own["rule"] for own in worse)
    verdict = f"does not clearly beat {names}" if worse else "beats every simpler rule"
    left = f" ({counted(record['unknown'], 'other')} with unknown tokens)"
    return (
        f"On {counted(record['sequences'], 'unseen sequence')}"
        f"{left if record['unknown'] else ''} the automaton {verdict} in log-loss."
    )


def score_cells(record: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Return the head and the rows of a table of accuracies and losses."""
    rows = []
    for own in record["rules"]:
        low, high = own["accuracy_interval"]
        mean, least, most = own["worse"]
        worse = "" if own["rule"] == "automaton" else f"{mean:+.3f} ({least:+.3f} to {most:+.3f})"
        accuracy = f"{own['accuracy']:.1%} ({low:.1%} to {high:.1%})"
        rows.append([own["rule"], accuracy, f"{own['loss']:.3f}", worse])
    return ["rule", "accuracy", "log-loss", "beyond the automaton's"], rows


def findings(record: dict[str, Any]) -> list[str]:
    """State in sentences what a record of graphs shows."""
    count = "A stream" if record["samples"] is None else counted(record["samples"], "sequence")
    lines = [
        f"{count} over {record['vocabulary']:,} different tokens: "
        f"{counted(record['graphs'], 'graph')}, one per last token, with "
        f"{counted(record['nodes'], 'node')} and {counted(record['edges'], 'edge')}."
    ]
    if record["noise"] is not None:
        noise = record["noise"]
        lines.append(
            f"Noise: {counted(noise['contradictions'], 'choice')} against the order of the others, "
            f"as if {noise['share']:.1%} of all choices were random tokens of their sequence. "
            + (
                "They are left out of the graphs."
                if noise["left out"]
                else "Their arrows are left out."
            )
        )
    if record["dropped"]:
        lines.append(
            f"Left out: {counted(record['dropped'], 'more sequence')}, whose next token is not "
            "among the tokens, so that attention cannot produce it; their tokens are counted."
        )
    if record["unrealisable"]:
        lines.append(
            f"In {counted(record['unrealisable'], 'sequence')} the next token is not among the "
            "tokens: "
            "Assumption 2 fails, and the theorems do not apply."
        )
    elif record["acyclic"]:
        lines.append("No cycles: attention will retrieve one token, by strict priority.")
    else:
        lines.append(
            f"{counted(record['components'], 'component')}, the largest of "
            f"{record['largest_component']:,} tokens: between components attention retrieves by "
            "priority, inside one it composes."
        )
    return lines
