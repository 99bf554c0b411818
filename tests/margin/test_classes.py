"""Rows of the multiclass SVM."""

from importlib import import_module
from typing import Any

import numpy as np
import pytest
import torch

import attnmargin as am
from attnmargin.base.errors import InputError


def test_rows_are_differences_of_scores() -> None:
    rng = np.random.default_rng(0)
    x, y, W = rng.normal(size=(5, 3)), np.array([2, 0, 1, 1, 3]), rng.normal(size=(4, 3))
    problem = am.class_problem(x, y)
    scores = x @ W.T
    expected = [scores[i, y[i]] - scores[i, c] for i in range(5) for c in range(4) if c != y[i]]
    np.testing.assert_allclose(problem.apply(torch.from_numpy(W)).numpy(), expected)
    assert problem.shape == (4, 3)


def test_two_classes_are_the_plain_svm() -> None:
    """With two classes W = (w, −w)/2 for the hard-margin w of the differences."""
    rng = np.random.default_rng(1)
    x, w = rng.normal(size=(20, 4)), rng.normal(size=4)
    y = (x @ w > 0).astype(int)
    W = am.solve(am.class_problem(x, y)).W
    plain = am.solve(am.margin_problem(x * (2 * y - 1)[:, None], [[1.0]])).W[:, 0]
    torch.testing.assert_close(W[1] - W[0], plain)
    torch.testing.assert_close(W[0], -W[1])


def test_second_implementation() -> None:
    """cvxpy, which sees the scores and not the rows."""
    cvxpy: Any = import_module("cvxpy")
    rng = np.random.default_rng(2)
    x = rng.normal(size=(12, 3))
    y = (x @ rng.normal(size=(3, 4))).argmax(-1)
    W = cvxpy.Variable((4, 3))
    scores = x @ W.T
    margins = [
        scores[i, y[i]] - scores[i, c] >= 1 for i in range(12) for c in range(4) if c != y[i]
    ]
    for norm, form in (("fro", cvxpy.norm(W, "fro")), ("nuc", cvxpy.normNuc(W))):
        value = cvxpy.Problem(cvxpy.Minimize(form), margins).solve(solver="CLARABEL")
        found = am.solve(am.class_problem(x, y, classes=4), norm).raise_for_status()
        assert float(found.value) == pytest.approx(value, rel=1e-6)


def test_a_batch_is_its_loop_and_dtype_is_kept() -> None:
    rng = np.random.default_rng(3)
    x = torch.from_numpy(rng.normal(size=(3, 6, 4)).astype(np.float32))
    y = torch.from_numpy(rng.integers(3, size=(3, 6)))
    problem = am.class_problem(x, y, classes=3)
    assert problem.left.dtype == torch.float32
    for b in range(3):
        alone = am.class_problem(x[b], y[b], classes=3)
        for name, own in alone.arrays().items():
            assert torch.equal(own, problem[b].arrays()[name])


def test_contradictions_in_words() -> None:
    same = am.solve(am.class_problem([[1.0, 2.0], [1.0, 2.0]], [0, 1]))
    with pytest.raises(am.InfeasibleError) as caught:
        same.raise_for_status()
    assert str(caught.value) == (
        "infeasible: example 0 wants class 0 over class 1, example 1 the reverse, "
        "with the same features"
    )
    zero = am.solve(am.class_problem([[0.0, 0.0], [1.0, 2.0]], [0, 1]))
    with pytest.raises(am.InfeasibleError) as caught:
        zero.raise_for_status()
    assert str(caught.value) == (
        "infeasible: example 0 wants class 0 over class 1, but its features are zero"
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"features": [1.0, 2.0]}, r"features: got shape \(2,\); needs \(\*B, n, d\)"),
        ({"labels": [0]}, r"labels: got shape \(1,\); needs one label per example, \(\*B, 2\)"),
        ({"labels": [0, -1]}, "labels: got labels from -1 to 0; needs labels from 0 to 1"),
        ({"labels": [0, 2], "classes": 2}, "labels: got labels from 0 to 2; needs labels from 0"),
        ({"classes": 1}, "classes: got 1; needs a whole number of at least 2"),
        ({"features": [[1.0, float("nan")], [0.0, 1.0]]}, "features"),
    ],
)
def test_one_wrong_thing(change: dict[str, Any], words: str) -> None:
    working: dict[str, Any] = {"features": [[1.0, 0.0], [0.0, 1.0]], "labels": [0, 1], "classes": 2}
    am.class_problem(**working)
    with pytest.raises(InputError, match=words):
        am.class_problem(**(working | change))
