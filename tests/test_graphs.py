"""Token-priority graphs: components, orders and relations, against networkx and by hand."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import attnmargin as am
from attnmargin.base.ragged import spans
from attnmargin.graphs.edges import EdgeSet, distinct
from attnmargin.papers.c.graphs import SEQUENCES, VOCABULARY
from tests.test_cli import run as command


@st.composite
def next_token_data(draw: st.DrawFn) -> tuple[list[list[int]], list[int], int]:
    """Sequences of any length; labels may be missing from them, tokens may be isolated."""
    K = draw(st.integers(1, 7))
    token = st.integers(0, K - 1)
    sequences = draw(st.lists(st.lists(token, min_size=1, max_size=6), min_size=1, max_size=12))
    return sequences, [draw(token) for _ in sequences], K


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


def seven() -> am.TokenGraphs:
    return am.token_graphs([list(x) for x, _ in SEQUENCES], [y for _, y in SEQUENCES], VOCABULARY)


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


def test_streams_arrays_and_names_give_the_same_graphs() -> None:
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(0, 9, (500, 5), generator=generator)
    labels = ids[:, 2]
    whole = am.token_graphs(ids, labels, 9)
    stream: Iterator[list[int]] = (row.tolist() for row in ids)
    kinds = [
        am.token_graphs(ids.numpy(), labels.numpy(), 9),
        am.token_graphs(stream, (int(y) for y in labels), 9, keep_samples=False),
        am.token_graphs(ids.tolist(), labels.tolist()),
        am.token_graphs([[f"t{k}" for k in row] for row in ids], [f"t{y}" for y in labels],
                        [f"t{k}" for k in range(9)]),
    ]  # fmt: skip
    for other in kinds:
        for name in ("last", "token", "source", "target", "component", "layer"):
            np.testing.assert_array_equal(getattr(whole, name), getattr(other, name))
    assert kinds[1].samples is None


def test_chunks_of_a_stream_do_not_change_the_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    from attnmargin.graphs import edges, samples

    whole = seven()
    monkeypatch.setattr(samples, "_CHUNK", 2)
    monkeypatch.setattr(edges, "_PENDING", 1)
    parts = seven()
    np.testing.assert_array_equal(whole.source, parts.source)
    np.testing.assert_array_equal(whole.component, parts.component)


@given(st.lists(st.integers(-5, 5)))
def test_distinct_is_unique(numbers: list[int]) -> None:
    x = np.array(numbers, dtype=np.int64)
    np.testing.assert_array_equal(distinct(x), np.unique(x))


def test_spans_and_empty_sets() -> None:
    low, high = np.array([3, 7, 9]), np.array([5, 7, 12])
    assert spans(low, high).tolist() == [3, 4, 9, 10, 11]
    assert EdgeSet().merged().tolist() == []


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


def test_names_that_are_numbers_are_names() -> None:
    graphs = am.token_graphs([[20, 10]], [20], [10, 20, 30])
    assert graphs[10].components == [[1], [0]]
    assert str(am.graphs.Automaton(graphs).next([20, 10])) == "20: retrieval of 20 over 10"


def test_numbers_mean_the_same_in_lists_and_arrays() -> None:
    names = [1, 2, 0]
    first = am.token_graphs([[1, 2, 0]], [1], names)
    second = am.token_graphs(np.array([[1, 2, 0]]), np.array([1]), names)
    np.testing.assert_array_equal(first.token, second.token)
    np.testing.assert_array_equal(first.roots, second.roots)
    assert first[0].components == [[0], [1], [2]]  # ids of 1, 2 and 0
    assert am.graphs.Automaton(first).generate([2, 1, 0], 1) == ["2", "1", "0", "1"]
    assert am.token_graphs([[0, 1]], [0], np.array(2)).K == 2


def test_membership_is_an_answer_not_an_error() -> None:
    graphs = seven()
    assert ("e1" in graphs, "e9" in graphs, 17 in graphs) == (True, False, False)
    assert ("e4" in graphs["e1"], "e9" in graphs["e1"]) == (True, False)


def test_networkx_and_graphml_have_all_nodes(tmp_path: Path) -> None:
    graphs = seven()
    exported = am.graphs.to_networkx(graphs)
    assert exported.number_of_nodes() == len(graphs.last)
    assert exported.number_of_edges() == len(graphs.source)
    assert exported.nodes[1, 3] == {"last": "e2", "token": "e4", "component": 5, "layer": 1}
    read = nx.read_graphml(am.graphs.to_graphml(graphs, tmp_path / "graphs.graphml"))
    assert sorted(read.nodes) == sorted(f"{i}:{j}" for i, j in exported)
    assert list(tmp_path.iterdir()) == [tmp_path / "graphs.graphml"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([[0, 1], [1]], [0], 2), "labels: got 1, and more sequences"),
        (([[0, 1]], [0, 1], 2), "sequences: got 1, and more labels"),
        (([[0, 5]], [0], 2), "sequences: got the token id 5; needs ids from 0 to 1"),
        (([[0, -1]], [0], 2), "sequences: got the token id -1"),
        (([[0, 1]], [3], 2), "the token id 3"),
        (([[]], [0], 2), "no token in sequence 0"),
        (([], [], 2), "sequences: got no sequence"),
        ((["ab"], [0], 2), "a str as sequence 0"),
        (("ab", [0], 2), "sequences: got a str"),
        ((np.zeros((2, 3)), [0, 0], 2), "sequences: got float64 entries; needs whole numbers"),
        ((np.zeros((2, 3), int), [0], 2), r"labels: got shape \(1,\); needs one label"),
        ((np.zeros((2, 3, 1), int), [0, 0], 2), "sequences: got shape"),
        (([["a"]], ["b"], ["a"]), "the token 'b'; needs tokens of the vocabulary"),
        (([["a"]], ["a"], ["a", "a"]), "vocabulary: got the name 'a' twice"),
        (([["a"]], ["a"], 3), "the token 'a'; needs ids from 0 to 2"),
        (([[0]], [0], 0), "vocabulary: got 0 tokens"),
        (([[0]], [0], 1 << 21), "vocabulary: got 2097152 tokens"),
        (([[0]], [0], 2.5), "vocabulary: got 2.5; needs a size"),
        (([[0]], [0], ["a", ["b"]]), r"vocabulary: got the token \['b'\]"),
        (([["a", ["b"]]], ["a"]), "sequences: got a list as a token"),
        (([["a", None]], ["a"]), "sequences: got the token None; needs words or whole numbers"),
        (([[True, False]], [True], 2), "sequences: got the token True; needs ids"),
        (([[0, 2**70]], [0], 2), "sequences: got the token id 1e"),
        (([[0, 1]], [5], 2), "labels: got the token id 5"),
        (([[2, 1]], [0], [1, 2, 3]), "labels: got the token 0; needs tokens of the vocabulary"),
        (([np.zeros((2, 2), int)], [0], 2), r"sequences\[0\]: got shape \(2, 2\)"),
        (([[0, 1]], {0}, 2), "labels: got a set"),
        ((np.ma.array([[0, 1]]), [0], 2), "sequences: got a MaskedArray"),
        ((torch.zeros(1, 2, dtype=torch.int64).to_sparse(), [0], 2), "sequences: got a Tensor"),
    ],
)
def test_bad_data_get_one_sentence(arguments: tuple[object, ...], words: str) -> None:
    with pytest.raises(am.InputError, match=words):
        am.token_graphs(*arguments)


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


def write(path: Path, lines: list[str]) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def seven_file(tmp_path: Path) -> Path:
    rows = [json.dumps({"tokens": x, "next": y}) for x, y in SEQUENCES]
    return write(tmp_path / "seven.jsonl", rows)


def test_files_of_both_kinds_say_the_same(seven_file: Path, tmp_path: Path) -> None:
    text = write(tmp_path / "seven.txt", [" ".join((*x, y)) for x, y in SEQUENCES])
    first, second = am.graphs.read_graphs(seven_file), am.graphs.read_graphs(text)
    np.testing.assert_array_equal(first.component, second.component)
    assert first.vocabulary.names == second.vocabulary.names == ["e2", "e3", "e1", "e4"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", "line 1 .*; needs lines such as"),
        ('{"tokens": ["a"]}', "line 1 without tokens and next"),
        ("[1]", "line 1 without tokens and next"),
        ('{"tokens": [], "next": "a"}', "at least one token"),
        ('{"tokens": ["a", 1.5], "next": "a"}', "all of them words or whole numbers"),
        ('{"tokens": ["a"], "next": null}', "all of them words or whole numbers"),
        ('{"tokens": "ab", "next": "a"}', "at least one token"),
        ('{"tokens": ["\\ud800", "b"], "next": "b"}', "half of a character"),
        ('{"tokens": [' + "9" * 5000 + '], "next": 1}', "line 1 .*; needs lines such as"),
    ],
)
def test_bad_lines_are_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, line: str, words: str
) -> None:
    code, out, err = command(capsys, "graph", write(tmp_path / "bad.jsonl", [line]))
    assert (code, out) == (2, "")
    assert re.search(words, err)
    assert err.count("\n") == 1


def test_bad_files_get_one_sentence(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, _, err = command(capsys, "graph", tmp_path / "none.jsonl")
    assert (code, "which does not exist; needs an existing file" in err) == (2, True)
    code, _, err = command(capsys, "graph", tmp_path)
    assert (code, "which is a folder" in err) == (2, True)
    code, _, err = command(capsys, "graph", "x" * 5000)
    assert (code, "File name too long" in err) == (2, True)
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9 au lait\n")
    code, _, err = command(capsys, "graph", tmp_path / "latin.txt")
    assert (code, "needs text in UTF-8" in err) == (2, True)
    code, _, err = command(capsys, "graph", write(tmp_path / "one.txt", ["word"]))
    assert (code, "line 1 with one word" in err) == (2, True)
    code, _, err = command(capsys, "graph", write(tmp_path / "no.txt", ["a b c"]))
    assert (code, "1 sequence, none with its label in it" in err) == (2, True)


def test_graph_prints_tables_layers_and_what_comes_next(
    capsys: pytest.CaptureFixture[str], seven_file: Path
) -> None:
    code, out, err = command(capsys, "graph", seven_file)
    assert (code, err) == (0, "")
    assert "7 sequences over 4 different tokens: 2 graphs" in out
    assert "{e2, e3, e1}" in out
    code, out, _ = command(capsys, "graph", seven_file, "--last", "e1")
    assert out.splitlines()[1:] == [f"  layer {k + 1}: {{e{t}}}" for k, t in enumerate("2341")]
    code, out, _ = command(capsys, "graph", seven_file, "--next", "e3 e4 e1")
    assert code == 0
    assert out.startswith("1.0000  e3\nrule: retrieval")
    code, out, _ = command(capsys, "graph", seven_file, "--next", "e1 e4")
    assert (code, "rule: unseen" in out) == (1, True)
    assert "never seen with this last token: e1, e4" in out
    code, _, err = command(capsys, "graph", seven_file, "--next", "e9")
    assert (code, "--next: got the token 'e9'" in err) == (2, True)


def test_graph_prints_one_json_object(capsys: pytest.CaptureFixture[str], seven_file: Path) -> None:
    code, out, err = command(capsys, "graph", seven_file, "--next", "e1 e3 e4 e2", "--json")
    record = json.loads(out)
    assert (code, err) == (0, "")
    assert (record["samples"], record["vocabulary"], record["acyclic"]) == (7, 4, False)
    assert record["next"]["rule"] == "composition"
    assert sum(t["probability"] for t in record["next"]["tokens"]) == pytest.approx(1.0)
    assert record["details"][0]["components"][0] == {"layer": 0, "tokens": ["e2", "e3", "e1"]}


def test_files_may_be_marked_or_shouted(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "bom.txt").write_bytes("\ufeffthe cat the\r\n".encode())
    assert am.graphs.read_graphs(tmp_path / "bom.txt").vocabulary.names == ["the", "cat"]
    upper = write(tmp_path / "LINES.JSONL", ['{"tokens": ["a b", "c"], "next": "a b"}'])
    code, out, _ = command(capsys, "graph", upper, "--next", '["c", "a b", "c"]')
    assert (code, out.splitlines()[0]) == (0, "1.0000  “a b”")


def test_odd_names_reach_other_programs(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    line = json.dumps({"tokens": ["a\u0007", "[bold]b", "\u001b[31m"], "next": "[bold]b"})
    file, target = write(tmp_path / "odd.jsonl", [line]), tmp_path / "odd.graphml"
    code, out, _ = command(capsys, "graph", file, "--graphml", target)
    assert (code, "[bold]b" in out, "\u001b" in out) == (0, True, False)
    names = {words["token"] for _, words in nx.read_graphml(target).nodes(data=True)}
    assert names == {"a\ufffd", "[bold]b", "\ufffd[31m"}
    code, _, err = command(capsys, "graph", file, "--graphml", target, "--html", target)
    assert (code, "which is --html too; needs a file of its own" in err) == (2, True)


def test_unrealisable_labels_are_not_predicted(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = write(tmp_path / "words.txt", ["a b c"])
    code, _, err = command(capsys, "graph", file, "--unrealisable", "keep", "--next", "a b")
    assert (code, "labels outside of 1 sequence" in err) == (2, True)


def test_labels_outside_of_their_sequence_are_counted(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = write(tmp_path / "words.txt", ["a b a", "a b c"])
    _, out, _ = command(capsys, "graph", file)
    assert "Left out: 1 more sequence, whose" in out
    _, out, _ = command(capsys, "graph", file, "--unrealisable", "keep")
    assert "In 1 sequence the next token is not among the tokens" in out
