"""Graphs of choices with noise: planted answers, clean data, limits, symmetries."""

import numpy as np
import pytest

import attnmargin as am
from attnmargin.graphs import PlantedChoices, TokenGraphs, planted_choices
from attnmargin.papers.c.graphs import SEQUENCES
from attnmargin.papers.t.noise import recovered


def strict(data: PlantedChoices) -> TokenGraphs:
    return am.token_graphs(data.sequences, data.labels, data.vocabulary)


def robust(data: PlantedChoices) -> TokenGraphs:
    return am.graphs.robust_graphs(data.sequences, data.labels, data.vocabulary)


def same(first: TokenGraphs, second: TokenGraphs) -> bool:
    names = ("last", "token", "source", "target", "component", "layer")
    return all(np.array_equal(getattr(first, name), getattr(second, name)) for name in names)


@pytest.mark.parametrize("noise", [0.05, 0.1, 0.2])
def test_planted_components_and_noise_are_found(noise: float) -> None:
    drawn = [planted_choices(3000, noise, seed=seed) for seed in (3, 4)]
    graphs = [robust(data) for data in drawn]
    found = [recovered(own, data) for own, data in zip(graphs, drawn, strict=True)]
    assert np.mean(found) >= 0.9
    for own in graphs:
        assert own.noise is not None
        assert abs(own.noise.total - noise) < 0.03


def test_clean_data_give_the_graphs_of_the_definition_bit_for_bit() -> None:
    for seed in range(3):
        data = planted_choices(1000, 0.0, seed=seed)
        graphs = robust(data)
        assert same(graphs, strict(data))
        assert graphs.noise is None
        assert recovered(graphs, data).all()


def test_few_or_cyclic_samples_are_not_taken_for_noise() -> None:
    sequences, labels = [list(x) for x, _ in SEQUENCES], [y for _, y in SEQUENCES]
    graphs = am.graphs.robust_graphs(sequences, labels)
    assert same(graphs, am.token_graphs(sequences, labels))
    rng = np.random.default_rng(0)
    cyclic = [[0, 1, 2, 3]] * 400
    chosen = rng.choice(3, 400, p=[0.6, 0.3, 0.1]).tolist()
    assert am.graphs.robust_graphs(cyclic, chosen, 4)[3].components == [[0, 1, 2], [3]]


def test_uniform_choices_are_one_component_not_noise() -> None:
    rng = np.random.default_rng(1)
    sequences = [[*rng.permutation(5)[:3].tolist(), 5] for _ in range(600)]
    labels = [own[int(rng.integers(4))] for own in sequences]
    graphs = am.graphs.robust_graphs(sequences, labels, 6)
    assert graphs[5].components == [[0, 1, 2, 3, 4, 5]]


def test_names_do_not_matter() -> None:
    data = planted_choices(1500, 0.1, seed=2)
    rng = np.random.default_rng(5)
    name = rng.permutation(len(data.vocabulary))
    renamed = am.graphs.robust_graphs(
        [name[own].tolist() for own in data.sequences], name[data.labels], len(name)
    )
    graphs = robust(data)
    for last in data.components:
        parts = [sorted(name[part].tolist()) for part in graphs[last].components]
        assert sorted(map(sorted, renamed[int(name[last])].components)) == sorted(parts)


def test_noise_is_a_floor_of_the_automaton() -> None:
    data = planted_choices(3000, 0.1, seed=1)
    graphs = robust(data)
    assert graphs.noise is not None
    last, components = next(iter(data.components.items()))
    first, other = components[0][0], components[-1][0]
    answer = am.graphs.Automaton(graphs).next([first, other, last])
    noise = graphs.noise.at(last)
    assert answer.noise == noise > 0.0
    assert float(answer.distribution.sum()) == pytest.approx(1.0)
    assert float(answer.distribution[other]) == pytest.approx(noise / 3)
    assert dict(answer.tokens)[graphs.vocabulary.name(first)] == pytest.approx(1 - 2 * noise / 3)
    assert str(answer).endswith(f"with {noise:.4f} of noise")
    low, high = graphs.noise.intervals()
    raw = graphs.noise.wrong / graphs.noise.exposed
    assert ((low <= raw) & (raw <= high)).all()


def test_unseen_choices_are_predicted_better_than_by_simple_rules() -> None:
    train, unseen = am.graphs.split_graphs(strict(planted_choices(3000, 0.1, seed=1)), 0.2)
    assert unseen.n == 600
    assert train.samples is not None
    found = am.graphs.scores(am.graphs.without_noise(train), train.samples, unseen)
    assert [own.rule for own in found] == ["automaton", "bigram", "most frequent", "uniform"]
    assert all(own.worse[1] > 0.0 for own in found[1:])
    assert found[3].loss == pytest.approx(np.log(3))
    assert found[3].accuracy == pytest.approx(1 / 3)


def test_rare_arrows_are_left_out_if_asked_for() -> None:
    graphs = am.token_graphs([[0, 1, 2]] * 10 + [[0, 0, 1, 2]], [0] * 9 + [1, 1], 3)
    assert graphs[2].components == [[0, 1], [2]]
    for found in (
        am.graphs.frequent_graphs(graphs, count=3),
        am.graphs.frequent_graphs(graphs, share=0.2),
    ):
        assert found[2].components[0] == [0]
        assert found.noise is not None
        assert found.noise.wrong.tolist() == [2]
    assert am.graphs.frequent_graphs(graphs, count=2)[2].components == [[0, 1], [2]]
    assert am.graphs.frequent_graphs(graphs) is graphs


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: am.graphs.robust_graphs([[0, 1]], [0], 2, level=0.0), "level: got 0.0"),
        (lambda: planted_choices(10, 1.5), "noise: got 1.5; needs a share from 0 to 1"),
        (lambda: planted_choices(10, most=9), "most: got 9; needs at most the 5 options"),
        (lambda: am.graphs.frequent_graphs(strict(planted_choices(9)), count=0), "count: got 0"),
        (lambda: am.graphs.frequent_graphs(strict(planted_choices(9)), share=2), "share: got 2"),
        (lambda: am.graphs.split_graphs(strict(planted_choices(9)), 1.0), "test: got 1; needs"),
    ],
)
def test_wrong_arguments_are_named(call: object, words: str) -> None:
    assert callable(call)
    with pytest.raises(am.InputError, match=words):
        call()
