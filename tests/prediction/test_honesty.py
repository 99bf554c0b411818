"""What a prediction must not say, and what it must."""

import math
from pathlib import Path

import pytest
import torch

import attnmargin as am
from attnmargin.base.places import place_words, sequence_words
from attnmargin.report.pages.prediction import prediction_page


def test_a_score_head_is_not_dropped() -> None:
    data = am.AttentionData([[[1.0, 0.0], [0.0, 1.0]]], [[1.0, 0.0]], [1], [1.0, 0.0])
    head = am.heads.ScoreHead([[0.0, 1.0]])  # training selects token 1, the linear head token 0
    assert am.train(data, head=head, steps=500, record=500).selection[-1].tolist() == [1]
    with pytest.raises(am.InputError, match="head: got a ScoreHead; needs the linear head"):
        am.predict(data, head=head)


def test_the_page_tells_the_length_of_the_steps_that_were_taken() -> None:
    prediction = am.predict(am.random_data(2, 2, 4, name="honesty"))
    result = am.confirm(prediction, lr=0.02, steps=50)
    text = prediction_page(prediction, result=result)
    assert "steps of length 0.02" in text
    assert "0.1, the first one" not in text


def test_places_are_named() -> None:
    assert sequence_words(3, 1) == "sequence 3, query 1"
    assert place_words([4, 2], 1) == "sequence 2 of instance 4"


def test_ties_on_the_command_line_name_the_sequence(tmp_path: Path) -> None:
    from attnmargin.cli.inputs import read_problem

    X = [[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [1.0, 0.0]]]
    z = [[[1.0, 0.0]] * 3, [[0.0, 1.0]] * 3]
    data = am.AttentionData(X, z, [[1.0] * 3] * 2, [1.0, 0.0])
    with pytest.raises(am.InputError, match="in sequence 1, query 0; needs unique optimal tokens"):
        read_problem(data.save(tmp_path / "ties.npz"), "opt")


def test_the_verdict_follows_from_the_checks() -> None:
    prediction = am.predict(am.random_data(5, 5, 20, name="theory", min_gap=0.1))
    grounds = prediction.grounds
    assert grounds is not None
    assert prediction.deciding == [grounds.long_step, grounds.no_rest, grounds.only_one]
    assert {check.outcome for check in prediction.deciding} == {am.theory.Outcome.HOLDS}
    assert prediction.verdict == am.Verdict.GUARANTEED
    assert all(check in prediction.checks for check in prediction.deciding)


def test_penalties_too_large_for_a_float_get_one_sentence() -> None:
    data = am.random_data(2, 2, 2, name="honesty")
    with pytest.raises(am.InputError, match="penalty: got 1000"):
        am.train(data, penalty=10**400)
    with pytest.raises(am.InputError, match="penalty: got inf; needs a finite number"):
        am.train(data, penalty=math.inf)


def test_a_trained_head_is_scored_by_the_objective_itself() -> None:
    from attnmargin.attention.softmax import objective

    data = am.random_data(2, 3, 4, trials=2, name="honesty")
    goal = objective(data)
    v = torch.ones(2, 4, dtype=torch.float64)
    goal.use_head(v)
    assert data.y is not None
    assert goal.gamma is not None
    torch.testing.assert_close(goal.gamma, data.y.unsqueeze(-1) * data.X.sum(-1))
