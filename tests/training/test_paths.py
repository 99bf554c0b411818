"""Regularisation paths: the theorems' limits."""

from typing import Any

import pytest
import torch
from torch import Tensor

import attnmargin as am
from tests.problems import optimal_problem

RADII = [30.0, 100.0, 300.0, 1000.0]


EXAMPLE_2 = [
    [[-5.4, 2.4], [2.8, 4.2], [2.6, -0.2]],
    [[0.8, -4.4], [-2.2, -0.8], [1.8, 0.2]],
]


def off(run: am.Trajectory, solution: am.Solution) -> Tensor:
    return torch.stack([am.measures.misalignment(W, solution.W) for W in run.W])


@pytest.mark.parametrize("p", [1.75, 2.0, 3.0])
def test_path_of_w_ends_in_the_svm(p: float) -> None:
    """Paper A, Theorem 2; paper B, Theorem 1."""
    data = am.random_data(4, 5, 6, trials=3, name="path")
    run = am.regularization_path(data, RADII, p=p)
    away = off(run, am.solve(optimal_problem(data), p))
    assert bool((away.diff(dim=0) < 0).all())
    assert float(away[-1].max()) < 1e-3
    sizes = torch.stack([am.Lp(p).value(W) for W in run.W])
    torch.testing.assert_close(sizes, torch.tensor(RADII).double()[:, None].expand_as(sizes))


def test_path_of_factors_ends_in_the_nuclear_svm() -> None:
    """Paper A, Theorem 2, KQ-RP."""
    data = am.random_data(4, 5, 6, trials=3, name="path")
    run = am.regularization_path(data, RADII, "KQ")
    away = off(run, am.solve(optimal_problem(data), "nuc"))
    assert bool((away.diff(dim=0) < 0).all())
    assert float(away[-1].max()) < 1e-3
    K, Q = run.last
    size = K.flatten(1).square().sum(-1) + Q.flatten(1).square().sum(-1)
    torch.testing.assert_close(size, torch.full_like(size, 2 * RADII[-1]))


@pytest.mark.parametrize("p", [1.75, 2.0, 3.0])
def test_joint_path_ends_in_both_svms(p: float) -> None:
    """Paper B, Theorem 5, on its Example 2."""
    data = am.AttentionData(EXAMPLE_2, [EXAMPLE_2[0][0], EXAMPLE_2[1][0]], [1.0, -1.0])
    run = am.regularization_path(data, [1.0, 10.0, 100.0], "vW", p)
    selection = run.selection[-1]
    W = am.solve(am.token_problem(data.X, data.z, selection), p).W
    v = am.solve(am.label_problem(data.X, data.y, selection), p).W
    for away in (
        am.measures.misalignment(run.W, W),
        am.measures.misalignment(run.v.unsqueeze(-1), v),
    ):
        assert bool((away.diff() < 0).all())
        assert float(away[-1]) < 1e-3


def test_local_path_stays_with_its_selection() -> None:
    """Paper A, Theorem 9: over the cone of Definition 3, towards the SVM of the selection."""
    data = am.random_data(4, 5, 6, trials=40, name="local path")
    ends = am.train(data, steps=3000, record=3000).selection[-1]
    local = (ends != am.optimal_tokens(data)).any(-1).nonzero()[:, 0]
    assert len(local) > 0
    data = am.AttentionData(*(x[local] for x in (data.X, data.z, data.y, data.v)))
    selection = ends[local]
    solution = am.solve(am.token_problem(data.X, data.z, selection))
    run = am.regularization_path(data, RADII, selection=selection, init=solution.W)
    away = off(run, solution)
    assert torch.equal(run.selection[-1], selection)
    assert bool((away.diff(dim=0) < 0).all())
    assert float(away[-1].max()) < 1e-3


def test_the_minimum_on_a_small_sphere_is_the_gradient() -> None:
    """As R → 0 the loss is linear in W."""
    data = am.random_data(3, 4, 5, trials=3, name="small")
    run = am.regularization_path(data, [1e-4])
    G, _ = am.gradient(data, torch.zeros(5, 5, dtype=torch.float64))
    torch.testing.assert_close(am.correlation(run.W[0], -G), torch.ones(3).double())


def test_path_in_a_batch_equals_a_loop() -> None:
    data = am.random_data(3, 4, 5, trials=3, name="loop")
    batch = am.regularization_path(data, [1.0, 30.0])
    for i in range(3):
        own = am.AttentionData(data.X[i], data.z[i], data.y[i], data.v[i])
        alone = am.regularization_path(own, [1.0, 30.0])
        torch.testing.assert_close(batch.W[:, i], alone.W, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"radii": []}, "radii: got []"),
        ({"radii": [1.0, 1.0]}, "positive numbers that grow"),
        ({"radii": [-1.0]}, "positive numbers that grow"),
        ({"parameter": "Z"}, "parameter: got 'Z'"),
        ({"parameter": "KQ", "p": 3.0}, "p: got 3.0 for KQ"),
        ({"selection": [0, 0]}, "init: got nothing"),
        ({"selection": [0], "init": torch.eye(4).double()}, "selection: got shape (1,)"),
    ],
)
def test_bad_paths(options: dict[str, Any], words: str) -> None:
    with pytest.raises(am.InputError) as caught:
        am.regularization_path(am.random_data(2, 3, 4), **{"radii": [1.0], **options})
    assert words in str(caught.value)


def test_a_local_path_must_begin_in_its_cone() -> None:
    data = am.random_data(4, 5, 6, name="outside")
    worst = am.scores(data).argmin(-1)
    start = torch.zeros(6, 6, dtype=torch.float64)
    for i in range(4):
        best = am.optimal_tokens(data)[i]
        start += torch.outer(data.X[i, best], data.z[i])
    with pytest.raises(am.InputError, match="init: got weights outside of the cone"):
        am.regularization_path(data, [10.0], selection=worst, init=start)
    with pytest.raises(am.InputError, match="selection: got tokens from 9"):
        am.regularization_path(data, [10.0], selection=[9] * 4, init=start)


def test_nearly_level_valleys_are_told_apart() -> None:
    X = [
        [[1.849646310864678, 0.11045604043557869], [-1.5260581457219795, 1.1028780014294741]],
        [[-1.84964560151543, -0.11045695339779545], [1.5260576942254966, -1.1028784602691317]],
    ]
    z = [[-0.36901700974819085, 1.8389952138233376]] * 2
    data = am.AttentionData(X, z, [-1.0, 1.0], [-2.919868771125006, 0.8816047003687495])
    path = am.regularization_path(data, [1.8499345805397316], p=3.0)
    # It is 0.72484594 at zero, 0.724845659 at [[.19826983, −.53137047], [.79988402, −1.78226901]].
    assert float(path.loss[0]) < 0.7248456587
