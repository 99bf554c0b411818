"""Headlines and verdicts in sentences."""

import pytest

import attnmargin as am
from attnmargin.prediction.sentences import headline, verdict_sentence
from attnmargin.prediction.words import name_tokens
from attnmargin.report.pages.demo import review_words
from tests.instances import contradiction, counterexample_to_theorem_4, identity_data, orthonormal


def test_headlines(demo: tuple[am.Prediction, am.Confirmation]) -> None:
    words, sure = review_words(), demo[0]
    assert headline(sure, words).startswith("Attention will learn to select “dull”, “wonderful”")
    unsure = am.predict(counterexample_to_theorem_4())
    assert headline(unsure, name_tokens(unsure.data)) == (
        "Attention may learn to select token 0 of sequence 0 and token 0 of sequence 1: it depends "
        "on where training begins"
    )
    impossible = am.predict(contradiction())
    assert headline(impossible, name_tokens(impossible.data)).startswith("No attention weights can")


def test_verdicts_in_sentences() -> None:
    sure = verdict_sentence(am.predict(identity_data()))
    assert sure.startswith("Guaranteed: training by gradient descent that begins at zero, with a")
    assert "only this one is stable, and the weights cannot come to rest" in sure
    unsure = verdict_sentence(am.predict(counterexample_to_theorem_4()))
    assert "Of all 4 ways to choose" in unsure
    assert "1 other choice is stable too" in unsure
    guess = verdict_sentence(am.predict(identity_data(), parameter="KQ"))
    assert guess.startswith("Conjectured: ")
    limited = am.predict(am.random_data(5, 5, 20, name="theory", min_gap=0.1), limit=100)
    assert "Of 100 of 3,125 ways" in verdict_sentence(limited)
    mixed = am.predict(
        orthonormal(1, 5)[0], head=am.heads.QuadraticHead(orthonormal(1, 5)[0].v, 0.4)
    )
    assert "mixtures of tokens" in verdict_sentence(mixed)


def test_a_long_first_step_is_told_where_the_start_matters() -> None:
    for k in range(40):
        prediction = am.predict(am.random_data(5, 4, 6, name=f"step{k}"))
        long = prediction.check("A: Theorem 6")
        if prediction.verdict == am.Verdict.DEPENDS and long.outcome == am.theory.Outcome.HOLDS:
            length = float(long.numbers["length of a first step that suffices"])
            assert f"a first step of length {length:.3g}" in verdict_sentence(prediction)
            return
    pytest.fail("no instance of that kind")
