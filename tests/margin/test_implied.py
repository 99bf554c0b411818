"""Which norm each method implies, and how sure that is."""

import pytest

import attnmargin as am
from attnmargin.margin.implied import Evidence, implication, implied_norm
from attnmargin.margin.norms import NAMED, Frobenius, Max, Nuclear, Spectral


def test_the_papers_cases() -> None:
    assert implication("W").norm == Frobenius()
    assert implication("W").evidence == Evidence.ATTENTION
    assert implication("KQ").norm == Nuclear()
    assert implication("KQ").evidence == Evidence.CONJECTURED
    assert implication("W", "mirror", p=3.0).evidence == Evidence.ATTENTION
    assert implication("KQ", "mirror", p=3.0).norm is None


def test_steepest_descent_has_its_own_norm() -> None:
    for name, norm in NAMED.items():
        found = implication("W", "steepest", name)
        assert found.norm == norm
        sure = Evidence.ATTENTION if name == "fro" else Evidence.LINEAR
        assert found.evidence == sure
    assert implication("KQ", "steepest", "fro") == implication("KQ")
    assert implication("W", "steepest", 2.0) == implication("W")


def test_momentum_is_proved_for_less() -> None:
    heavy = {name: implication("W", "steepest", name, momentum=0.9).evidence for name in NAMED}
    assert heavy.pop("rows") == heavy.pop("columns") == Evidence.CONJECTURED
    assert set(heavy.values()) == {Evidence.LINEAR}


def test_adam_and_factors() -> None:
    assert implication("W", "adam").norm == Max()
    assert implication("W", "adam").evidence == Evidence.LINEAR
    assert implication("KQ", "steepest", "spectral").norm == Spectral()
    for method, norm in (("adam", None), ("steepest", "max")):
        assert implication("KQ", method, norm).norm is None
        assert implication("vW", method, norm).evidence == Evidence.UNKNOWN


def test_unknown_methods() -> None:
    with pytest.raises(am.InputError, match="method: got 'steepest'; needs one of"):
        implication("W", "steepest")
    with pytest.raises(am.InputError, match="p: got 3 with parameter 'KQ'"):
        implied_norm("KQ", 3.0)
