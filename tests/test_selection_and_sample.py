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
    assert am.selections.tied_tokens(data).tolist() == [True, False]
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


def test_support_tokens_by_hand() -> None:
    """One query: of the tokens 2, 1, −5 on a line, 1 is the nearest rival of 2."""
    solution = am.solve(am.token_problem([[[2.0], [1.0], [-5.0]]], [[1.0]], [0]))
    assert am.selections.support_tokens(solution).tolist() == [[False, True, False]]


def test_support_tokens_of_several_queries() -> None:
    data = am.random_data(3, 4, 12, trials=2, name="support")
    z = torch.randn(2, 3, 2, 12, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    selection = torch.tensor([[0, 3], [1, 2], [2, 0]]).expand(2, 3, 2)
    solution = am.solve(am.token_problem(data.X, z, selection))
    support = am.selections.support_tokens(solution)
    assert support.shape == (2, 3, 2, 4)
    assert not bool(support.gather(-1, selection.unsqueeze(-1)).any())
    assert int(support.sum()) == int(solution.support.sum())
    logits = torch.einsum("bntd,bde,bnke->bnkt", data.X, solution.W, z)
    below = logits.gather(-1, selection.unsqueeze(-1)) - logits
    torch.testing.assert_close(below[support], torch.ones(int(support.sum()), dtype=torch.float64))


def test_support_tokens_need_a_token_problem() -> None:
    with pytest.raises(am.InputError, match="needs that of a token_problem"):
        am.selections.support_tokens(am.solve(am.margin_problem([[1.0]], [[1.0]])))


def test_a_selection_is_checked() -> None:
    data = am.random_data(2, 3, 4, name="check")
    with pytest.raises(am.InputError, match=r"selection: got shape \(3,\); needs one token per"):
        am.selections.low_tokens(data, [0, 1, 2])
    with pytest.raises(am.InputError, match="selection: got tokens from 0 to 3; needs tokens from"):
        am.selections.low_tokens(data, [0, 3])
