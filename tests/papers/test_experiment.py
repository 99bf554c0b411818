"""Claims and intervals."""

import json

import numpy as np
import pytest

from attnmargin.base.intervals import mean_error, share_interval
from attnmargin.papers.engine.claims import (
    at_least,
    at_most,
    correlation_of,
    difference_of,
    largest_of,
    least_of,
    mean_of,
    more_than,
    number_of,
    share_of,
    stated,
)


def test_intervals() -> None:
    """Wilson's interval of 8 in 10, from its formula; a mean of equal numbers has no width."""
    low, high = share_interval(np.array([8]), 10)
    assert (float(low[0]), float(high[0])) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    mean, half = mean_error(np.full((4, 2), 3.0))
    assert (mean.tolist(), half.tolist()) == ([3.0, 3.0], [0.0, 0.0])


def test_claims_without_a_number_are_valid_json() -> None:
    record = stated("c", float("nan"), "≥ 1", np.bool_(False)).record()  # type: ignore[arg-type]
    assert json.loads(json.dumps(record)) == {
        "claim": "c", "measured": None, "error": None, "count": None, "bound": "≥ 1",
        "holds": False, "verdict": "fails",
    }  # fmt: skip


def test_numbers_have_errors_and_counts() -> None:
    values = [1.0, 2.0, 4.0, 5.0]
    mean = mean_of(values)
    assert (mean.value, mean.count) == (3.0, 4)
    assert mean.error == pytest.approx(np.std(values, ddof=1) / 2.0)
    assert mean_of([7.0]).error is None
    share = share_of([True, True, False, True])
    assert (share.value, share.count) == (0.75, 4)
    assert share.span()[1] < 1.0
    assert (least_of(values).value, largest_of(values).value) == (1.0, 5.0)
    assert number_of([True, False, True]).value == 2.0
    assert difference_of(values, [0.0, 2.0, 3.0, 3.0]).value == 1.0
    apart = difference_of(values, [1.0, 2.0])
    assert apart.value == 1.5
    assert mean.error is not None
    assert apart.error == pytest.approx(np.hypot(mean.error, 0.5))
    assert mean_of([]).value is None


def test_rank_correlations_have_an_interval_that_stays_below_one() -> None:
    """Bonett and Wright: variance (1 + r²/2)/(n − 3) of Fisher's z."""
    own = correlation_of(0.95, 28)
    half = 1.96 * np.sqrt((1 + 0.95**2 / 2) / 25)
    low, high = np.tanh(np.arctanh(0.95) + half * np.array([-1.0, 1.0]))
    assert own.span() == pytest.approx((low, high))
    assert own.span()[1] < 1.0
    assert own.error == pytest.approx((1 - 0.95**2) * half / 1.96)
    assert at_least("c", own, 0.96).verdict == "undecided"
    assert at_least("c", own, 0.99).verdict == "fails"
    assert (correlation_of(1.0, 9).error, correlation_of(0.3, 3).error) == (0.0, None)
    assert at_least("c", correlation_of(float("nan"), 9), 0.0).verdict == "undecided"


def test_claims_are_judged_by_their_intervals() -> None:
    """Mean 3, standard error 0.913, Student's 3.182 for four values: 95 % from 0.09 to 5.91."""
    mean = mean_of([1.0, 2.0, 4.0, 5.0])
    assert mean.span() == pytest.approx((0.0948, 5.9052), abs=1e-4)
    for bound, word in ((2.9, "holds"), (3.1, "undecided"), (5.8, "undecided"), (6.0, "fails")):
        assert at_least("c", mean, bound).verdict == word
        assert at_most("c", mean_of([-1.0, -2.0, -4.0, -5.0]), -bound).verdict == word
    assert at_least("c", 3.0, 3.1).verdict == "fails"
    few = np.arange(4.0)
    assert more_than("c", few + 1.0, few).verdict == "holds"
    assert more_than("c", few, few + 1.0).verdict == "fails"
    assert more_than("c", few, few[::-1]).verdict == "undecided"
    assert more_than("c", few + 1.0, few, by=2.0).verdict == "fails"
    assert at_least("c", mean_of([]), 0.0).verdict == "undecided"
    assert stated("c", number_of([]), "0", True).verdict == "undecided"
