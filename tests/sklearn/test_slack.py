"""The soft margin: closed form, LinearSVC and cvxpy as second opinions, limits."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from numpy.typing import NDArray
from sklearn.svm import LinearSVC

from attnmargin.sklearn import MaxMarginAttention

cp: Any = pytest.importorskip("cvxpy")


def _noise(n: int, T: int, d: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Tokens, and selections that no W realises."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, T, d)), rng.integers(0, T, n)


def test_one_row_has_a_closed_form() -> None:
    """``W = α x zᵀ`` with ``α = 2C / (1 + 2Ca)``, a the square of the row's length."""
    x, z, C = np.array([3.0, 1.0]), np.array([2.0, -1.0]), 0.7
    model = MaxMarginAttention(C=C).fit([[x, 0 * x]], [0], z=[z])
    a = (x @ x) * (z @ z)
    assert_allclose(model.W_, 2 * C / (1 + 2 * C * a) * np.outer(x, z), rtol=1e-12)
    assert_allclose(model.margin_, 1 / np.linalg.norm(model.W_), rtol=1e-12)


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_two_tokens_are_linear_svc_on_pairs(C: float) -> None:
    X, y = _noise(40, 2, 3)
    pairs = np.einsum("nd,ne->nde", X[:, 0] - X[:, 1], X[:, 0]).reshape(40, 9)
    rival = LinearSVC(C=C, fit_intercept=False, tol=1e-12, max_iter=10**6).fit(pairs, y == 0)
    model = MaxMarginAttention(C=C).fit(X, y)
    assert model.status_ == "optimal"
    assert_allclose(model.W_.ravel(), rival.coef_[0], atol=1e-6)


@pytest.mark.parametrize("p", [2.0, 3.0])
def test_tokens_of_a_sequence_share_their_slack(p: float) -> None:
    X, y = _noise(8, 4, 3)
    W, slack = cp.Variable((3, 3)), cp.Variable(8)
    rows = [
        (X[i, y[i]] - X[i, t]) @ W @ X[i, 0] >= 1 - slack[i]
        for i in range(8)
        for t in range(4)
        if t != y[i]
    ]
    price = cp.sum(cp.power(cp.abs(W), p)) / p + 0.7 * cp.sum(cp.power(cp.abs(slack), p))
    cp.Problem(cp.Minimize(price), rows).solve(solver=cp.CLARABEL)
    model = MaxMarginAttention(p, C=0.7).fit(X, y)
    assert_allclose(model.W_, W.value, atol=1e-4)


def test_a_high_price_is_the_hard_margin() -> None:
    X, _ = _noise(6, 4, 5)
    y = np.einsum("ntd,nd->nt", X, X[:, 0]).argmax(-1)
    hard, soft = MaxMarginAttention().fit(X, y), MaxMarginAttention(C=1e9).fit(X, y)
    assert_allclose(soft.W_, hard.W_, atol=1e-7)
    assert_allclose(soft.support_tokens_, hard.support_tokens_)


def test_a_zero_query_changes_nothing() -> None:
    X, y = _noise(8, 4, 3)
    z = X[:, 0].copy()
    z[3] = 0.0
    model, rest = MaxMarginAttention(C=1.0), np.arange(8) != 3
    W = model.fit(X, y, z=z).W_
    assert model.status_ == "optimal"
    assert_allclose(W, model.fit(X[rest], y[rest], z=z[rest]).W_, atol=1e-12)


def test_ties_of_sets_stay_exact() -> None:
    X, y = _noise(8, 4, 3)
    sets = np.eye(4, dtype=bool)[y] | np.eye(4, dtype=bool)[(y + 1) % 4]
    logits = MaxMarginAttention(C=1.0).fit(X, sets).decision_function(X)
    assert_allclose(logits[np.arange(8), y], logits[np.arange(8), (y + 1) % 4], atol=1e-12)
