"""Scores, optimal tokens, low and high tokens, the barrier between them."""

import numpy as np
import pytest
import torch

import attnmargin as am
from attnmargin.attention.score import barrier


def test_the_worst_sequence_counts() -> None:
    low = torch.tensor([[True, False, False], [True, False, False]])
    high = torch.tensor([[False, False, True], [False, False, True]])
    logits = torch.tensor([[3.0, 9.0, 2.0], [1.0, 9.0, 2.0]])
    assert float(barrier(logits, low, high)) == -1.0


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
    assert am.selections.tied_tokens(data).tolist() == [True, False]
    assert am.optimal_tokens(data).tolist() == [0, 1]


def test_score_gaps_by_hand() -> None:
    data = am.AttentionData(
        [[[1.0], [4.0], [2.5]], [[0.0], [1.0], [9.0]]], [[1.0]] * 2, [1, -1], [2.0]
    )
    assert am.selections.score_gaps(data).tolist() == [3.0, 2.0]
    hidden = am.AttentionData([[[1.0], [4.0]]], [[1.0]], [1], [1.0], [[True, False]])
    assert am.selections.score_gaps(hidden).tolist() == [torch.inf]
    assert am.selections.score_gaps(am.AttentionData([[[1.0]]], [[1.0]], [1], [1.0])).tolist() == [
        torch.inf
    ]


def test_low_and_high_tokens_by_hand() -> None:
    """Definition 3: scores 1, 3, 2, 2, with the third token chosen; its double is high."""
    data = am.AttentionData([[[1.0], [3.0], [2.0], [2.0]]], [[1.0]], [1], [1.0])
    assert am.selections.low_tokens(data, [2]).tolist() == [[True, False, False, False]]
    assert am.selections.high_tokens(data, [2]).tolist() == [[False, True, False, True]]


def test_hidden_tokens_are_neither_low_nor_high() -> None:
    data = am.AttentionData([[[1.0], [3.0], [2.0]]], [[1.0]], [1], [1.0], [[True, False, True]])
    assert not bool(
        (am.selections.low_tokens(data, [2]) | am.selections.high_tokens(data, [2]))[0, 1]
    )


def test_scores_that_differ_by_rounding_are_equal() -> None:
    data = am.AttentionData([[[1.0], [1.0 + 2.0**-52]]], [[1.0]], [1], [1.0])
    gamma = am.scores(data)[0]
    assert float(gamma[0]) < float(gamma[1])
    assert am.selections.tied_tokens(data).tolist() == [True]
    assert am.selections.high_tokens(data, [int(gamma.argmax())]).sum() == 1


def test_one_selection_serves_a_batch_and_many_serve_one_instance() -> None:
    data = am.random_data(2, 3, 4, trials=5, name="broadcast")
    assert am.selections.low_tokens(data, [0, 1]).shape == (5, 2, 3)
    assert am.selections.low_tokens(data[0], [[0, 1], [1, 1], [2, 0]]).shape == (3, 2, 3)


def test_a_selection_is_checked() -> None:
    data = am.random_data(2, 3, 4, name="check")
    with pytest.raises(am.InputError, match=r"selection: got shape \(3,\); needs one token per"):
        am.selections.low_tokens(data, [0, 1, 2])
    with pytest.raises(am.InputError, match="selection: got tokens from 0 to 3; needs tokens from"):
        am.selections.low_tokens(data, [0, 3])


def test_ties_are_ties_of_their_own_sequence() -> None:
    """A sequence of large tokens does not hide the differences of a small one."""
    data = am.AttentionData([[[1e8], [2e8]], [[1e-8], [2e-8]]], [[1.0], [1.0]], [1, 1], [1.0])
    assert am.selections.tied_tokens(data).tolist() == [False, False]
    assert bool(am.selections.locally_optimal(data, [1, 1]))


def test_hidden_tokens_do_not_hide_differences() -> None:
    X, mask = [[[1.0], [1.0 + 1e-9], [1e12]]], [[True, True, False]]
    data = am.AttentionData(X, [[1.0]], [1], [1.0], mask)
    assert am.selections.tied_tokens(data).tolist() == [False]


def test_scores_that_are_equal_stay_equal() -> None:
    # −2a − a + 4a and −a + 2a: both are a, but 3a is rounded.
    a = 14658.803519687013
    data = am.AttentionData(
        [[[a, -a, 2 * a], [0.0, -a, a], [2 * a, 0.0, -a]]], [[1.0, 0.0, 0.0]], [1], [-2.0, 1.0, 2.0]
    )
    gamma = am.scores(data)[0]
    assert gamma[0] == gamma[1] == a
    # Such tokens do not pull at each other: the squared loss, which wants less than a, goes to 2.
    W = torch.zeros(3, 3, dtype=torch.float64)
    W[:, 0] = torch.tensor([0.5, -2.0, 0.0])
    run = am.train(data, init=W, steps=1, lr=0.1, loss="squared")
    moved, towards = (run.W[-1] - run.W[0])[:, 0], data.X[0, 2] - data.X[0, 0]
    torch.testing.assert_close(moved, 0.1 * towards / towards.norm())
