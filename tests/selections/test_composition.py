"""The best mixture of tokens, beside closed forms and a second method."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from torch import Tensor

import attnmargin as am
from attnmargin.selections.composition import curvature, head_scores
from tests.instances import orthonormal


def simplex_projection(point: Tensor) -> Tensor:
    """Nearest point of the simplex by sorting."""
    ordered = point.sort(descending=True).values
    level = (ordered.cumsum(0) - 1.0) / torch.arange(1, len(point) + 1)
    count = int((ordered > level).sum())
    return (point - level[count - 1]).clamp_min(0.0)


@pytest.mark.parametrize("weight", [0.05, 0.3, 1.0, 3.0])
def test_orthonormal_tokens_are_projected_on_the_simplex(weight: float) -> None:
    """‖s‖² − ⟨γ/λ, s⟩ is least at the projection of γ/2λ."""
    data = orthonormal(6, 5)
    assert data.v is not None
    share = am.selections.optimal_composition(data, am.heads.QuadraticHead(data.v, weight))
    for i in range(6):
        expected = simplex_projection(data.X[i, 0] @ data.v[i] / (2.0 * weight))
        torch.testing.assert_close(share[i, 0], expected, atol=1e-10, rtol=0)


def test_general_tokens_beside_slsqp() -> None:
    data = am.random_data(4, 4, 3, name="mixture")
    assert data.v is not None
    assert data.y is not None
    head = am.heads.QuadraticHead(data.v, 0.7)
    share = am.selections.optimal_composition(data, head)
    X, v, y = data.X.numpy(), data.v.numpy(), data.y.numpy()
    for i in range(4):

        def value(s: np.ndarray, i: int = i) -> float:
            o = X[i].T @ s
            return float(-y[i] * (v @ o - 0.7 * o @ o))

        total = {"type": "eq", "fun": lambda s: s.sum() - 1.0}
        starts = [np.full(4, 0.25), *np.eye(4)]
        ends = [
            minimize(value, s, bounds=[(0, 1)] * 4, constraints=total, tol=1e-12) for s in starts
        ]
        assert value(share[i].numpy()) <= min(float(end.fun) for end in ends) + 1e-9


def test_a_linear_head_selects_single_tokens() -> None:
    data = am.random_data(3, 4, 5, trials=2, name="linear")
    expected = torch.nn.functional.one_hot(am.optimal_tokens(data), 4).double()
    assert torch.equal(am.selections.optimal_composition(data), expected)


def test_masks_and_negative_labels() -> None:
    """With y = −1 the quadratic head is convex: one token, and never a hidden one."""
    X = [[[3.0, 0.0], [0.0, 1.0], [0.0, 5.0]]]
    data = am.AttentionData(X, [[1.0, 0.0]], [-1], [1.0, 1.0], [[True, True, False]])
    share = am.selections.optimal_composition(data, am.heads.QuadraticHead([1.0, 1.0], 1.0))
    assert share.tolist() == [[1.0, 0.0, 0.0]]


def test_curvature_of_known_heads() -> None:
    data = am.AttentionData([[[1.0]], [[1.0]]], [[1.0]] * 2, [1, -1], [1.0])
    relu = curvature(data, am.heads.ReLUHead([[1.0]]))
    assert (relu.convex.tolist(), relu.concave.tolist()) == ([[True, False]], [[False, True]])
    unknown = curvature(data, am.heads.FunctionHead(lambda o: o.sum(-1)))
    assert not bool((unknown.convex | unknown.concave).any())


def test_scores_of_a_head_by_hand() -> None:
    data = am.AttentionData([[[3.0], [1.0]]], [[1.0]], [-1])
    head = am.heads.QuadraticHead([2.0], 1.0)
    assert head_scores(data, head).tolist() == [[3.0, -1.0]]


def test_heads_whose_mixture_is_not_known() -> None:
    data = am.random_data(2, 3, 4, name="unknown")
    with pytest.raises(am.InputError, match="head: got FunctionHead; needs a linear or quadratic"):
        am.selections.optimal_composition(data, am.heads.FunctionHead(lambda o: o.sum(-1)))
    with pytest.raises(am.InputError, match="needs a head with one number per output"):
        am.selections.optimal_composition(data, am.heads.VocabularyHead(torch.eye(4), [0, 1]))
