"""Counts in words: one thing is one thing."""

from pathlib import Path

import numpy as np
import pytest

import attnmargin as am
from attnmargin.base.words import counted
from attnmargin.text.corpus import split_corpus


@pytest.mark.parametrize(
    ("count", "words"),
    [(0, "0 queries"), (1, "1 query"), (2, "2 queries"), (1234, "1,234 queries")],
)
def test_counts_with_their_nouns(count: int, words: str) -> None:
    assert counted(count, "query", "queries") == words


def test_graphs_are_written_with_right_numbers() -> None:
    graphs = am.token_graphs([[0, 1]], [0], 2)
    assert repr(graphs) == "TokenGraphs(K=2, 1 graph, 2 nodes, 1 edge, 2 components, acyclic)"
    assert repr(graphs[1]) == "TokenGraph(last='1', 2 tokens, 1 edge, 2 components)"
    both = am.token_graphs([[0, 1], [1, 0]], [1, 0], 2)
    assert repr(both) == "TokenGraphs(K=2, 2 graphs, 4 nodes, 2 edges, 4 components, acyclic)"


def test_corpora_are_refused_with_right_numbers(tmp_path: Path) -> None:
    path = tmp_path / "one.csv"
    path.write_text("text,label\nx,1\ny,1\n")
    with pytest.raises(am.InputError, match=r"with 1 class \(1\); needs the column of the labels"):
        am.text.read_corpus(path)
    alone = am.text.Corpus(["x"], np.array([1]), ("0", "1"))
    with pytest.raises(am.InputError, match=r"got 1 text; needs enough to train and to test"):
        split_corpus(alone, 0.5, 0)
