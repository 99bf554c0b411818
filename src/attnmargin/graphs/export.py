"""Export of graphs to networkx and GraphML."""

from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnmargin.base.errors import MissingPackageError
from attnmargin.base.files import write_whole
from attnmargin.base.words import allowed
from attnmargin.graphs.collection import TokenGraphs

if TYPE_CHECKING:
    import networkx


def to_networkx(graphs: TokenGraphs) -> "networkx.DiGraph[Any]":
    """Build one graph with nodes ``(last token, token)`` and their names, components and layers."""
    try:
        import networkx
    except ImportError as error:
        raise MissingPackageError("exporting graphs", "attnmargin[graph]") from error
    graph: networkx.DiGraph[Any] = networkx.DiGraph()
    names = list(zip(graphs.last.tolist(), graphs.token.tolist(), strict=True))
    layer = graphs.layer[graphs.component].tolist()
    for node, component, depth in zip(names, graphs.component.tolist(), layer, strict=True):
        last, token = (graphs.vocabulary.name(k) for k in node)
        graph.add_node(node, last=last, token=token, component=component, layer=depth)
    edges = zip(graphs.source.tolist(), graphs.target.tolist(), strict=True)
    graph.add_edges_from((names[i], names[j]) for i, j in edges)
    return graph


def to_graphml(graphs: TokenGraphs, path: str | Path) -> Path:
    """Write all graphs to one GraphML file; on failure, leave no partial file.

    Characters that XML does not allow become U+FFFD.
    """
    graph = to_networkx(graphs)
    import networkx

    plain = networkx.relabel_nodes(graph, {node: f"{node[0]}:{node[1]}" for node in graph})
    for _, words in plain.nodes(data=True):
        words |= {name: allowed(words[name]) for name in ("last", "token")}
    stream = BytesIO()
    networkx.write_graphml_xml(plain, stream)
    return write_whole(path, lambda file: file.write(stream.getvalue()))
