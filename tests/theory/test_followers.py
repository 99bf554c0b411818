"""Checks of papers F, H, I and J by hand."""

import numpy as np
import torch

import attnmargin as am
from attnmargin.graphs.topics import Topic
from attnmargin.theory.check import Check, Outcome


def outcomes(checks: list[Check]) -> dict[str, Outcome]:
    return {check.name: check.outcome for check in checks}


def test_a_far_sequence_is_not_needed() -> None:
    """The label margin of x = ±1 and 3 is held by the near ones; p need not separate the third."""
    X = torch.tensor(
        [[[1.0, 1.0], [1.0, 0.0]], [[-1.0, 1.0], [-1.0, 0.0]], [[3.0, -1.0], [3.0, 0.0]]]
    )
    data = am.AttentionData(X.double(), torch.ones(3, 2).double(), [1.0, -1.0, 1.0], [1.0, 0.0])
    found = outcomes(am.theory.check_prompt(data, [0, 0, 0]))
    assert found["Separation"] == Outcome.FAILS
    assert found["Every sequence is needed"] == Outcome.FAILS
    assert found["Relaxed separation"] == Outcome.FAILS  # ranking the third first needs p_2 ≤ 0
    found = outcomes(am.theory.check_prompt(data, [0, 0, 1]))
    assert found["Separation"] == found["Relaxed separation"] == Outcome.HOLDS


def test_a_row_that_holds_without_pulling() -> None:
    """Two equal queries: the third token lies on the margin of the second, and pulls nothing."""
    X = torch.tensor([[[2.0, 0.0], [1.0, 0.0], [1.0, 0.5]]], dtype=torch.float64)
    data = am.AttentionData(X, [[1.0, 0.0]], [1.0], [1.0, 0.0])
    found = outcomes(am.theory.check_rates(data, [0]))
    assert found == {"Separation": Outcome.HOLDS, "Strict support": Outcome.FAILS}
    strict = am.AttentionData(X[:, :2], [[1.0, 0.0]], [1.0], [1.0, 0.0])
    assert outcomes(am.theory.check_rates(strict, [0]))["Strict support"] == Outcome.HOLDS


def test_a_majority_inverts_attention_alone() -> None:
    one, two = (
        Topic(np.array([0, 1, 2]), np.tile(rank, (3, 1))) for rank in ([0, 1, 2], [1, 0, 2])
    )
    data = am.graphs.mixture((one, two), (30, 300), 3, np.random.default_rng(1))
    found = outcomes(am.theory.check_topics(one, *data, 3))
    assert found == {"Order of the graph": Outcome.HOLDS, "Order of attention": Outcome.FAILS}


def test_coverage_without_a_minimum() -> None:
    covered = am.theory.check_chain([[0, 1, 0], [0, 1, 1]], [0, 0], 2)
    assert outcomes(covered) == {"Coverage": Outcome.HOLDS, "Identified": Outcome.FAILS}
    apart = am.theory.check_chain([[0, 0], [0, 1, 1]], [0, 0], 2)
    assert apart[0].note == "0: no prompt holds tokens of both [0] and [1]"
