"""Kernels in threads: the same answers, and failures that are told."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import attnmargin as am
from attnmargin.base.compiled import in_threads
from tests.problems import optimal_problem


@pytest.fixture
def two_threads() -> Any:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("norm", ["fro", "nuc", 3.0])
def test_answers_do_not_depend_on_threads(norm: str | float, two_threads: None) -> None:
    problem = optimal_problem(am.random_data(3, 4, 5, trials=64, name="threads"))
    first = am.solve(problem, norm)
    torch.set_num_threads(1)
    second = am.solve(problem, norm)
    assert torch.equal(first.W, second.W)
    assert torch.equal(first.dual, second.dual)


def test_every_member_is_visited_once(two_threads: None) -> None:
    visits = np.zeros(100)

    def kernel(part: NDArray[np.float64]) -> None:
        part += 1.0

    in_threads(kernel, [visits], 100)
    assert visits.tolist() == [1.0] * 100


def test_a_failure_in_a_thread_is_raised(two_threads: None) -> None:
    def kernel(part: NDArray[np.float64]) -> None:
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        in_threads(kernel, [np.zeros(100)], 100)
