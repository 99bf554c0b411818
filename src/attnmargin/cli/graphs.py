"""attnmargin graph."""

from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from attnmargin.cli.console import print_json, waiting
from attnmargin.cli.options import INPUT, OUTPUT, Command, OneOf, as_json

_MOST_GRAPHS, _MOST_TOKENS = 12, 12


@click.command(cls=Command)
@click.argument("file", type=INPUT)
@click.option("--next", "prompt", help="tokens, separated by blanks or as JSON: what comes next?")
@click.option("--last", help="print the whole graph of this last token, layer by layer")
@click.option(
    "--unrealisable",
    type=OneOf("drop", "keep"),
    default="drop",
    show_default=True,
    help="sequences whose next token is not among their tokens; --next needs them dropped",
)
@click.option("--html", type=OUTPUT, help="write a page with the graphs")
@click.option("--graphml", type=OUTPUT, help="write the graphs for other programs")
@as_json
def graph(
    file: Path,
    prompt: str | None,
    last: str | None,
    unrealisable: str,
    html: Path | None,
    graphml: Path | None,
    as_json: bool,
) -> int:
    """Find which tokens dominate which in FILE (.jsonl with tokens and next, or text)."""
    from attnmargin.cli.inputs import read_prompt
    from attnmargin.graphs import Automaton, read_graphs, to_graphml
    from attnmargin.report.graphs import graph_record, graphs_record, next_record
    from attnmargin.report.pages.graphs import write_graphs

    with waiting("reading, and building graphs"):
        graphs = read_graphs(file, unrealisable=unrealisable)
    record = graphs_record(graphs, details=as_json) | {"file": str(file)}
    if last is not None:
        record["last"] = graph_record(graphs[last])
    if prompt is not None:
        words = read_prompt(prompt)
        record["next"] = next_record(Automaton(graphs).next(words)) | {"prompt": words}
    if html is not None:
        record["html"] = str(write_graphs(html, graphs, record))
    if graphml is not None:
        record["graphml"] = str(to_graphml(graphs, graphml))
    if as_json:
        print_json(record)
    else:
        _print(graphs, record)
    return 0 if prompt is None or record["next"]["decided"] else 1


COMMANDS = (graph,)


def printable(name: str) -> str:
    """Replace characters that could control a terminal; quote a name with unusual ones."""
    plain = "".join(c if c.isprintable() else "�" for c in name)
    return plain if plain.replace("_", "a").isalnum() else f"“{plain}”"


def _listed(names: list[str], most: int | None = _MOST_TOKENS) -> str:
    more = "" if most is None or len(names) <= most else f", … {len(names) - most} more"
    return ", ".join(map(printable, names[:most])) + more


def _top(graph: Any) -> str:
    """Format the components of the highest layer."""
    name = graph.vocabulary.name
    parts = [part for part, layer in zip(graph.components, graph.layer, strict=True) if layer == 0]
    shown = [f"{{{_listed([name(k) for k in part])}}}" for part in parts[:4]]
    return " ".join(shown) + (f" … {len(parts) - 4} more" if len(parts) > 4 else "")


def _print_graphs(graphs: Any, record: dict[str, Any]) -> None:
    """Print sentences, and a table of the largest graphs."""
    from attnmargin.report.graphs import findings

    for line in findings(record):
        click.echo(line)
    largest = sorted(graphs, key=lambda graph: -len(graph.tokens))[:_MOST_GRAPHS]
    table = Table("last token", "tokens", "edges", "components", "layers", "top layer")
    for graph in largest:
        counts = (len(graph.tokens), len(graph.edges), len(graph.layer), graph.layer.max() + 1)
        table.add_row(
            Text(printable(graph.name)), *map(str, counts), Text(_top(graph))
        )  # Text, so that rich reads no markup in names
    Console().print(table)
    if len(graphs) > len(largest):
        click.echo(f"… {len(graphs) - len(largest):,} smaller graphs")


def _print_graph(record: dict[str, Any]) -> None:
    """Print one graph, layer by layer."""
    click.echo(f"after {printable(record['last'])}:")
    depth = max(part["layer"] for part in record["components"])
    for layer in range(depth + 1):
        parts = [part["tokens"] for part in record["components"] if part["layer"] == layer]
        shown = " ".join(f"{{{_listed(names, None)}}}" for names in parts)
        click.echo(f"  layer {layer + 1}: {shown}")


def _print_next(record: dict[str, Any]) -> None:
    """Print the distribution of the next token, and the reason."""
    for token in record["tokens"]:
        click.echo(f"{token['probability']:.4f}  {printable(token['token'])}")
    click.echo(f"rule: {record['rule']} – {record['meaning']}")
    if record["beaten"]:
        margin = "at least 1" if record["margin"] is None else f"{record['margin']:.4g}"
        click.echo(f"suppressed: {_listed(record['beaten'])}, by a margin of {margin}")
    if record["strange"]:
        click.echo(f"never seen with this last token: {_listed(record['strange'])}")


def _print(graphs: Any, record: dict[str, Any]) -> None:
    """Print the requested part: all graphs, one of them, or what comes next."""
    if "last" in record:
        _print_graph(record["last"])
    if "next" in record:
        _print_next(record["next"])
    if "last" not in record and "next" not in record:
        _print_graphs(graphs, record)
    for kind, word in (("graphml", "saved"), ("html", "page")):
        if kind in record:
            click.echo(f"{word}: {record[kind]}")
