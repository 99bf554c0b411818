"""Checks of paper B on data where the answer is known."""

import pytest

import attnmargin as am
from attnmargin.theory.facts import Facts
from attnmargin.theory.paper_b import radius
from tests.instances import identity_data


def test_the_radius_of_paper_b_by_hand() -> None:
    """No token but support tokens: δ = 1/4; ‖xzᵀ‖ = 1, so A = max(1, ‖W‖)."""
    facts = Facts(identity_data())
    W = facts.solution.W
    assert float(radius(facts)) == pytest.approx(0.5 * (0.25 / (8.0 * float(W.norm()))) ** 2)
    cubic = Facts(identity_data(), p=3.0)
    A = max(1.0, float(cubic.solution.value))
    assert float(radius(cubic)) == pytest.approx((0.25 / (8.0 * A)) ** 3 / 3.0)
    low = Facts(identity_data(), p=1.5)
    A, d = max(1.0, float(low.solution.value)), low.data.d
    expected = (0.25 * 0.5 / (4.0 * A * d ** (1.0 / 3.0))) ** 2 / 1.5
    assert float(radius(low)) == pytest.approx(expected)


def test_assumption_b_of_paper_b_is_refuted_by_a_better_token() -> None:
    X = [[[2.0, 0.0], [1.0, 9.0]]]
    data = am.AttentionData(X, [[1.0, 0.0]], [1], [1.0, 0.0])
    check = am.predict(data).check("B: Assumption B")
    assert check.outcome == am.theory.Outcome.FAILS
    assert float(check.numbers["label margin"]) == pytest.approx(2.0)
    assert float(check.numbers["largest after exchanging one token"]) == pytest.approx(82.0**0.5)
