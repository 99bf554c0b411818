"""Norms against closed forms and their duals."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import attnmargin as am
from attnmargin.margin.norms import as_norm

NORMS = ["fro", "nuc", 1.1, 1.75, 2.0, 3.0, 10.0]


@pytest.mark.parametrize("p", [1.1, 1.75, 3.0])
def test_lp_uses_absolute_values(p: float) -> None:
    W = torch.tensor([[-1.0, 2.0], [0.0, -3.0]], dtype=torch.float64)
    expected = (1 + 2**p + 3**p) ** (1 / p)
    assert float(as_norm(p).value(W)) == pytest.approx(expected, rel=1e-14)


def test_closed_forms() -> None:
    W = torch.diag(torch.tensor([3.0, -4.0], dtype=torch.float64))
    assert float(as_norm("fro").value(W)) == 5.0
    assert float(as_norm("nuc").value(W)) == pytest.approx(7.0)
    assert float(as_norm("nuc").dual_value(W)) == pytest.approx(4.0)


@given(seed=st.integers(0, 10_000), norm=st.sampled_from(NORMS))
def test_hoelder(seed: int, norm: str | float) -> None:
    generator = torch.Generator().manual_seed(seed)
    V, W = torch.randn(2, 3, 4, generator=generator, dtype=torch.float64)
    N = as_norm(norm)
    assert float((V * W).sum().abs()) <= float(N.value(V) * N.dual_value(W)) * (1 + 1e-12)


@pytest.mark.parametrize("p", [1.1, 1.75, 2.0, 3.0, 10.0])
def test_dual_of_lp_is_attained(p: float) -> None:
    W = torch.randn(4, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    N = as_norm(p)
    V = W.sign() * W.abs() ** (1 / (p - 1))  # the direction of equality in Hölder
    ratio = (V * W).sum() / (N.value(V) * N.dual_value(W))
    assert float(ratio) == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("norm", NORMS)
def test_batch_equals_loop(norm: str | float) -> None:
    W = torch.randn(5, 3, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    N = as_norm(norm)
    for f in (N.value, N.dual_value):
        torch.testing.assert_close(f(W), torch.stack([f(w) for w in W]))


@pytest.mark.parametrize("norm", NORMS)
def test_extreme_scales_neither_overflow_nor_vanish(norm: str | float) -> None:
    W = torch.tensor([[1.0, -2.0], [3.0, 4.0]], dtype=torch.float64)
    N = as_norm(norm)
    for scale in (1e-100, 1e100):
        torch.testing.assert_close(N.value(scale * W), scale * N.value(W))


@pytest.mark.parametrize("norm", NORMS)
def test_zero_and_nan(norm: str | float) -> None:
    W = torch.zeros(2, 2, 2, dtype=torch.float64)
    W[1] = torch.nan
    value = as_norm(norm).value(W)
    assert float(value[0]) == 0.0
    assert bool(value[1].isnan())


@pytest.mark.parametrize("norm", NORMS)
def test_name_means_the_norm(norm: str | float) -> None:
    assert as_norm(as_norm(norm).name) == as_norm(norm)


@pytest.mark.parametrize("p", [3, 3.0, "3", np.float32(3), np.int64(3)])
def test_numbers_of_any_kind(p: float) -> None:
    assert as_norm(p) == am.Lp(3.0)


@pytest.mark.parametrize("norm", [1.0, 0.5, float("inf"), float("nan"), "max", None, "1"])
def test_unknown_norms(norm: object) -> None:
    with pytest.raises(am.InputError, match="norm: got"):
        as_norm(norm)  # type: ignore[arg-type]
