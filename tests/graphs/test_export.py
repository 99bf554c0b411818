"""Graphs for other programs."""

from pathlib import Path

import networkx as nx

import attnmargin as am
from tests.instances import seven


def test_networkx_and_graphml_have_all_nodes(tmp_path: Path) -> None:
    graphs = seven()
    exported = am.graphs.to_networkx(graphs)
    assert exported.number_of_nodes() == len(graphs.last)
    assert exported.number_of_edges() == len(graphs.source)
    assert exported.nodes[1, 3] == {"last": "e2", "token": "e4", "component": 5, "layer": 1}
    read = nx.read_graphml(am.graphs.to_graphml(graphs, tmp_path / "graphs.graphml"))
    assert sorted(read.nodes) == sorted(f"{i}:{j}" for i, j in exported)
    assert list(tmp_path.iterdir()) == [tmp_path / "graphs.graphml"]
