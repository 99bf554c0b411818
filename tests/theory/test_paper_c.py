"""Checks of paper C on data where the answer is known."""

import numpy as np
import pytest

import attnmargin as am
from tests.instances import mixed_instances


def outcomes(checks: list[am.theory.Check]) -> dict[str, str]:
    return {check.name: str(check.outcome) for check in checks}


def test_checks_of_general_data() -> None:
    own = mixed_instances(1)
    checks = am.theory.check_next_token(own.E[0], own.ids[0], own.labels[0])
    found = outcomes(checks)
    assert found["Theorem 3"] == found["Lemma 2"] == found["Lemma 3"] == "holds"
    assert found["Acyclicity"] == found["Theorem 1"] == "fails"
    assert found["Assumption 1"] == found["Theorem 2"] == "fails"  # the slope of −log u
    squared = outcomes(
        am.theory.check_next_token(own.E[0], own.ids[0], own.labels[0], loss="squared")
    )
    assert squared["Theorem 2"] == "not decidable here"  # W_cyc need not be finite
    assert squared["Theorem 3"] == "fails"
    strict = am.theory.check_next_token(np.eye(3), [[0, 1, 2], [1, 2]], [0, 1], loss="logistic")
    assert outcomes(strict)["Theorem 1"] == outcomes(strict)["Theorem 2"] == "holds"


def test_checks_name_what_is_wrong() -> None:
    missing = am.theory.check_next_token(np.eye(3), [[0, 1]], [2])
    assert outcomes(missing)["Assumption 2"] == "fails"
    assert outcomes(missing)["Lemma 2"] == "not decidable here"
    wide = am.graphs.random_next_tokens(
        9, 4, 5, 4, name="wide"
    )  # nine tokens cannot be independent
    assert outcomes(am.theory.check_next_token(*wide))["Assumption 4"] == "fails"
    head = am.theory.check_next_token(np.eye(3), [[0, 1]], [0], C=np.eye(3)[[1, 0, 2]])
    assert outcomes(head)["Assumption 3"] == outcomes(head)["Assumption 4"] == "fails"
    same = am.theory.check_next_token(np.ones((2, 2)), [[0, 1]], [0])
    assert outcomes(same)["(Graph-SVM) is feasible"] == outcomes(same)["Theorem 3"] == "fails"
    twins = am.theory.check_next_token(
        [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]], [[0, 2]], [0], loss="logistic"
    )
    assert outcomes(twins)["Assumption 3"] == outcomes(twins)["Theorem 1"] == "fails"
    alone = am.theory.check_next_token(np.eye(2), [[0, 0]], [0])
    assert outcomes(alone)["Theorem 3"] == "fails"  # nothing dominates anything
    with pytest.raises(am.InputError, match=r"C: got shape \(2, 2\)"):
        am.theory.check_next_token(np.eye(3), [[0, 1]], [0], C=np.eye(2))
