"""Local optimality in rational numbers."""

import pytest

import attnmargin as am


def test_exact_locality_agrees_on_ordinary_data() -> None:
    data = am.random_data(3, 4, 3, trials=5, name="exact")
    for selection in (am.optimal_tokens(data), 3 - am.optimal_tokens(data)):
        found = am.selections.locality(data, selection)
        answers = am.selections.exact_locality(data, found.solution)
        assert [x == "yes" for x in answers] == found.local.tolist()


def test_equal_scores_pull() -> None:
    """A support token of exactly the same score makes a selection not locally optimal."""
    data = am.AttentionData([[[1.0, 0.5], [0.0, 0.5]]], [[1.0, 0.0]], [1], [0.0, 1.0])
    solution = am.solve(am.token_problem(data.X, data.z, [0]))
    assert am.selections.exact_locality(data, solution) == ["no"]


def test_data_of_another_batch_are_refused() -> None:
    data = am.random_data(3, 4, 3, trials=2, name="exact")
    solution = am.solve(am.token_problem(data.X, data.z, am.optimal_tokens(data)))
    with pytest.raises(am.InputError, match=r"data: got a batch \(\); needs labels"):
        am.selections.exact_locality(data[0], solution[:1])
