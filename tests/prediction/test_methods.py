"""Predictions of steepest descent and Adam: conjectured at best, and confirmed by training."""

from typing import Any

import pytest
import torch

import attnmargin as am
from attnmargin.prediction.sentences import headline, norm_words
from tests.instances import contradiction

STEPS = 600


def example(trials: int | None = None) -> am.AttentionData:
    return am.random_data(4, 5, 6, trials=trials, name="predict steepest")


@pytest.mark.parametrize(
    ("options", "norm"),
    [
        ({"method": "steepest", "norm": 3.0}, am.norms.Lp(3.0)),
        ({"method": am.methods.Steepest("fro", momentum=0.9)}, am.norms.Frobenius()),
        ({"method": "steepest", "norm": "max"}, am.norms.Max()),
        ({"method": "steepest", "norm": "spectral"}, am.norms.Spectral()),
        ({"method": am.methods.Adam(eps=0.0), "lr": 0.05}, am.norms.Max()),
        ({"method": "steepest", "norm": "spectral", "parameter": "KQ"}, am.norms.Spectral()),
    ],
)
def test_predictions_are_confirmed_by_training(options: dict[str, Any], norm: Any) -> None:
    data = example()
    prediction = am.predict(data, steps=STEPS, **options)
    assert prediction.norm == norm
    assert prediction.verdict == "conjectured"
    assert prediction.solution.status == "optimal"
    result = am.confirm(prediction, steps=STEPS)
    assert bool(result.agrees)
    assert result.plain is not None
    assert bool(result.plain.agrees)
    assert int(result.plain.steps) > 30
    assert float(result.plain.apart) < 1e-6


def test_nothing_is_guaranteed_that_no_theorem_covers() -> None:
    """Gradient descent with one sequence is guaranteed from every start, sign descent is not."""
    data = am.random_data(1, 3, 5, name="one sequence")
    assert am.predict(data).verdict in ("guaranteed", "guaranteed from this start")
    prediction = am.predict(data, method="steepest", norm=1.5, steps=STEPS)
    assert prediction.verdict == "conjectured"
    assert int(prediction.since) == -1
    assert float(prediction.longest) == float(prediction.share) == 0.0
    assert prediction.checks == prediction.deciding == []
    assert prediction.search is not None
    assert prediction.selection in prediction.search


def test_frobenius_steepest_descent_is_gradient_descent_and_keeps_its_theorems() -> None:
    data = example()
    one, two = am.predict(data, method="steepest", norm="fro"), am.predict(data)
    assert one.verdict == two.verdict
    assert one.verdict in ("guaranteed", "guaranteed from this start")
    assert int(one.since) == int(two.since)


def test_batch_equals_loop() -> None:
    data = example(trials=3)
    batch = am.predict(data, method="steepest", norm=3.0, steps=STEPS)
    assert batch.ending is not None
    for i in range(3):
        alone = am.predict(data[i], method="steepest", norm=3.0, steps=STEPS)
        assert batch[i].verdict == alone.verdict
        assert torch.equal(batch[i].selection, alone.selection)
        assert alone.ending is not None
        assert int(batch.ending.settled[i]) == int(alone.ending.settled)
        torch.testing.assert_close(batch.margin[i], alone.margin)


def test_runs_that_go_nowhere_rest_and_slow_runs_do_not() -> None:
    """Opposite wishes for the same tokens: the best W is finite. Adam is slow, and goes on."""
    rest = am.predict(contradiction(), method="steepest", norm="max", steps=STEPS)
    assert rest.ending is not None
    assert bool(rest.ending.resting)
    assert rest.verdict == "undecided"
    slow = am.predict(example(), method="adam", steps=STEPS)
    assert slow.ending is not None
    assert float(slow.ending.W.abs().max()) < 0.5 * 0.1 * STEPS
    assert not bool(slow.ending.resting)


def test_sentences_name_the_method_and_what_is_known() -> None:
    prediction = am.predict(example(), method=am.methods.Steepest(3.0, momentum=0.5), steps=STEPS)
    assert "steepest descent in the ℓp norm, p = 3.0, and momentum 0.5 on W" in headline(
        prediction, None
    )
    assert norm_words(prediction) == "ℓp norm of its entries, p = 3"
    assert "no theorem covers this method on attention" in prediction.explain()
    assert "proved for linear classifiers (Fan, Schmidt and Thrampoulidis" in prediction.explain()
    assert "momentum=0.5" in repr(prediction)


def test_random_starts() -> None:
    prediction = am.predict(example(), method="steepest", norm=3.0, steps=200, random_starts=5)
    assert int(prediction.starts.count.sum()) == 5
    assert int(prediction.starts.proved.sum()) == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "steepest"}, "norm: got None with method 'steepest'"),
        ({"norm": "max"}, "norm: got 'max' with method 'gd'; needs method 'steepest'"),
        ({"method": "odd"}, "method: got 'odd', which is unknown"),
        ({"method": "adam", "p": 3.0}, "p: got 3 with method Adam("),
        ({"method": "adam", "parameter": "KQ"}, "with parameter 'KQ'; needs a method"),
        ({"method": "steepest", "norm": "max", "parameter": "KQ"}, "with parameter 'KQ'"),
    ],
)
def test_bad_arguments(options: dict[str, Any], words: str) -> None:
    with pytest.raises(am.InputError) as caught:
        am.predict(example(), **options)
    assert words in str(caught.value)
