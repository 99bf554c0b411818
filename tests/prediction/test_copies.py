"""Texts in which words occur twice: predicted, confirmed and drawn."""

import pytest
import torch

import attnmargin as am
from attnmargin.plot.prediction import predicted_share
from attnmargin.prediction.words import name_tokens
from attnmargin.report.pages.prediction import prediction_page

TEXTS = (
    ("the good film was good but the end bad", 1),
    ("a bad bad plot and a good cast", -1),
    ("slow slow start but the music is good good good", 1),
    ("the plot the plot is dull", -1),
)


@pytest.fixture(scope="module")
def reviews() -> tuple[am.AttentionData, list[list[str]]]:
    vocabulary = sorted({word for text, _ in TEXTS for word in text.split()})
    generator = torch.Generator().manual_seed(3)
    E = torch.randn(len(vocabulary), 8, generator=generator, dtype=torch.float64)
    known = {"good": 2.0, "bad": -2.0, "dull": -1.5, "slow": -1.0}
    for i, word in enumerate(vocabulary):
        E[i, 0] = known.get(word, 0.1 * i / len(vocabulary))
    X = [E[[vocabulary.index(word) for word in text.split()]] for text, _ in TEXTS]
    z = torch.randn(4, 8, generator=generator, dtype=torch.float64)
    v = torch.eye(8, dtype=torch.float64)[0]
    data = am.AttentionData(X, z, [y for _, y in TEXTS], v)
    names = [[*text.split(), *[""] * (data.T - len(text.split()))] for text, _ in TEXTS]
    return data, names


def test_repeated_words_are_predicted_and_confirmed(
    reviews: tuple[am.AttentionData, list[list[str]]],
) -> None:
    data, names = reviews
    prediction = am.predict(data)
    assert prediction.verdict == am.Verdict.FROM_START
    chosen = [names[i][t] for i, t in enumerate(prediction.selection.tolist())]
    assert chosen == ["good", "bad", "good", "dull"]
    assert prediction.selection.tolist() == [1, 1, 7, 5]  # the first of each
    result = am.confirm(prediction)
    assert result.plain is not None
    assert bool(result.agrees & result.plain.agrees & result.stays)
    assert float(predicted_share(prediction, result.run.W[-1]).min()) > 0.999
    s = am.probabilities(data, result.run.W[-1])
    torch.testing.assert_close(s[0, 1], s[0, 4])  # both share it
    assert prediction.search is not None
    assert prediction.search.total == 7 * 6 * 7 * 4


def test_pages_show_them_once(reviews: tuple[am.AttentionData, list[list[str]]]) -> None:
    data, names = reviews
    prediction = am.predict(data)
    page = prediction_page(prediction, name_tokens(data, names), am.confirm(prediction))
    assert "good ×3" in page
    assert page.count('<li class="wins"') == 4
    assert "attention of the predicted tokens" in page


def test_the_weight_of_a_copy_counts() -> None:
    """Three copies of a token weigh as much as one whose logit is larger by log 3."""
    data = am.random_data(3, 4, 5, name="copies")
    thrice = am.AttentionData(
        torch.cat((data.X, data.X[:, :1], data.X[:, :1]), 1), data.z, data.y, data.v
    )
    found = am.predict(thrice)
    assert found.ending is not None
    run = am.train(thrice, steps=int(found.ending.steps), record=10**6)
    torch.testing.assert_close(found.ending.W, run.W[-1])
    share = predicted_share(found, run.W[-1])
    torch.testing.assert_close(share.min(), found.ending.share)
