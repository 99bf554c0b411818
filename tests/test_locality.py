"""Local optimality and search, beside brute force written without the library's solvers."""

from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import nnls

import attnmargin as am


def shortest(rows: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """min ‖w‖ subject to rows w ≥ 1, by Lawson and Hanson's reduction to NNLS."""
    E = np.concatenate([rows.T, np.ones((1, len(rows)))])
    f = np.zeros(len(E))
    f[-1] = 1.0
    u, size = nnls(E, f, maxiter=10_000)
    if size < 1e-7:
        return None
    r = E @ u - f
    return -r[:-1] / r[-1]


def brute_force(data: am.AttentionData, selection: tuple[int, ...]) -> bool:
    """Definition 2, row by row, in plain numpy."""
    assert data.y is not None
    assert data.v is not None
    X, z, y, v = data.X.numpy(), data.z.numpy(), data.y.numpy(), data.v.numpy()
    pairs = [(i, t) for i in range(data.n) for t in range(data.T) if t != selection[i]]
    rows = np.array([np.outer(X[i, selection[i]] - X[i, t], z[i]).ravel() for i, t in pairs])
    w = shortest(rows)
    if w is None:
        return False
    for (i, t), row in zip(pairs, rows, strict=True):
        tight = abs(row @ w - 1.0) < 1e-7
        if tight and not y[i] * (X[i, selection[i]] @ v) > y[i] * (X[i, t] @ v):
            return False
    return True


@pytest.mark.parametrize("d", [2, 3, 5, 8])
def test_exhaustive_search_is_brute_force(d: int) -> None:
    """All 64 selections of n = 3, T = 4, in five instances."""
    for seed in range(5):
        data = am.random_data(3, 4, d, name="brute", seed=seed)
        expected = {s for s in product(range(4), repeat=3) if brute_force(data, s)}
        found = am.selections.local_selections(data)
        assert {tuple(s) for s in found.selections.tolist()} == expected
        assert (found.searched, found.total, found.complete) == (64, 64, True)


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


def test_definition_4_several_queries_are_several_sequences() -> None:
    base = am.random_data(2, 3, 6, name="queries")
    z = torch.randn(2, 2, 6, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    y = torch.tensor([[1.0, -1.0], [-1.0, 1.0]], dtype=torch.float64)
    several = am.AttentionData(base.X, z, y, base.v)
    copied = am.AttentionData(base.X.repeat_interleave(2, 0), z.reshape(4, 6), y.flatten(), base.v)
    first, second = am.selections.local_selections(several), am.selections.local_selections(copied)
    assert first.selections.shape[1:] == (2, 2)
    assert torch.equal(first.selections.flatten(1), second.selections)
    assert (first.outside_cone, first.feasible) == (second.outside_cone, second.feasible)


def test_an_infeasible_beginning_decides_all_that_continue_it() -> None:
    """Narrow tokens: most selections are infeasible, and few of them are solved."""
    data = am.random_data(5, 5, 2, name="narrow")
    found = am.selections.local_selections(data)
    selections = torch.tensor(list(product(range(5), repeat=5)))
    plain = am.selections.locality(data, selections)
    assert found.complete
    assert found.feasible == int(plain.feasible.sum()) < 3125 // 2
    expected = {tuple(s) for s in selections[plain.local].tolist()}
    assert {tuple(s) for s in found.selections.tolist()} == expected


def test_a_limited_search_says_so_and_finds_what_training_can_reach() -> None:
    data = am.random_data(5, 5, 5, name="limited")
    complete = am.selections.local_selections(data)
    limited = am.selections.local_selections(data, limit=600)
    assert limited.searched == 600
    assert not limited.complete
    assert str(limited).endswith("searched 600 of 3,125")
    known = {tuple(s) for s in complete.selections.tolist()}
    found = {tuple(s) for s in limited.selections.tolist()}
    assert found <= known
    assert tuple(am.optimal_tokens(data).tolist()) in found
    again = am.selections.local_selections(data, limit=600)
    assert torch.equal(again.selections, limited.selections)


def test_a_search_sees_masks() -> None:
    data = am.random_data(3, 4, 5, name="mask")
    mask = torch.tensor(
        [[True, True, False, True], [True, True, True, True], [True, True, False, False]]
    )
    hidden = am.AttentionData(data.X, data.z, data.y, data.v, mask)
    found = am.selections.local_selections(hidden)
    assert found.total == 3 * 4 * 2
    assert bool(mask.gather(1, found.selections.T).all())


def test_selections_are_ordered_and_certified() -> None:
    data = am.random_data(4, 4, 3, name="order", seed=2)
    found = am.selections.local_selections(data, "nuc")
    assert torch.equal(found.selections[0], am.optimal_tokens(data))
    assert bool((found.margin[1:].diff() <= 0).all())
    assert bool((found.solution.certificate.gap <= 1e-9).all())
    assert found.selections[0] in found


@pytest.mark.parametrize("limit", [0, -1, 2.5, "many", True])
def test_a_limit_is_a_positive_number(limit: object) -> None:
    with pytest.raises(am.InputError, match=r"limit: got .*; needs a number of selections"):
        am.selections.local_selections(am.random_data(2, 2, 2, name="x"), limit=limit)  # type: ignore[arg-type]


def test_a_search_is_about_one_instance() -> None:
    with pytest.raises(am.InputError, match="needs one instance, such as data"):
        am.selections.local_selections(am.random_data(2, 2, 2, trials=3, name="x"))


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
