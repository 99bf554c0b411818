"""Local optimality and label margins, beside brute force and by hand."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import attnmargin as am
from tests.formulas import brute_force


@given(st.integers(0, 10_000), st.integers(1, 4), st.integers(2, 4), st.integers(1, 6))
@settings(max_examples=60, deadline=None)
def test_local_optimality_is_brute_force(seed: int, n: int, T: int, d: int) -> None:
    data = am.random_data(n, T, d, name="hypothesis", seed=seed, distribution="gaussian")
    rng = np.random.default_rng(seed)
    selections = [tuple(int(t) for t in rng.integers(0, T, n)) for _ in range(6)]
    found = am.selections.locally_optimal(data, selections)
    assert found.tolist() == [brute_force(data, s) for s in selections]


def test_optimal_tokens_are_locally_optimal_when_feasible() -> None:
    """Paper A, after Definition 2."""
    data = am.random_data(4, 5, 3, trials=40, name="optimal")
    found = am.selections.locality(data, am.optimal_tokens(data))
    assert int(found.feasible.sum()) > 0
    assert torch.equal(found.local, found.feasible)


def test_batch_equals_loop() -> None:
    data = am.random_data(3, 4, 4, trials=6, name="loop")
    selection = torch.randint(4, (6, 3), generator=torch.Generator().manual_seed(1))
    together = am.selections.locally_optimal(data, selection)
    assert together.tolist() == [
        bool(am.selections.locally_optimal(data[i], selection[i])) for i in range(6)
    ]


def test_label_margin_by_hand() -> None:
    """Tokens ±2 and ±4 on a line: the nearer one decides; both on one side cannot be told apart."""
    data = am.AttentionData([[[2.0], [-1.0]], [[-4.0], [3.0]]], [[1.0]] * 2, [1, -1])
    assert am.selections.label_margin(data, [[0, 0], [0, 1]]).tolist() == [2.0, 0.0]
    with pytest.raises(am.InputError, match="data: got no labels"):
        am.selections.label_margin(am.AttentionData([[[2.0]]], [[1.0]]), [0])


def test_label_margin_in_other_norms() -> None:
    """v = (a, b) with 3a + 4b ≥ 1: the ℓp margin is the dual norm of (3, 4)."""
    data = am.AttentionData([[[3.0, 4.0]]], [[1.0, 0.0]], [1])
    for p, q in ((2.0, 2.0), (3.0, 1.5), (1.5, 3.0)):
        expected = (3.0**q + 4.0**q) ** (1.0 / q)
        assert float(am.selections.label_margin(data, [0], p)) == pytest.approx(expected, rel=1e-8)
