"""Training that confirms predictions."""

import numpy as np
import pytest
import torch

import attnmargin as am
from attnmargin.data.demo_reviews import REVIEWS
from tests.instances import counterexample_to_theorem_4, orthonormal


def test_confirm_agrees_with_a_guarantee(demo: tuple[am.Prediction, am.Confirmation]) -> None:
    prediction, result = demo
    words = [r.words[t] for r, t in zip(REVIEWS, result.selection.tolist(), strict=True)]
    assert words == ["dull", "wonderful", "great", "slow", "boring", "brilliant"]
    assert prediction.verdict == am.Verdict.GUARANTEED
    assert bool(result.agrees & result.stays)
    assert result.plain is not None
    assert bool(result.plain.agrees)
    assert 100 < int(result.plain.steps) < 4000
    assert float(result.plain.apart) < 1e-9
    assert float(result.correlation[-1]) > 0.999
    assert result.steps == 4000
    record = result.run.steps.tolist().index(int(result.settled))
    assert bool((result.run.selection[record:] == result.selection).all())
    assert bool((result.run.selection[record - 1] != result.selection).any())


def test_confirm_says_where_training_went_instead() -> None:
    """The run from zero ends in the trap; one that begins beside it does not."""
    prediction = am.predict(counterexample_to_theorem_4())
    assert bool(am.confirm(prediction).agrees)
    result = am.confirm(prediction, init=[[0.0, 0.0], [40.0, 0.0]])
    assert not bool(result.agrees)
    assert result.selection.tolist() == prediction.best.tolist()
    assert float(result.own_correlation) > 0.999 > float(result.correlation[-1])
    assert "from the start of the prediction" in result.explain()


def test_an_end_that_is_too_early_is_explained() -> None:
    """A score gap of 0.004: after 4,000 steps a better support token still pulls."""
    data = am.random_data(5, 5, 20, trials=16, name="A:verdicts")[15]
    prediction = am.predict(data)
    early = am.confirm(prediction)
    assert not bool(early.agrees)
    words = early.explain()
    assert "in sequence 1 the support token 2 scores" in words
    assert words.endswith("pulls it away; train longer")
    assert am.confirm(prediction, steps=8000).explain() == "training selects the predicted tokens"
    first = am.confirm(prediction, steps=1).explain()
    assert "the softmax is not saturated" in first


def test_confirm_same_seed_same_bits() -> None:
    prediction = am.predict(am.random_data(3, 3, 4, name="bits"), parameter="KQ")
    first, second, third = (am.confirm(prediction, steps=50, seed=s) for s in (0, 0, 1))
    assert torch.equal(first.run.W, second.run.W)
    assert not torch.equal(first.run.W, third.run.W)


def test_confirm_needs_steps() -> None:
    with pytest.raises(am.InputError, match="steps: got 0; needs at least one step"):
        am.confirm(am.predict(am.random_data(2, 2, 2, name="options")), steps=0)


def test_mixtures_have_a_finite_part_and_training_finds_both() -> None:
    """Paper A, Section 6, with the head of Lemma 6: shares as computed, direction as predicted."""
    data = orthonormal(5, 6, seed=3)
    assert data.v is not None
    head = am.heads.QuadraticHead(data.v, 0.35)
    prediction = am.predict(data, loss="linear", head=head)
    assert prediction.finite is not None
    assert list(prediction.verdict) == [am.Verdict.CONJECTURED] * 5
    share = am.selections.optimal_composition(data, head)
    logits = am.logits(data, prediction.finite.W).masked_fill(~prediction.selection, -torch.inf)
    torch.testing.assert_close(torch.softmax(logits, -1), share, atol=1e-9, rtol=0)
    result = am.confirm(prediction, steps=8000, lr=0.05)
    assert bool(result.agrees.all())
    assert float(result.own_correlation.min()) > 0.95
    torch.testing.assert_close(am.probabilities(data, result.run.W[-1]), share, atol=0.02, rtol=0)


@pytest.mark.slow
@pytest.mark.parametrize(("d", "trials"), [(5, 40), (10, 40), (20, 40)])
def test_guarantees_are_kept(d: int, trials: int) -> None:
    """120 instances on the sphere in all: n = T = 5, training from zero."""
    data = am.random_data(5, 5, d, trials=trials, name="A:verdicts")
    prediction = am.predict(data)
    result = am.confirm(prediction, steps=20_000)
    assert result.plain is not None
    assert bool(result.plain.agrees.all())
    proved = torch.from_numpy(np.asarray(prediction.verdict != am.Verdict.UNDECIDED))
    proved &= torch.from_numpy(np.asarray(prediction.verdict != am.Verdict.CONJECTURED))
    assert int(proved.sum()) >= 0.99 * trials
    assert bool(result.agrees[proved].all())
    assert float(result.correlation[-1][proved].min()) >= 0.99
