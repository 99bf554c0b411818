"""The tokens of a prediction as they are drawn."""

import pytest
import torch

import attnmargin as am
from attnmargin.prediction.words import name_tokens
from attnmargin.report.marks import mark_words, sequence_marks, shown_weights, weights_words
from attnmargin.report.pages.coloured import marked_sentence
from tests.instances import contradiction


def pair() -> am.AttentionData:
    """Two orthogonal tokens and a copy of the first, which is the query; the first is best."""
    return am.AttentionData([[[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]], [[1.0, 0.0]], [1], [1.0, 0.0])


def test_roles_scores_and_attention_of_two_tokens() -> None:
    """The margin is 1 / √2: at length 10 the logits are 10 / √2 and −10 / √2."""
    data = pair()
    words = name_tokens(data, [["good", "bad", "good"]])
    marks = sequence_marks(am.predict(data), words)[0]
    assert [mark["role"] for mark in marks] == ["selected", "support", "selected"]
    assert [mark["asks"] for mark in marks] == [True, False, True]
    assert [mark["score"] for mark in marks] == [1.0, 0.0, 1.0]
    assert [(mark["times"], mark["first"]) for mark in marks] == [(2, True), (1, True), (2, False)]
    wanted = torch.softmax(torch.tensor([1.0, -1.0, 1.0], dtype=torch.float64) * 10 / 2**0.5, -1)
    assert [mark["share"] for mark in marks] == pytest.approx(wanted.tolist(), rel=1e-9)
    assert mark_words(marks[0]) == "selected, query, score +1.00, attention 50.0%"


def test_a_sentence_is_marked() -> None:
    data = pair()
    text = marked_sentence(
        sequence_marks(am.predict(data), name_tokens(data, [["<b>", "bad", "<b>"]]))[0]
    )
    assert text.startswith('<p class="words"><b class="wins asks" style="--a:0.50" title="selected')
    assert ">&lt;b&gt;<span" in text
    assert '<i class="guards"' in text


def test_attention_after_training_if_there_was_any() -> None:
    prediction = am.predict(pair())
    result = am.confirm(prediction, steps=20)
    torch.testing.assert_close(shown_weights(prediction, result), result.run.W[-1], rtol=0, atol=0)
    assert weights_words(prediction, result) == "attention after 20 steps of training"


def test_no_weights_no_attention() -> None:
    prediction = am.predict(contradiction())
    marks = sequence_marks(prediction, name_tokens(prediction.data))
    assert shown_weights(prediction, None) is None
    assert weights_words(prediction, None) == ""
    assert {mark["share"] for row in marks for mark in row} == {None}


def test_hidden_tokens_have_no_mark_and_rows_are_limited() -> None:
    data = am.random_data(5, 3, 4, name="marks")
    mask = torch.ones(5, 3, dtype=torch.bool)
    mask[0, 2] = False
    hidden = am.AttentionData(data.X, data.z, data.y, data.v, mask)
    marks = sequence_marks(am.predict(hidden), name_tokens(hidden), most=2)
    assert [len(row) for row in marks] == [2, 3]
