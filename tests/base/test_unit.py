"""Lengths against rational numbers: the order of sums, and one rounding for each entry."""

from fractions import Fraction
from math import sqrt

import pytest
import torch

from attnmargin.base.unit import lengths, unit


def _length(row: list[float]) -> float:
    """Add squares in four lanes with two roundings, and the rest with one."""
    body = len(row) - len(row) % 4
    lanes = [0.0] * 4
    for k in range(body):
        lanes[k % 4] += row[k] * row[k]
    total = ((lanes[0] + lanes[1]) + lanes[2]) + lanes[3]
    for x in row[body:]:
        total = float(Fraction(x) ** 2 + Fraction(total))
    return sqrt(total)


@pytest.mark.parametrize("d", [2, 3, 4, 5, 6, 7, 10, 64])
@pytest.mark.parametrize("scale", [1.0, 1e-30, 1e30])
def test_lengths_are_rounded_as_they_say(d: int, scale: float) -> None:
    draw = torch.Generator().manual_seed(d)
    x = scale * torch.randn(200, d, generator=draw, dtype=torch.float64)
    assert lengths(x.numpy()).tolist() == [_length(row) for row in x.tolist()]


def test_a_view_and_a_single_number_are_scaled_too() -> None:
    draw = torch.Generator().manual_seed(1)
    x = torch.randn(3, 7, 5, generator=draw, dtype=torch.float64)
    assert torch.equal(unit(x.mT), unit(x.mT.contiguous()))
    assert unit(torch.tensor([[0.3], [-0.7]], dtype=torch.float64)).tolist() == [[1.0], [-1.0]]
