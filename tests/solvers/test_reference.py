"""The reference method by exact cones."""

import pytest
import torch

import attnmargin as am
from attnmargin.margin.norms import NAMED
from tests.problems import tokens_and_sets


@pytest.mark.parametrize("norm", [*NAMED, 1.1, 1.75, 3.0, 10.0])
def test_reference_brackets_the_same_value(norm: str | float) -> None:
    """Exact cones; its own accuracy is what its certificate says."""
    problem = tokens_and_sets(1)
    fast, slow = am.solve(problem, norm), am.solve(problem, norm, method="reference")
    feasible = torch.from_numpy(fast.status == "optimal")
    assert bool(feasible.any())
    assert bool((slow.certificate.gap[feasible] < 1e-4).all())
    torch.testing.assert_close(fast.value[feasible], slow.value[feasible], rtol=1e-5, atol=0)


def test_reference_proves_infeasibility() -> None:
    rows = torch.tensor([[1.0, 0.0], [-1.0, 0.0]], dtype=torch.float64)
    problem = am.margin_problem(rows, rows.new_ones(2, 1))
    assert am.solve(problem, 3, method="reference").status == "infeasible"


def test_reference_of_nothing_to_do_is_zero() -> None:
    problem = am.margin_problem([[1.0, 0.0]], [[1.0]], bound=[-1.0])
    assert am.solve(problem, "nuc", method="reference").W.tolist() == [[0.0], [0.0]]
