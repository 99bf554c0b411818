"""The cones of paper A, Definition 3, and of paper B, Definition 5."""

import pytest
import torch

import attnmargin as am

SCORES = [[[3.0, 0.0], [5.0, 1.0], [2.0, 2.0]]]  # logits 3, 5, 2 and scores 0, 1, 2


def test_the_cone_of_definition_3_by_hand() -> None:
    """Scores 0, 1, 2 with the middle one chosen: the lowest must stand above the highest."""
    data = am.AttentionData(SCORES, [[1.0, 0.0]], [1.0], [0.0, 1.0])
    W = torch.tensor([[2.0, 0.0], [0.0, 0.0]], dtype=torch.float64)
    assert float(am.selections.score_barrier(data, W, [1])) == 1.0  # (6 − 4) / ‖W‖
    assert float(am.selections.score_barrier(data, -W, [1])) == -1.0
    assert (
        float(am.selections.score_barrier(data, W, [2])) == torch.inf
    )  # everything, for optimal tokens
    assert (
        float(am.selections.score_barrier(data, W, [0])) == -torch.inf
    )  # nothing shields the lowest


def test_lemma_5_where_every_sequence_has_support() -> None:
    """Locally optimal directions are in the cone, and no others."""
    data = am.random_data(3, 3, 8, trials=20, name="lemma 5")
    for index in range(20):
        one = data[index]
        selections = torch.cartesian_prod(*[torch.arange(3)] * 3)
        found = am.selections.locality(one, selections)
        shielded = found.support.any(-1).all(-1)
        wall = torch.stack(
            [
                am.selections.score_barrier(one, W, s)
                for W, s in zip(found.solution.W, selections, strict=True)
            ]
        )
        assert torch.equal((wall > 1e-7)[shielded], found.local[shielded])


def test_batch_equals_loop() -> None:
    data = am.random_data(3, 4, 5, trials=4, name="barrier")
    W = torch.randn(4, 5, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    together = am.selections.score_barrier(data, W, [0, 1, 2])
    alone = torch.stack([am.selections.score_barrier(data[i], W[i], [0, 1, 2]) for i in range(4)])
    torch.testing.assert_close(together, alone)


def test_the_cone_of_directions_by_hand() -> None:
    """p = 2 is a correlation of at least 1 − μ, and a norm of at least R."""
    reference = [[1.0, 0.0]]
    assert bool(am.selections.in_direction_cone([[4.0, 3.0]], reference, mu=0.2001, radius=5.0))
    assert not bool(am.selections.in_direction_cone([[4.0, 3.0]], reference, mu=0.1999, radius=5.0))
    assert not bool(
        am.selections.in_direction_cone([[4.0, 3.0]], reference, mu=0.2001, radius=5.001)
    )
    assert not bool(am.selections.in_direction_cone([[0.0, 0.0]], reference, mu=0.5))


@pytest.mark.parametrize("p", [1.5, 3.0])
def test_the_cone_of_directions_is_bregman(p: float) -> None:
    generator = torch.Generator().manual_seed(3)
    W, reference = (torch.randn(30, 3, 3, generator=generator, dtype=torch.float64) for _ in "ab")
    away = am.bregman(reference, W, p)
    mu = float(away.median())
    assert torch.equal(am.selections.in_direction_cone(W, reference, mu, p=p), away <= mu)


def test_bad_cones_are_told_in_a_sentence() -> None:
    with pytest.raises(am.InputError, match="W1 and W2: got shapes"):
        am.selections.in_direction_cone([1.0], [[1.0]], mu=0.1)
    with pytest.raises(am.InputError, match="reference: got nan"):
        am.selections.in_direction_cone([[1.0]], [[float("nan")]], mu=0.1)
    with pytest.raises(am.InputError, match="p: got 'x'; needs a number"):
        am.selections.in_direction_cone([[1.0]], [[1.0]], mu=0.1, p="x")  # type: ignore[arg-type]


def test_mu_must_be_positive() -> None:
    with pytest.raises(am.InputError, match="mu: got 0; needs a positive number"):
        am.selections.in_direction_cone([[1.0]], [[1.0]], mu=0)
