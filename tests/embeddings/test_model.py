"""The model of paper D: gradients, the first step, selections, and the flow of p."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import attnmargin as am


def random_model(
    seed: int, S: int = 7, d: int = 5, n: int = 6, T: int = 4
) -> am.embeddings.EmbeddingModel:
    g = torch.Generator().manual_seed(seed)
    E, p, v = (torch.randn(*s, generator=g, dtype=torch.float64) for s in ((S, d), (d,), (d,)))
    ids = torch.randint(0, S, (n, T), generator=g)
    return am.embeddings.EmbeddingModel(E, p, v, ids, [1, -1] * (n // 2))


def loss_of(E: Tensor, p: Tensor, model: am.embeddings.EmbeddingModel) -> Tensor:
    """The loss written out, one sequence after the other."""
    total = torch.zeros((), dtype=E.dtype)
    for ids, y, seen in zip(model.ids, model.y, model.visible, strict=True):
        X = E[ids[seen]]
        total = total + torch.log1p(torch.exp(-y * (torch.softmax(X @ p, 0) @ (X @ model.v))))
    return total / len(model.ids)


@given(seed=st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_gradients_are_those_of_autograd(seed: int) -> None:
    model = random_model(seed)
    E, p = model.E.clone().requires_grad_(), model.p.clone().requires_grad_()
    loss = loss_of(E, p, model)
    wanted = torch.autograd.grad(loss, (E, p))
    torch.testing.assert_close(model.loss, loss.detach(), rtol=1e-12, atol=1e-14)
    for found, own in zip(model.gradients(), wanted, strict=True):
        torch.testing.assert_close(found, own, rtol=1e-12, atol=1e-14)


def test_gradients_with_sequences_of_unequal_length() -> None:
    full = random_model(3)
    rows = [full.ids[0].tolist(), full.ids[1, :2].tolist(), [5]]
    model = am.embeddings.EmbeddingModel(full.E, full.p, full.v, rows, [1, -1, 1])
    E, p = model.E.clone().requires_grad_(), model.p.clone().requires_grad_()
    wanted = torch.autograd.grad(loss_of(E, p, model), (E, p))
    for found, own in zip(model.gradients(), wanted, strict=True):
        torch.testing.assert_close(found, own, rtol=1e-12, atol=1e-14)
    assert model.selected().sum(-1).min() == 1


@pytest.mark.parametrize("d", [64, 256])
def test_the_first_step_stays_within_its_bound(d: int) -> None:
    for seed in range(5):
        data, _ = am.embeddings.level_tokens(40, T=32, seed=seed)
        step = am.embeddings.first_step(am.embeddings.random_embeddings(data, d, seed=seed), lr=2.0)
        assert step.within
        assert step.error_E.shape == (2048,)
        assert step.bound == pytest.approx(22.0 * d**-0.25)


def test_without_attention_and_output_the_first_step_is_exact() -> None:
    """p = 0 and E ⊥ v: q is uniform, g is one half, and nothing is left of the errors of E."""
    model = am.embeddings.random_embeddings(am.embeddings.important_tokens(6, 4), d=32)
    E = model.E - torch.outer(model.E @ model.v, model.v)
    step = am.embeddings.first_step(model.at(E, torch.zeros(32, dtype=torch.float64)), lr=3.0)
    assert float(step.error_E.max()) < 1e-14


def test_one_step_follows_shares_of_unequal_sequences() -> None:
    """Each sequence counts the same, however long it is."""
    generator = torch.Generator().manual_seed(0)
    E, p, v = (torch.randn(*s, 4096, generator=generator, dtype=torch.float64) / 64
               for s in ((3,), (), ()))  # fmt: skip
    model = am.embeddings.EmbeddingModel(E, p, v / v.norm(), [[0], [1] + [2] * 19], [1, -1])
    torch.testing.assert_close(model.alpha, torch.tensor([0.5, -0.025, -0.475]).double())
    assert float(am.embeddings.first_step(model, 1.0).error_E.max()) < 0.02


def test_selections_are_ties_too() -> None:
    E = [[1.0, 0.0], [1.0, 5.0], [0.0, 0.0]]
    model = am.embeddings.EmbeddingModel(E, [2.0, 0.0], [0.0, 1.0], [[0, 1, 2], [2, 2, 0]], [1, -1])
    assert model.selected().tolist() == [[True, True, False], [False, False, True]]


def test_the_flow_selects_and_meets_the_max_margin_direction() -> None:
    data = am.embeddings.important_tokens(4, 3, important=1, irrelevant=3, seed=2)
    step = am.embeddings.first_step(am.embeddings.random_embeddings(data, d=64, seed=2), lr=30.0)
    run = step.model.flow(200.0, record=2)
    assert run.W.shape == (3, 64, 1)
    end = step.model.at(step.model.E, run.W[-1, :, 0])
    chosen = end.attention > 1e-3
    assert bool(chosen[torch.from_numpy(data.statistics().complete)[end.ids]].all())
    p_hat = end.max_margin(chosen).vector
    assert float(torch.cosine_similarity(p_hat, end.p, 0)) > 0.999
    assert float(run.loss[-1]) < float(run.loss[0])


def test_the_flow_of_p_is_that_of_W_with_one_query() -> None:
    """With the query e₁ everywhere, only the first column of W moves, and it is p."""
    model = random_model(5)
    data = model.data()
    query = torch.zeros_like(data.z)
    query[:, 0] = 1.0
    whole = am.AttentionData(data.X, query, data.y, data.v)
    start = torch.zeros(5, 5, dtype=torch.float64)
    start[:, 0] = model.p
    wanted = am.gradient_flow(whole, 3.0, init=start, record=3)
    found = model.flow(3.0, record=3)
    torch.testing.assert_close(found.W[..., 0], wanted.W[..., 0])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"E": [1.0]}, "E: got shape"),
        ({"p": [1.0]}, r"p: got shape \(1,\); needs \(2,\)"),
        ({"v": [float("nan"), 0.0]}, "v: got nan at"),
        ({"sequences": [[0, 7]]}, "sequences: got token id 7"),
        ({"y": [1, 1]}, r"y: got shape \(2,\); needs one label per sequence"),
        ({"y": [3]}, "y: got the label 3"),
    ],
)
def test_bad_models(change: dict[str, object], words: str) -> None:
    good = {"E": [[1.0, 0.0], [0.0, 1.0]], "p": [0.0, 0.0], "v": [1.0, 0.0],
            "sequences": [[0, 1]], "y": [1]}  # fmt: skip
    with pytest.raises(am.InputError, match=words):
        am.embeddings.EmbeddingModel(**{**good, **change})


def test_bad_options() -> None:
    with pytest.raises(am.InputError, match="n: got 3; needs an even number"):
        am.embeddings.important_tokens(3, 4)
    model = am.embeddings.random_embeddings(am.embeddings.important_tokens(4, 3), d=8)
    with pytest.raises(am.InputError, match=r"lr: got -1\.0"):
        am.embeddings.first_step(model, -1.0)
    with pytest.raises(am.InputError, match="parameter: got 'E'; needs 'W', 'KQ' or 'p'"):
        am.gradient_flow(model.data(), 1.0, "E")


def test_the_condition_of_lemma_19_fails_in_the_smallest_data() -> None:
    """Two sequences, one irrelevant token, after a step: another selection has a larger margin."""
    important = torch.tensor([[True, False], [True, False]])
    for kappa in (0.0, 0.5, 8.0):
        E = np.array([[1, 0, 0, kappa], [0, 1, 0, -kappa], [0, 0, 1, 0]])
        model = am.embeddings.EmbeddingModel(
            E, np.zeros(4), [0.0, 0, 0, 1], [[0, 2], [1, 2]], [1, -1]
        )
        own = float(model.max_margin(important).value)
        assert own**2 == pytest.approx(2 / 3)
        other = am.embeddings.other_selections(model, important)
        assert other**2 == pytest.approx((2 + kappa**2) / (3 + 6 * kappa**2))
    with pytest.raises(am.InputError, match=r"important: got shape \(1, 1\)"):
        am.embeddings.other_selections(model, [[True]])
    with pytest.raises(am.InputError, match=r"2\^2 − 1 other selections; needs at most 2"):
        am.embeddings.other_selections(model, important, most=2)


def test_offsets_of_embeddings_cost_no_digits() -> None:
    """Attention sees differences only; the offset of the values does not matter for ∇_p."""
    E, p, v = [[-1e6 + 0.25], [-1e6 + 1.75]], [0.5], [0.125]
    of_p = am.embeddings.EmbeddingModel(E, p, v, [[0, 1]], [1]).gradients()[1]
    q = 1.0 / (1.0 + math.exp(-0.5 * 1.5))  # of the second token
    f = 0.125 * (-1e6 + 0.25 + 1.5 * q)
    expected = -1.0 / (1.0 + math.exp(f)) * q * (1.0 - q) * 0.125 * 1.5 * 1.5
    assert float(of_p) == pytest.approx(expected, rel=1e-9)


def test_other_selections_take_sequences_of_different_lengths() -> None:
    model = am.embeddings.EmbeddingModel(
        [[1.0, 0.0], [0.0, 1.0]], [0.0, 0.0], [1.0, 0.0], [[0, 1], [0]], [1, -1]
    )
    important = [[True, False], [True, False]]
    assert am.embeddings.other_selections(model, important) == math.inf


def test_equal_tokens_leave_p_where_it_is() -> None:
    E, p, v = [[-180.98737420684665], [-75882.80288077239], [0.0557525824612834]], [-1.1], [1.56]
    model = am.embeddings.EmbeddingModel(E, p, v, [[1, 1, 1]], [1])
    assert model.gradients()[1].tolist() == [0.0]


def test_a_margin_that_rounding_hides_is_undecided() -> None:
    """Embeddings that differ by 1e8 in length: the least norm is known to 3e-7 only."""
    E = [[148411.64179671553, 134340.7192209774], [0.0002826710858556938, -4.842395849828078e-05],
         [-0.0001240670922059699, -0.00034824050800803265]]  # fmt: skip
    sequences = [[2], [1, 0, 0, 1], [0, 0, 0, 2], [1, 1, 0]]
    p, v = [-0.15330472469992215, -0.28254692570779366], [0.5288550150173704, 0.46293291201155656]
    model = am.embeddings.EmbeddingModel(E, p, v, sequences, [1, 1, 1, 1])
    assert math.isnan(am.embeddings.other_selections(model, model.selected()))


def test_second_places_by_brute_force() -> None:
    """Definitions 15 and 16, with ties, copies of tokens and sequences of different length."""
    generator = torch.Generator().manual_seed(0)
    sequences = [[0, 1, 2, 3], [4, 4, 0], [2, 5], [3, 3]]
    for _ in range(20):
        E = torch.randn(6, 3, dtype=torch.float64, generator=generator)
        v = torch.randn(3, dtype=torch.float64, generator=generator)
        p = torch.zeros(3, dtype=torch.float64)
        p[0] = 1.0
        E[:, 0] = torch.randint(0, 3, (6,), generator=generator).double()  # tied logits
        model = am.embeddings.EmbeddingModel(E, p, v, sequences, [1, -1, 1, -1])
        a, value, mu = E[:, 0].tolist(), (E @ v).tolist(), math.inf
        for ids, y, own in zip(sequences, (1, -1, 1, -1), model.second().tolist(), strict=True):
            levels = sorted({a[s] for s in ids}, reverse=True)
            wanted = [len(levels) > 1 and a[s] == levels[1] for s in ids]
            assert own[: len(ids)] == wanted
            assert not any(own[len(ids) :])
            top = [s for s in ids if a[s] == levels[0]]
            for j in (s for s, second in zip(ids, wanted, strict=True) if second):
                mu = min(mu, sum(y * (value[i] - value[j]) for i in top))
        assert float(model.local_margin()) == pytest.approx(mu)
