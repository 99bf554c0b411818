"""The automaton: rules, shares, generation."""

import numpy as np
import pytest
import torch

import attnmargin as am
from tests.instances import mixed_instances, seven


def test_a_token_that_stands_twice_counts_twice() -> None:
    sequences, labels = [[0, 1], [0, 1]], [0, 1]
    graphs = am.token_graphs(sequences, labels, 2)
    twice = am.graphs.Automaton(graphs).next([0, 0, 1])
    torch.testing.assert_close(twice.distribution, torch.tensor([2, 1]).double() / 3)
    assert twice.rule == "composition"


def test_automaton_with_identity_embeddings_equals_the_graphs() -> None:
    """Every graph by itself, or all together: two ways to the same answer."""
    own = mixed_instances(6)
    generator = torch.Generator().manual_seed(1)
    for graphs in own.graphs:
        whole = am.graphs.Automaton(graphs, torch.eye(6, dtype=torch.float64))
        for prompt in torch.randint(0, 6, (30, 4), generator=generator).tolist():
            if prompt[-1] not in graphs:
                continue
            first, second = am.graphs.Automaton(graphs).next(prompt), whole.next(prompt)
            assert first.rule == second.rule
            torch.testing.assert_close(first.distribution, second.distribution)
            assert first.margin == pytest.approx(second.margin, abs=1e-6)


def test_training_sequences_are_decided_and_their_label_is_kept() -> None:
    own = mixed_instances(10)
    for k, graphs in enumerate(own.graphs):
        rule = am.graphs.Automaton(graphs, own.E[k])
        for x, y in zip(own.ids[k], own.labels[k], strict=True):
            answer = rule.next(x.tolist())
            assert answer.rule in ("retrieval", "composition")
            assert float(answer.distribution[y]) > 0.0
            assert answer.decided


def test_trained_model_follows_the_automaton() -> None:
    own = mixed_instances(10)
    data, head = own.data(), own.head()
    run = am.train(data, head=head, loss="log", lr=0.01, steps=20_000, record=20_000)
    s = am.probabilities(data, run.W[-1])
    said = torch.zeros(len(own.E), 6, 6, dtype=torch.float64).scatter_add_(-1, own.ids, s)
    for k, graphs in enumerate(own.graphs):
        rule = am.graphs.Automaton(graphs, own.E[k])
        for i, x in enumerate(own.ids[k]):
            wanted = rule.next(x.tolist()).distribution
            assert 0.5 * float((said[k, i] - wanted).abs().sum()) < 0.01


def test_rules_of_the_automaton() -> None:
    graphs = seven()
    assert am.graphs.Automaton(graphs).next("e3 e4 e1").rule == "retrieval"
    assert am.graphs.Automaton(graphs).next("e1 e3 e2").rule == "composition"
    assert am.graphs.Automaton(graphs).next("e1 e3").rule == "unseen"
    split = am.token_graphs([[0, 4], [1, 2, 4], [2, 3, 4]], [0, 1, 2], 5)
    assert am.graphs.Automaton(split).next([0, 3, 4]).rule == "margin"
    tie = am.token_graphs([[0, 2], [1, 2]], [0, 1], 3)
    answer = am.graphs.Automaton(tie).next([0, 1, 2])
    assert (answer.rule, answer.decided) == ("tie", False)
    torch.testing.assert_close(answer.distribution, torch.tensor([0.5, 0.5, 0.0]).double())


def test_one_token_is_retrieved_whatever_was_learnt() -> None:
    graphs = am.token_graphs([["a", "b"]], ["a"])
    answer = am.graphs.Automaton(graphs).next(["a"])
    assert (answer.rule, answer.decided, answer.tokens) == ("retrieval", True, [("a", 1.0)])
    table = am.graphs.Automaton(graphs, np.eye(2))
    assert table.next("b a").rule == "unseen"
    assert str(am.graphs.Automaton(graphs).next(torch.tensor([0, 1]))) == str(
        am.graphs.Automaton(graphs).next(range(2))
    )


def test_retrieval_needs_no_samples() -> None:
    graphs = am.token_graphs([[0, 1, 2], [1, 0, 2], [3, 2]], [0, 1, 3], 4, keep_samples=False)
    assert am.graphs.Automaton(graphs).next([3, 2]).rule == "retrieval"


def test_large_graphs_decide_without_the_margin(monkeypatch: pytest.MonkeyPatch) -> None:
    from attnmargin.graphs import automaton

    monkeypatch.setattr(automaton, "_LARGE", 2)
    answer = am.graphs.Automaton(seven()).next("e3 e4 e1")
    assert (str(answer), np.isnan(answer.margin)) == ("e3: retrieval of e3 over e1, e4", True)


def test_generation_follows_the_rule_and_its_seed() -> None:
    graphs = seven()
    rule = am.graphs.Automaton(graphs)
    assert rule.generate("e3 e4 e1", 1) == ["e3", "e4", "e1", "e3"]
    assert rule.generate("e1 e3 e2", 5, seed=1) == rule.generate("e1 e3 e2", 5, seed=1)


def test_graphs_without_samples_cannot_compose() -> None:
    graphs = am.token_graphs([[0, 1], [0, 1]], [0, 1], 2, keep_samples=False)
    with pytest.raises(am.InputError, match="graphs without samples; needs keep_samples=True"):
        am.graphs.Automaton(graphs).next([0, 1])
