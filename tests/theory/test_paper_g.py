"""Paper G as checks."""

import pytest
import torch

import attnmargin as am
from attnmargin.theory.check import Outcome


def outcomes(kept: list[float], decay: float = 0.5) -> list[Outcome]:
    """Check balanced factors with these singular values, for the target diag(1, 2)."""
    W = torch.diag(torch.tensor(kept, dtype=torch.float64))
    G = W - torch.diag(torch.tensor([1.0, 2.0], dtype=torch.float64))
    return [check.outcome for check in am.theory.check_decay(G, W.sqrt(), W.sqrt(), decay)]


def test_the_shrunk_target_is_the_minimum() -> None:
    assert outcomes([0.5, 1.5]) == [Outcome.HOLDS] * 4
    assert outcomes([0.0, 0.5], decay=1.5) == [Outcome.HOLDS] * 4


def test_a_saddle_rests_and_balances_without_being_a_minimum() -> None:
    assert outcomes([0.5, 0.0]) == [Outcome.HOLDS] * 3 + [Outcome.FAILS]
    assert outcomes([0.0, 0.0]) == [Outcome.HOLDS] * 3 + [Outcome.FAILS]


def test_balanced_factors_need_not_rest() -> None:
    found = outcomes([1.0, 1.0])
    assert found == [Outcome.FAILS, Outcome.HOLDS, Outcome.HOLDS, Outcome.FAILS]


def test_unbalanced_factors_have_a_smaller_product() -> None:
    checks = am.theory.check_decay([[-0.5]], [[1.0]], [[0.5]], 0.5)
    assert [check.outcome for check in checks[:3]] == [Outcome.FAILS] * 3
    assert float(checks[2].numbers["½ (‖A‖² + ‖B‖²) − ‖A Bᵀ‖_*"]) == pytest.approx(0.125)


def test_batches_and_bad_arguments() -> None:
    G, A = torch.full((3, 1, 1), -0.5), torch.full((3, 1, 1), 0.5**0.5)
    for check in am.theory.check_decay(G, A, A, 0.5, 1e-5):
        assert check.outcome.shape == (3,)
        assert (check.outcome == Outcome.HOLDS).all()
    with pytest.raises(am.InputError, match="decay: got 0"):
        am.theory.check_decay(G, A, A, 0.0)
    with pytest.raises(am.InputError, match="gradient: got shape"):
        am.theory.check_decay([[1.0, 2.0]], [[1.0]], [[1.0]], 0.5)
