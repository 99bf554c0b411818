"""Sums of products in twice the precision."""

from fractions import Fraction

import numpy as np
import pytest
import torch

from attnmargin.base.sums import accurate_dot


@pytest.mark.parametrize("seed", range(5))
def test_dot_products_are_rounded_once(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, 9)) * 10.0 ** rng.integers(-6, 7, (40, 9))
    v = rng.standard_normal(9)
    X[:, 4] = -X[:, 3] * v[3] / v[4]  # cancels up to rounding
    found = accurate_dot(torch.tensor(X), torch.tensor(v)).numpy()
    exact = [float(sum(Fraction(a) * Fraction(b) for a, b in zip(x, v, strict=True))) for x in X]
    np.testing.assert_allclose(found, exact, rtol=2e-16, atol=1e-30)


def test_single_precision_stays_single() -> None:
    X = torch.tensor([[1e7, 1.0, -1e7]], dtype=torch.float32)
    found = accurate_dot(X, torch.ones(3, dtype=torch.float32))
    assert found.dtype == torch.float32
    assert found.tolist() == [1.0]
