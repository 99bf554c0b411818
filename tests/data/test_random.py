"""Random instances: same name, same bits; what they promise."""

import pytest
import torch

import attnmargin as am


def test_same_name_same_bits() -> None:
    first, second = (am.random_data(3, 4, 5, trials=4, name="A:fig2", seed=1) for _ in range(2))
    assert torch.equal(first.X, second.X)
    assert torch.equal(first.z, second.z)
    assert not torch.equal(first.X, am.random_data(3, 4, 5, trials=4, name="A:fig5", seed=1).X)


def test_a_trial_does_not_depend_on_how_many_are_drawn() -> None:
    many, few = am.random_data(3, 4, 5, trials=9), am.random_data(3, 4, 5, trials=2)
    assert torch.equal(many.X[:2], few.X)
    assert torch.equal(am.random_data(3, 4, 5).X, few.X[0])


def test_sphere_and_labels() -> None:
    data = am.random_data(30, 4, 5, trials=3)
    for x in (data.X, data.z, data.v):
        assert x is not None
        torch.testing.assert_close(
            torch.linalg.vector_norm(x, dim=-1), torch.ones(x.shape[:-1]).double()
        )
    assert data.y is not None
    assert set(data.y.flatten().tolist()) == {-1.0, 1.0}


def test_self_attention_queries_are_first_tokens() -> None:
    data = am.random_data(3, 4, 5, trials=2, self_attention=True)
    assert torch.equal(data.z, data.X[..., 0, :])


def test_minimum_score_gap() -> None:
    data = am.random_data(5, 5, 2, trials=50, min_gap=0.1)
    best = am.scores(data).topk(2).values
    assert float((best[..., 0] - best[..., 1]).min()) >= 0.1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"distribution": "cauchy"}, "distribution: got 'cauchy'"),
        ({"n": 0}, "n: got 0"),
        ({"min_gap": 3.0}, "min_gap: got 3"),
    ],
)
def test_bad_arguments(change: dict[str, object], words: str) -> None:
    with pytest.raises(am.InputError) as caught:
        am.random_data(**({"n": 1, "T": 2, "d": 2} | change))  # type: ignore[arg-type]
    assert words in str(caught.value)


def test_no_trials() -> None:
    assert am.random_data(2, 3, 4, trials=0).X.shape == (0, 2, 3, 4)
