"""Topics, mixtures, and what comes after their prompts."""

import numpy as np
import pytest
import torch

import attnmargin as am
from attnmargin.base.errors import InputError
from attnmargin.graphs import Automaton, token_graphs
from attnmargin.graphs.topics import (
    Topic,
    continuation,
    inversions,
    mixture,
    most_likely,
    ordered_triples,
    random_topics,
)
from attnmargin.papers.i.topics import attended

ONE = Topic(np.array([0, 1, 2]), np.tile([0, 1, 2, 3], (4, 1)))  # 0 before 1 before 2
TWO = Topic(np.array([0, 1, 2]), np.tile([1, 0, 2, 3], (4, 1)))  # 1 before 0 before 2


def test_topics_share_what_they_should() -> None:
    for overlap in (2, 3, 5):
        one, two = random_topics(8, 5, overlap, "tests", seed=overlap)
        assert len(np.intersect1d(one.tokens, two.tokens)) == overlap
        assert (np.sort(one.rank, 1) == np.arange(8)).all()
    again = random_topics(8, 5, 3, "tests", seed=3)[0]
    np.testing.assert_array_equal(again.rank, random_topics(8, 5, 3, "tests", seed=3)[0].rank)


def test_one_topic_alone_is_always_continued() -> None:
    """Its graphs are acyclic, and the automaton retrieves the token of highest priority."""
    topic, _ = random_topics(6, 4, 2, "alone")
    rng = np.random.default_rng(0)
    sequences, labels = mixture((topic,), (500,), 4, rng)
    graphs = token_graphs(sequences, labels, 6)
    assert graphs.acyclic
    prompts = topic.prompts(100, 7, rng)
    found = continuation(topic, prompts, most_likely(Automaton(graphs), prompts))
    assert not found.changed.any()
    strict, soft = inversions(topic, sequences, labels, 6)
    assert not strict.any()
    assert not soft.any()


def test_opposite_topics_compose_by_their_shares() -> None:
    """0 and 1 are chosen 3 : 1, so 1 wins where it occurs more than three times as often."""
    sequences = np.array([[0, 1, 2]] * 3 + [[0, 1, 2]])
    labels = np.array([0, 0, 0, 1])
    automaton = Automaton(token_graphs(sequences, labels, 3))
    prompts = np.array([[0, 1, 1, 1, 2, 2, 2], [0, 1, 1, 1, 1, 2, 2]])
    found = continuation(ONE, prompts, most_likely(automaton, prompts))
    assert found.predicted.tolist() == [0, 1]
    assert found.changed.tolist() == [False, True]
    assert found.outnumbers.tolist() == [True, True]


def test_what_a_topic_orders() -> None:
    """Tokens below the last one never come next: they are not ordered among themselves."""
    assert ordered_triples(ONE) == [(0, 0, 1), (0, 0, 2), (1, 0, 1), (1, 0, 2), (1, 1, 2),
                                    (2, 0, 1), (2, 0, 2), (2, 1, 2)]  # fmt: skip
    graphs = token_graphs(*mixture((ONE,), (400,), 3, np.random.default_rng(0)), 3)
    edges = {(k, i, j) for k in range(3) for i in range(3) for j in range(3)
             if i != j and graphs[k].dominates(i, j)}  # fmt: skip
    assert edges == set(ordered_triples(ONE))


def test_a_majority_of_the_other_topic_inverts_attention_but_not_the_graph() -> None:
    sequences, labels = mixture((ONE, TWO), (30, 300), 3, np.random.default_rng(1))
    strict, soft = inversions(ONE, sequences, labels, 3)
    assert not strict.any()
    assert soft.any()


def test_trained_attention_of_a_known_matrix() -> None:
    W = torch.tensor([[0.0, 0.0], [0.0, np.log(3.0)]], dtype=torch.float64)
    assert attended(W, np.array([[0, 0, 0, 1], [0, 0, 1, 0]])).tolist() == [0, 0]
    assert attended(W, np.array([[0, 0, 1]])).tolist() == [1]


@pytest.mark.parametrize(("tokens", "overlap"), [(5, 1), (5, 6), (9, 9)])
def test_topics_that_do_not_fit(tokens: int, overlap: int) -> None:
    with pytest.raises(InputError, match=r"overlap: got .*; needs from 2 tokens − K to tokens"):
        am.graphs.random_topics(8, tokens, overlap, "tests")
