"""attnmargin graph."""

from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from attnmargin.base.errors import InputError
from attnmargin.base.files import check_file
from attnmargin.cli.console import print_json, waiting
from attnmargin.cli.options import INPUT, OUTPUT, Command, OneOf, as_json, encoding

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
@click.option("--strict", is_flag=True, help="every choice counts: no noise, as in paper C")
@click.option("--min-count", type=int, help="strict, but of arrows seen so often")
@click.option("--min-share", type=float, help="strict, but of arrows with this share of their pair")
@click.option("--test", help="predict this share of the sequences, or a file, from the others")
@click.option("--seed", type=int, default=0, show_default=True, help="of the share to test")
@encoding
@click.option("--html", type=OUTPUT, help="write a page with the graphs")
@click.option("--graphml", type=OUTPUT, help="write the graphs for other programs")
@as_json
def graph(
    file: Path,
    prompt: str | None,
    last: str | None,
    html: Path | None,
    graphml: Path | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Find which tokens dominate which in FILE (.jsonl with tokens and next, or text)."""
    from attnmargin.cli.inputs import read_prompt
    from attnmargin.graphs import Automaton, to_graphml
    from attnmargin.report.graphs import graph_record, graphs_record, next_record, scores_record
    from attnmargin.report.pages.graphs import write_graphs

    _check(options)
    with waiting("reading, and building graphs"):
        graphs, tested = _built(file, options)
    record = graphs_record(graphs, details=as_json) | {"file": str(file)}
    if tested is not None:
        record["test"] = scores_record(*tested)
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


def _check(options: dict[str, Any]) -> None:
    """Refuse options that contradict each other, and numbers out of range."""
    chosen = [
        name for name in ("strict", "min_count", "min_share") if options[name] not in (None, False)
    ]
    if options["strict"] and len(chosen) > 1:
        raise InputError("--strict", f"--{chosen[1].replace('_', '-')} as well", "one of them")
    count, share = options["min_count"], options["min_share"]
    if count is not None and count < 1:
        raise InputError("--min-count", str(count), "a whole number of at least 1")
    if share is not None and not 0.0 <= share <= 1.0:
        raise InputError("--min-share", str(share), "a share from 0 to 1")


def _built(file: Path, options: dict[str, Any]) -> tuple[Any, Any]:
    """Build the graphs of a file; also score them on sequences set aside, if asked for."""
    from attnmargin.graphs import read_graphs, scores, split_graphs
    from attnmargin.graphs.samples import joined

    how = {"unrealisable": options["unrealisable"], "encoding": options["encoding"]}
    strict: Any = read_graphs(file, **how)
    graphs, test = _cleaned(strict, options), options["test"]
    if test is None:
        return graphs, None
    if (share := _share(test)) is not None:
        parts: Any = split_graphs(strict, share, options["seed"])
        train, unseen = parts
        found = scores(_cleaned(train, options), train.samples, unseen)
        return graphs, (found, unseen.n, 0)
    known, unknown = _known(check_file(test, "--test", "a share or a file"), strict, how)
    found = scores(graphs, strict.samples, joined([known]))
    return graphs, (found, known.n, unknown)


def _share(test: str) -> float | None:
    try:
        return float(test)
    except ValueError:
        return None


def _known(file: Path, graphs: Any, how: dict[str, Any]) -> tuple[Any, int]:
    """Read the sequences of a file whose tokens are known; count the others."""
    from attnmargin.graphs import read_sequences
    from attnmargin.graphs.samples import as_samples

    names = set(graphs.vocabulary.names)
    rows = list(read_sequences(file, how["encoding"]))
    kept = [(own, label) for own, label in rows if label in own and names.issuperset(own)]
    if not kept:
        raise InputError("--test", f"{file!s:.200}", "sequences of tokens that occur in FILE")
    samples = as_samples([own for own, _ in kept], [label for _, label in kept], graphs.vocabulary)
    return samples, len(rows) - len(kept)


def _cleaned(graphs: Any, options: dict[str, Any]) -> Any:
    """Take noise out of graphs, as the options say."""
    from attnmargin.graphs import frequent_graphs, without_noise

    if options["strict"] or options["unrealisable"] == "keep":
        return graphs
    if options["min_count"] is None and options["min_share"] is None:
        return without_noise(graphs)
    return frequent_graphs(
        graphs,
        1 if options["min_count"] is None else options["min_count"],
        0.0 if options["min_share"] is None else options["min_share"],
    )


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
    from attnmargin.report.graphs import findings, noise_cells

    for line in findings(record):
        click.echo(line)
    if record["noise"] is not None:
        head, rows = noise_cells(record["noise"], _MOST_GRAPHS)
        _print_table(head, [[printable(own[0]), *own[1:]] for own in rows])
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


def _print_table(head: list[str], rows: list[list[str]]) -> None:
    table = Table(*head)
    for own in rows:
        table.add_row(*map(Text, own))
    Console().print(table)


def _print_test(record: dict[str, Any]) -> None:
    """Print how well unseen sequences are predicted."""
    from attnmargin.report.graphs import score_cells, test_sentence

    click.echo(test_sentence(record))
    _print_table(*score_cells(record))


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
    if record["noise"]:
        click.echo(f"noise: a random token of the prompt with probability {record['noise']:.4f}")
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
    if "test" in record:
        _print_test(record["test"])
    for kind, word in (("graphml", "saved"), ("html", "page")):
        if kind in record:
            click.echo(f"{word}: {record[kind]}")
