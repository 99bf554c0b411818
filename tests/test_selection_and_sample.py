"""Scores, optimal tokens, and random instances."""

import numpy as np
import pytest
import torch

import attnmargin as am


def test_scores_by_hand() -> None:
    data = am.AttentionData([[[1.0, 2.0], [3.0, -1.0]]], [[1.0, 0.0]], [-1], [1.0, 1.0])
    assert am.scores(data).tolist() == [[-3.0, -2.0]]
    assert am.optimal_tokens(data).tolist() == [1]


def test_scores_of_several_queries_use_their_own_labels_and_masks() -> None:
    causal = torch.tensor([[[True, False], [True, True]]])
    data = am.AttentionData([[[1.0], [3.0]]], [[[1.0], [1.0]]], [[1, -1]], [1.0], causal)
    assert am.scores(data).tolist() == [[[1.0, -torch.inf], [-1.0, -3.0]]]
    assert am.optimal_tokens(data).tolist() == [[0, 0]]


def test_batch_equals_loop() -> None:
    data = am.random_data(4, 5, 6, trials=3, name="loop")
    for i in range(3):
        one = am.AttentionData(data.X[i], data.z[i], data.y[i], data.v[i])  # type: ignore[index]
        torch.testing.assert_close(am.scores(data)[i], am.scores(one))


def test_missing_labels_or_head() -> None:
    with pytest.raises(am.InputError, match="y: got nothing"):
        am.scores(am.AttentionData(np.ones((1, 2, 2)), np.ones((1, 2))))
    with pytest.raises(am.InputError, match="v: got nothing"):
        am.scores(am.AttentionData(np.ones((1, 2, 2)), np.ones((1, 2)), [1]))


def test_ties() -> None:
    data = am.AttentionData([[[1.0], [1.0]], [[1.0], [2.0]]], [[1.0]] * 2, [1, 1], [1.0])
    assert am.tied_tokens(data).tolist() == [True, False]
    assert am.optimal_tokens(data).tolist() == [0, 1]


def test_same_name_same_bits() -> None:
    first, second = (am.random_data(3, 4, 5, trials=4, name="A:fig2", seed=1) for _ in range(2))
    assert torch.equal(first.X, second.X)
    assert torch.equal(first.z, second.z)
    assert not torch.equal(first.X, am.random_data(3, 4, 5, trials=4, name="A:fig5", seed=1).X)


def test_a_trial_does_not_depend_on_how_many_are_drawn() -> None:
    many, few = am.random_data(3, 4, 5, trials=9), am.random_data(3, 4, 5, trials=2)
    assert torch.equal(many.X[:2], few.X)
    assert torch.equal(am.random_data(3, 4, 5).X, few.X[0])


def test_sphere_and_labels() -> None:
    data = am.random_data(30, 4, 5, trials=3)
    for x in (data.X, data.z, data.v):
        assert x is not None
        torch.testing.assert_close(
            torch.linalg.vector_norm(x, dim=-1), torch.ones(x.shape[:-1]).double()
        )
    assert data.y is not None
    assert set(data.y.flatten().tolist()) == {-1.0, 1.0}


def test_self_attention_queries_are_first_tokens() -> None:
    data = am.random_data(3, 4, 5, trials=2, self_attention=True)
    assert torch.equal(data.z, data.X[..., 0, :])


def test_minimum_score_gap() -> None:
    data = am.random_data(5, 5, 2, trials=50, min_gap=0.1)
    best = am.scores(data).topk(2).values
    assert float((best[..., 0] - best[..., 1]).min()) >= 0.1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"distribution": "cauchy"}, "distribution: got 'cauchy'"),
        ({"n": 0}, "n: got 0"),
        ({"min_gap": 3.0}, "min_gap: got 3"),
    ],
)
def test_bad_arguments(change: dict[str, object], words: str) -> None:
    with pytest.raises(am.InputError) as caught:
        am.random_data(**({"n": 1, "T": 2, "d": 2} | change))  # type: ignore[arg-type]
    assert words in str(caught.value)


def test_no_trials() -> None:
    assert am.random_data(2, 3, 4, trials=0).X.shape == (0, 2, 3, 4)
