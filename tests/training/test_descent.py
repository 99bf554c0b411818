"""The minimiser inside the regularisation paths."""

import torch
from torch import Tensor

from attnmargin.training.regularization.descent import minimise


def test_minimise_finds_the_minimum_of_a_quadratic() -> None:
    A = torch.diag(torch.tensor([1.0, 100.0, 1e4], dtype=torch.float64))
    goal = torch.tensor([[1.0, -2.0, 3.0], [0.0, 0.0, 5.0]], dtype=torch.float64)

    def function(x: Tensor) -> tuple[Tensor, Tensor]:
        away = x - goal
        return 0.5 * (away @ A * away).sum(-1), away @ A

    torch.testing.assert_close(minimise(function, torch.ones_like(goal), 200, 1e-9), goal)
