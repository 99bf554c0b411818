"""Margins of one problem in many norms."""

import pytest
import torch

import attnmargin as am
from attnmargin.margin.norms import NAMED
from tests.problems import optimal_problem, planted_contradiction, random_problem


def test_one_row_in_closed_form() -> None:
    """Any W along the row is best in Frobenius, and a known share of the best elsewhere."""
    found = am.margins(am.margin_problem([[3.0, 4.0]], [[1.0]]), norms=["fro", "max", "sum"])
    expected = torch.tensor([5.0, 7.0, 4.0]).double()
    torch.testing.assert_close(found.best, expected, rtol=1e-9, atol=0)
    row = torch.tensor([1.0, 25 / 4 / 7, 25 / 7 / 4], dtype=torch.float64)
    torch.testing.assert_close(found.ratios[0], row, rtol=1e-9, atol=0)


def test_ratios_are_at_most_one_and_one_on_the_diagonal() -> None:
    found = am.margins(random_problem((5, 5, 4), 6, "sphere", False))
    assert found.ratios.shape == (6, 7, 7)
    assert found.best.shape == (6, 7)
    there = found.optimal
    assert bool(there.any())
    assert bool((found.ratios[there] <= 1 + 1e-9).all())
    diagonal = found.ratios[there].diagonal(dim1=-2, dim2=-1)
    torch.testing.assert_close(diagonal, torch.ones_like(diagonal), rtol=1e-9, atol=0)
    assert [norm.name for norm in found.norms] == list(NAMED)


def test_a_trajectory_nears_one_in_the_norm_of_its_optimiser() -> None:
    data = am.random_data(4, 5, 6, trials=2, name="margins of a run")
    problem = optimal_problem(data)
    run = am.train(data, lr=0.1, steps=2000, record=1000)
    found = am.margins(problem, run.W, norms=["fro", "max"])
    assert found.given is not None
    assert found.given.shape == (3, 2, 2)
    assert bool(found.given[0].isnan().all())  # W = 0 has no direction
    assert bool((found.given[1:] <= 1 + 1e-9).all())
    assert bool((found.given[-1, :, 0] > found.given[-1, :, 1]).all())


def test_a_batch_equals_its_loop() -> None:
    problem = random_problem((4, 4, 3), 3, "gaussian", False)
    together = am.margins(problem, norms=["fro", "spectral", "sum"])
    for b in range(3):
        alone = am.margins(problem[b], norms=["fro", "spectral", "sum"])
        torch.testing.assert_close(together[b].ratios, alone.ratios, equal_nan=True)
        assert "W" not in alone.summary()["fro"]


def test_infeasible_problems_have_no_margins() -> None:
    found = am.margins(planted_contradiction(3, 2, 4, 0)[0], norms=["fro", "max"])
    assert bool(found.ratios.isnan().all())
    assert not bool(found.optimal)
    assert "undefined" in repr(found) or "nan" in repr(found)


def test_weights_of_another_shape_are_refused() -> None:
    problem = am.margin_problem([[3.0, 4.0]], [[1.0]])
    with pytest.raises(am.InputError, match=r"W: got shape \(1, 2\); needs \(\*L, 2, 1\)"):
        am.margins(problem, [[1.0, 2.0]])
    with pytest.raises(am.InputError, match="norms: got none"):
        am.margins(problem, norms=[])
