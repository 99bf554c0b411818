"""Norms against closed forms and their duals."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import attnmargin as am
from attnmargin.margin.norms import as_norm

NAMES = ["fro", "nuc", "spectral", "max", "sum", "rows", "columns"]
NORMS = [*NAMES, 1.1, 1.75, 2.0, 3.0, 10.0]
each_norm = pytest.mark.parametrize("norm", NORMS)


def drawn(*shape: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


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


def test_closed_forms_of_every_norm() -> None:
    W = torch.tensor([[3.0, -4.0], [0.0, 5.0]], dtype=torch.float64)
    values = {"spectral": 45**0.5, "max": 5.0, "sum": 12.0, "rows": 5.0, "columns": 41**0.5}
    duals = {"spectral": 80**0.5, "max": 12.0, "sum": 5.0, "rows": 10.0, "columns": 3 + 41**0.5}
    for norm, value in values.items():
        assert float(as_norm(norm).value(W)) == pytest.approx(value)
        assert float(as_norm(norm).dual_value(W)) == pytest.approx(duals[norm])


def test_steepest_directions_in_closed_form() -> None:
    D = torch.tensor([[3.0, -4.0], [0.0, 4.0]], dtype=torch.float64)
    expected = {
        "fro": (D / 41**0.5).tolist(),
        "max": [[1.0, -1.0], [0.0, 1.0]],
        "sum": [[0.0, -1.0], [0.0, 0.0]],  # the first of two largest entries
        "rows": [[0.6, -0.8], [0.0, 1.0]],
        "columns": [[1.0, -(0.5**0.5)], [0.0, 0.5**0.5]],
    }
    for norm, V in expected.items():
        torch.testing.assert_close(as_norm(norm).steepest(D), torch.tensor(V).double())


def test_steepest_directions_by_singular_values() -> None:
    U, V = torch.linalg.qr(drawn(3, 3))[0], torch.linalg.qr(drawn(4, 4, seed=1))[0][:, :3]
    D = U @ torch.diag(torch.tensor([3.0, 2.0, 0.5]).double()) @ V.T
    torch.testing.assert_close(as_norm("spectral").steepest(D), U @ V.T)
    torch.testing.assert_close(as_norm("nuc").steepest(D), torch.outer(U[:, 0], V[:, 0]))
    rank_two = U[:, :2] @ V[:, :2].T
    torch.testing.assert_close(as_norm("spectral").steepest(rank_two), rank_two)


@each_norm
def test_steepest_direction_attains_the_dual_norm(norm: str | float) -> None:
    N, D = as_norm(norm), drawn(20, 3, 4)
    V = N.steepest(D)
    torch.testing.assert_close((D * V).sum((-2, -1)), N.dual_value(D), rtol=1e-12, atol=0)
    torch.testing.assert_close(N.value(V), torch.ones(20).double(), rtol=1e-12, atol=0)


@each_norm
def test_steepest_direction_of_nothing_and_of_nan(norm: str | float) -> None:
    D = torch.zeros(3, 2, 2)
    D[1, 0, 1], D[2, 1, 1] = torch.nan, torch.inf
    V = as_norm(norm).steepest(D)
    assert V.dtype == torch.float32
    assert bool((V[0] == 0).all())
    assert bool(V[1:].isnan().all())


@each_norm
def test_steepest_direction_keeps_low_precision(norm: str | float) -> None:
    N, D = as_norm(norm), drawn(3, 4)
    low = N.steepest(D.to(torch.bfloat16))
    assert low.dtype == torch.bfloat16
    torch.testing.assert_close(low.double(), N.steepest(D), rtol=0, atol=0.02)


@pytest.mark.parametrize("norm", NAMES)
def test_dual_of_the_dual_is_the_norm(norm: str) -> None:
    """By cvxpy: max ⟨W, V⟩ over dual_value(V) ≤ 1, that norm written down a second time."""
    cvxpy = pytest.importorskip("cvxpy")
    dual = {
        "fro": lambda V: cvxpy.norm(V, "fro"),
        "nuc": cvxpy.sigma_max,
        "spectral": cvxpy.normNuc,
        "max": lambda V: cvxpy.sum(cvxpy.abs(V)),
        "sum": lambda V: cvxpy.max(cvxpy.abs(V)),
        "rows": lambda V: cvxpy.sum(cvxpy.norm(V, 2, axis=1)),
        "columns": lambda V: cvxpy.sum(cvxpy.norm(V, 2, axis=0)),
    }
    W, V, N = drawn(3, 2), cvxpy.Variable((3, 2)), as_norm(norm)
    gain = cvxpy.sum(cvxpy.multiply(W.numpy(), V))
    found = cvxpy.Problem(cvxpy.Maximize(gain), [dual[norm](V) <= 1]).solve("CLARABEL")
    assert found == pytest.approx(float(N.value(W)), rel=1e-6)
    assert float(N.dual_value(torch.from_numpy(V.value))) == pytest.approx(1.0, rel=1e-5)


def test_an_unknown_name_lists_all() -> None:
    with pytest.raises(am.InputError) as caught:
        as_norm("frobenius")
    assert "'fro', 'nuc', 'spectral', 'max', 'sum', 'rows', 'columns' or a number" in str(caught)
    with pytest.raises(am.InputError, match="'max' for p = ∞"):
        as_norm(float("inf"))


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
    for f in (N.value, N.dual_value, N.steepest):
        torch.testing.assert_close(f(W), torch.stack([f(w) for w in W]))


@pytest.mark.parametrize("norm", NORMS)
def test_extreme_scales_neither_overflow_nor_vanish(norm: str | float) -> None:
    W = torch.tensor([[1.0, -2.0], [3.0, 4.0]], dtype=torch.float64)
    N = as_norm(norm)
    for scale in (1e-100, 1e100):
        torch.testing.assert_close(N.value(scale * W), scale * N.value(W))
        torch.testing.assert_close(N.dual_value(scale * W), scale * N.dual_value(W))
    for scale in (1e-300, 1e300):
        torch.testing.assert_close(N.steepest(scale * W), N.steepest(W))


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


@pytest.mark.parametrize("norm", [1.0, 0.5, float("inf"), float("nan"), "Max", None, "1"])
def test_unknown_norms(norm: object) -> None:
    with pytest.raises(am.InputError, match="norm: got"):
        as_norm(norm)  # type: ignore[arg-type]
