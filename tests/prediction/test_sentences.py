"""Headlines and verdicts in sentences."""

import torch

import attnmargin as am
from attnmargin.prediction.sentences import elsewhere, headline, verdict_sentence
from attnmargin.prediction.words import name_tokens
from attnmargin.report.pages.demo import review_words
from tests.instances import contradiction, counterexample_to_theorem_4, identity_data, orthonormal


def test_headlines(demo: tuple[am.Prediction, am.Confirmation]) -> None:
    words, sure = review_words(), demo[0]
    run = "Your run (gradient descent on W from zero, steps of length 0.1) "
    assert headline(sure, words).startswith(f"{run}will select “dull”, “wonderful”")
    trapped = am.predict(counterexample_to_theorem_4())
    picked = "token 1 of sequence 0 and token 0 of sequence 1"
    assert headline(trapped, name_tokens(trapped.data)) == f"{run}will select {picked}"
    led = am.predict(am.random_data(3, 4, 5, name="headline"), steps=2)
    assert headline(led, None) == f"{run}should select the tokens {led.selection.tolist()}"
    still = am.predict(am.random_data(10, 6, 4, trials=20, name="kq")[0], "KQ", steps=30)
    assert headline(still, None).endswith(
        f" leans to the tokens {still.selection.tolist()}, and may end elsewhere"
    )
    likely = am.predict(identity_data(), parameter="KQ", steps=2000)
    assert "K and Q, with W = K Qᵀ, from small random K and Q, steps" in headline(likely, None)
    assert ") should select " in headline(likely, None)
    impossible = am.predict(contradiction())
    assert "no attention weights select them" in headline(impossible, name_tokens(impossible.data))


def test_verdicts_in_sentences() -> None:
    sure = verdict_sentence(am.predict(identity_data()))
    assert sure.startswith("Guaranteed from any start: a long first step leads to them")
    one = am.AttentionData([[[2.0], [1.0]]], [[1.0]], [1], [1.0])
    assert "with one sequence, the best token wins" in verdict_sentence(am.predict(one))
    trapped = am.predict(counterexample_to_theorem_4())
    assert verdict_sentence(trapped).startswith(f"Certain from step {int(trapped.since)} on: the w")
    assert trapped.search is not None
    others = elsewhere(trapped, trapped.search)
    assert "Of all 4 ways to choose" in others
    assert "1 other choice is stable too" in others
    guess = verdict_sentence(am.predict(identity_data(), parameter="KQ", steps=2000))
    assert guess.startswith("Conjectured: the run selects these tokens since step ")
    limited = am.predict(am.random_data(5, 5, 20, name="theory", min_gap=0.1), limit=100)
    assert limited.search is not None
    assert "Of 100 of 3,125 ways" in elsewhere(limited, limited.search)
    mixed = am.predict(
        orthonormal(1, 5)[0], head=am.heads.QuadraticHead(orthonormal(1, 5)[0].v, 0.4)
    )
    assert "mixtures of tokens" in verdict_sentence(mixed)
    steps, attention = mixed.observed  # type: ignore[misc]
    assert mixed.head is not None
    run = am.train(mixed.data, head=mixed.head, steps=steps, record=steps)
    torch.testing.assert_close(attention, am.probabilities(mixed.data, run.W[-1]))
    outside = float((attention * ~mixed.selection).sum(-1).max())
    seen = f"Observed: after 2,000 steps these tokens have all but {outside:.1g} of the attention."
    assert verdict_sentence(mixed).endswith(seen)


def test_what_is_missing_is_named() -> None:
    """A higher token that nearly reaches the margin: the funnel is far out."""
    data = am.random_data(6, 8, 10, trials=1000, name="fresh")[835]
    prediction = am.predict(data)
    assert prediction.verdict == am.Verdict.CONJECTURED
    words = prediction.explain()
    assert "Not proved: token 5 of sequence 4 scores higher and misses the margin by 0.004" in words
    needed = float(words.split("a norm of about ")[1].split(" ")[0].replace(",", ""))
    longer = am.predict(data, steps=20 * int(needed))
    assert longer.verdict == am.Verdict.FROM_START
    assert 0.3 * needed < float(longer.ending.W.norm()) < 3.0 * needed  # type: ignore[union-attr]
    flow = am.predict(data, lr=3.0, steps=2000)
    assert flow.verdict != am.Verdict.GUARANTEED


def test_runs_that_are_not_decided_say_why() -> None:
    short = am.predict(am.random_data(10, 6, 4, trials=20, name="kq")[0], "KQ", steps=30)
    assert short.explain() == "Undecided: the selection changed at step 30 of 30; train longer."
    X = [[[1.0, 1.0], [1.0, -1.0], [0.0, 0.0]]]
    tied = am.predict(am.AttentionData(X, [[0.0, 0.0]], [1], [1.0, 0.0]))
    assert tied.verdict == am.Verdict.UNDECIDED
    assert "tokens [0, 1] of sequence 0 tie for the best score" in tied.explain()
    assert "rest at a finite point" in am.predict(contradiction()).explain()
