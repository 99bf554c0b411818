"""Token-priority graphs as records and printed tables."""

import json
import math
from typing import Any

import click

from attnmargin.graphs import Next, Rule, TokenGraph, TokenGraphs

_MOST_GRAPHS, _MOST_TOKENS = 12, 12

# What each rule means, in plain words.
RULES = {
    "retrieval": "one token dominates all others of the prompt: attention retrieves it (Theorem 3)",
    "alone": "the prompt has no other token",
    "composition": "tokens of the dominant component share the attention (Theorem 3)",
    "margin": "the graph leaves the order open; the max-margin direction decides",
    "tie": "the max-margin direction does not tell them apart: the theory is silent about shares",
    "unseen": "no training sequence ends with this token: nothing was learnt about it",
}


def read_prompt(words: str) -> list[str]:
    """Tokens separated by blanks, or a JSON list of tokens, which may have blanks in them."""
    if words.lstrip().startswith("["):
        try:
            listed = json.loads(words)
        except ValueError:
            return words.split()
        if isinstance(listed, list):
            return [str(token) for token in listed]
    return words.split()


def next_record(answer: Next) -> dict[str, Any]:
    """What comes next, as it stands in JSON."""
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
    }


def graph_record(graph: TokenGraph) -> dict[str, Any]:
    """One graph, with its components from the highest priority down."""
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
    """All numbers about graphs; ``details`` for every graph as well."""
    samples = graphs.samples
    record: dict[str, Any] = {
        "samples": None if samples is None else samples.n,
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
    }
    if details:
        record["details"] = [graph_record(graph) for graph in graphs]
    return record


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def findings(record: dict[str, Any]) -> list[str]:
    """What a record of graphs says, in sentences."""
    count = "A stream" if record["samples"] is None else _counted(record["samples"], "sequence")
    lines = [
        f"{count} over {record['vocabulary']:,} different tokens: {record['graphs']:,} graphs, one "
        f"per last token, with {record['nodes']:,} nodes and {record['edges']:,} edges."
    ]
    if record["dropped"]:
        lines.append(
            f"Left out: {_counted(record['dropped'], 'more sequence')}, whose next token is not "
            "among the tokens, so that attention cannot produce it; their tokens are counted."
        )
    if record["unrealisable"]:
        lines.append(
            f"In {_counted(record['unrealisable'], 'sequence')} the next token is not among the "
            "tokens: "
            "Assumption 2 fails, and the theorems do not apply."
        )
    elif record["acyclic"]:
        lines.append("No cycles: attention will retrieve one token, by strict priority.")
    else:
        lines.append(
            f"{record['components']:,} components, the largest of "
            f"{record['largest_component']:,} tokens: between components attention retrieves by "
            "priority, inside one it composes."
        )
    return lines


def printable(name: str) -> str:
    """A name without characters that would steer a terminal, in quotes if it has odd ones."""
    plain = "".join(c if c.isprintable() else "�" for c in name)
    return plain if plain.replace("_", "a").isalnum() else f"“{plain}”"


def _listed(names: list[str], most: int | None = _MOST_TOKENS) -> str:
    more = "" if most is None or len(names) <= most else f", … {len(names) - most} more"
    return ", ".join(map(printable, names[:most])) + more


def _top(graph: TokenGraph) -> str:
    """The components of the highest layer."""
    name = graph.vocabulary.name
    parts = [part for part, layer in zip(graph.components, graph.layer, strict=True) if layer == 0]
    shown = [f"{{{_listed([name(k) for k in part])}}}" for part in parts[:4]]
    return " ".join(shown) + (f" … {len(parts) - 4} more" if len(parts) > 4 else "")


def _print_graphs(graphs: TokenGraphs, record: dict[str, Any]) -> None:
    """Sentences, and a table of the largest graphs."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    for line in findings(record):
        click.echo(line)
    largest = sorted(graphs, key=lambda graph: -len(graph.tokens))[:_MOST_GRAPHS]
    table = Table("last token", "tokens", "edges", "components", "layers", "top layer")
    for graph in largest:
        counts = (len(graph.tokens), len(graph.edges), len(graph.layer), graph.layer.max() + 1)
        table.add_row(
            Text(printable(graph.name)), *map(str, counts), Text(_top(graph))
        )  # names as they are
    Console().print(table)
    if len(graphs) > len(largest):
        click.echo(f"… {len(graphs) - len(largest):,} smaller graphs")


def _print_graph(record: dict[str, Any]) -> None:
    """One graph, layer by layer."""
    click.echo(f"after {printable(record['last'])}:")
    depth = max(part["layer"] for part in record["components"])
    for layer in range(depth + 1):
        parts = [part["tokens"] for part in record["components"] if part["layer"] == layer]
        shown = " ".join(f"{{{_listed(names, None)}}}" for names in parts)
        click.echo(f"  layer {layer + 1}: {shown}")


def _print_next(record: dict[str, Any]) -> None:
    """The distribution of the next token, and why."""
    for token in record["tokens"]:
        click.echo(f"{token['probability']:.4f}  {printable(token['token'])}")
    click.echo(f"rule: {record['rule']} – {record['meaning']}")
    if record["beaten"]:
        margin = "at least 1" if record["margin"] is None else f"{record['margin']:.4g}"
        click.echo(f"suppressed: {_listed(record['beaten'])}, by a margin of {margin}")
    if record["strange"]:
        click.echo(f"never seen with this last token: {_listed(record['strange'])}")


def print_record(graphs: TokenGraphs, record: dict[str, Any]) -> None:
    """What was asked for: the graphs, one of them, or what comes next."""
    if "last" in record:
        _print_graph(record["last"])
    if "next" in record:
        _print_next(record["next"])
    if "last" not in record and "next" not in record:
        _print_graphs(graphs, record)
    for kind, word in (("graphml", "saved"), ("html", "page")):
        if kind in record:
            click.echo(f"{word}: {record[kind]}")
