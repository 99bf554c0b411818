"""Token-priority graphs: components, orders and relations, against networkx and by hand."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given

import attnmargin as am
from attnmargin.papers.c.graphs import SEQUENCES, VOCABULARY
from tests.instances import next_token_data, seven


def by_networkx(sequences: list[list[int]], labels: list[int]) -> dict[int, "nx.DiGraph[int]"]:
    """The definition of Section 3.1, self loops included."""
    found: dict[int, nx.DiGraph[int]] = {}
    for sequence, label in zip(sequences, labels, strict=True):
        graph = found.setdefault(sequence[-1], nx.DiGraph())
        graph.add_edges_from((label, token) for token in sequence)
    return found


@given(next_token_data())
def test_graphs_agree_with_networkx(data: tuple[list[list[int]], list[int], int]) -> None:
    sequences, labels, K = data
    graphs, wanted = am.token_graphs(sequences, labels, K), by_networkx(sequences, labels)
    assert graphs.roots.tolist() == sorted(wanted)
    assert graphs.acyclic == all(
        len(part) == 1 for g in wanted.values() for part in nx.strongly_connected_components(g)
    )
    for graph in graphs:
        other = wanted[graph.last]
        assert graph.tokens.tolist() == sorted(other)
        edges = {tuple(graph.tokens[pair].tolist()) for pair in graph.edges}
        assert edges == {(i, j) for i, j in other.edges if i != j}
        parts = sorted(map(sorted, nx.strongly_connected_components(other)))
        assert sorted(graph.components) == parts
        check_order(graph, nx.condensation(other))


def check_order(graph: am.graphs.TokenGraph, condensed: "nx.DiGraph[int]") -> None:
    """Layers are longest paths, and relations are those of the condensation."""
    part = condensed.graph["mapping"]
    depth: dict[int, int] = {}
    for node in nx.topological_sort(condensed):
        depth[node] = max((depth[above] + 1 for above in condensed.predecessors(node)), default=0)
    own = {token: c for c, tokens in enumerate(graph.components) for token in tokens}
    for i in graph.tokens.tolist():
        assert graph.priority(i) == depth[part[i]]
        for j in graph.tokens.tolist():
            same = part[i] == part[j]
            assert graph.equal(i, j) == (same and i != j)
            reach = nx.has_path(condensed, part[i], part[j]) and not same
            assert bool(graph.reach[own[i], own[j]]) == reach
    reduced = nx.transitive_reduction(condensed)
    translate = {part[tokens[0]]: c for c, tokens in enumerate(graph.components)}
    wanted = sorted((translate[a], translate[b]) for a, b in reduced.edges)
    assert sorted(map(tuple, graph.covers.tolist())) == wanted


@given(next_token_data())
def test_dominance_needs_an_edge_and_no_way_back(
    data: tuple[list[list[int]], list[int], int],
) -> None:
    sequences, labels, K = data
    graphs, wanted = am.token_graphs(sequences, labels, K), by_networkx(sequences, labels)
    for graph in graphs:
        other = wanted[graph.last]
        for i in other:
            for j in other:
                strict = other.has_edge(i, j) and i != j and not nx.has_path(other, j, i)
                assert graph.dominates(i, j) == strict
    found = set(zip(*(x.tolist() for x in graphs.dominance), strict=True))
    assert found == {
        (i, j, k)
        for k, other in wanted.items()
        for i, j in other.edges
        if i != j and not nx.has_path(other, j, i)
    }


@given(next_token_data())
def test_realisable_counts_labels_in_their_sequence(
    data: tuple[list[list[int]], list[int], int],
) -> None:
    sequences, labels, K = data
    missing = sum(y not in x for x, y in zip(sequences, labels, strict=True))
    graphs = am.token_graphs(sequences, labels, K)
    assert graphs.unrealisable == missing
    assert graphs.realisable == (missing == 0)
    kept = [(x, y) for x, y in zip(sequences, labels, strict=True) if y in x]
    if kept:
        dropped = am.token_graphs(sequences, labels, K, unrealisable="drop")
        assert (dropped.dropped, dropped.unrealisable) == (missing, 0)
        fewer = am.token_graphs([x for x, _ in kept], [y for _, y in kept], K)
        np.testing.assert_array_equal(fewer.source, dropped.source)
        np.testing.assert_array_equal(fewer.component, dropped.component)


def test_seven_sequences_satisfy_the_text_about_figure_2() -> None:
    graphs = seven()
    assert [graph.name for graph in graphs] == ["e1", "e2"]
    assert sorted(graphs["e1"].components) == [[0], [1], [2], [3]]
    assert graphs["e2"].components == [[0, 1, 2], [3]]
    data = am.graphs.cyclic_data([list(x) for x, _ in SEQUENCES], [y for _, y in SEQUENCES], graphs)
    assert data.index.tolist() == [3, 4, 5, 6]
    assert {t for x in data.sequences for t in x} == {0, 1, 2}
    last, label = SEQUENCES[-1]
    assert [t + 1 for t, x in enumerate(last) if x == label] == [3]
    own = set(data.sequences[-1])
    assert [t + 1 for t, x in enumerate(last) if VOCABULARY.index(x) in own] == [1, 3]


def test_a_graph_of_one_token() -> None:
    graphs = am.token_graphs([[0]], [0], 1)
    assert graphs[0].components == [[0]]
    assert graphs.acyclic
    assert am.solve(am.graph_problem([[2.0]], graphs)).W.tolist() == [[0.0]]


def test_pseudo_graphs_follow_the_attention() -> None:
    s = [[0.6, 0.4, 0.0], [0.0, 5e-4, 1.0]]
    graphs = am.graphs.pseudo_graphs([[0, 1, 2], [1, 3, 2]], s, 4)
    assert graphs[2].components == [[0, 1, 2], [3]]  # 0 and 1 beat 2 once, 2 beats 1 once
    strict = am.graphs.pseudo_graphs([[0, 1, 2], [1, 3, 2]], s, 4, threshold=1e-4)
    assert strict[2].components == [[0, 1, 2, 3]]


def test_membership_is_an_answer_not_an_error() -> None:
    graphs = seven()
    assert ("e1" in graphs, "e9" in graphs, 17 in graphs) == (True, False, False)
    assert ("e4" in graphs["e1"], "e9" in graphs["e1"]) == (True, False)


def test_unknown_options_and_last_tokens_get_one_sentence() -> None:
    with pytest.raises(am.InputError, match="unrealisable: got 'maybe'; needs 'keep' or 'drop'"):
        am.token_graphs([[0]], [0], 1, unrealisable="maybe")
    with pytest.raises(am.InputError, match="last token: got 'e4'; needs a token that ends"):
        seven()["e4"]
    with pytest.raises(am.InputError, match="last token: got the token 'e9'"):
        seven()["e9"]


@pytest.mark.parametrize(
    ("probabilities", "threshold", "words"),
    [
        ([[1.0]], 1e-3, "probabilities: got fewer numbers"),
        ([[1.0, 0.0]] * 2, 1e-3, "probabilities: got 2 rows for 1 sequence"),
        ([[1.5, -0.5]], 1e-3, "probabilities: got 1.5; needs one share from 0 to 1"),
        ([[float("nan"), 1.0]], 1e-3, "probabilities: got nan"),
        (None, 1e-3, "probabilities: got a NoneType"),
        ([[1.0, 0.0]], -1.0, "threshold: got -1.0; needs a share"),
        ([[1.0, 0.0]], "a", "threshold: got 'a'"),
    ],
)
def test_bad_attention_gets_one_sentence(
    probabilities: object, threshold: float, words: str
) -> None:
    with pytest.raises(am.InputError, match=words):
        am.graphs.pseudo_graphs([[0, 1]], probabilities, 2, threshold=threshold)


def test_pseudo_graphs_keep_the_largest_and_invent_no_token() -> None:
    spread = am.graphs.pseudo_graphs([list(range(2000))], [np.full(2000, 1 / 2000)], 2000)
    assert spread.size.tolist() == [2000]
    assert am.graphs.pseudo_graphs([["a", "b"]], [[1.0, 0.0]], None).vocabulary.names == ["a", "b"]
