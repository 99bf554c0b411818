"""Paper D: signed frequencies, gradients, the first step, selections, and the flow of p."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import attnmargin as am
from attnmargin.embeddings.instances import LEVELS


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


def test_statistics_by_hand() -> None:
    found = am.embeddings.token_statistics([[0, 1, 1, 3], [0, 2, 1, 3]], [1, -1], 5)
    np.testing.assert_allclose(found.alpha, [0.0, 1 / 8, -1 / 8, 0.0, 0.0])
    np.testing.assert_allclose(found.difference, [0.0, 1 / 3, -1.0, 0.0, np.nan])
    kinds = ["irrelevant", "positive", "completely negative", "irrelevant", "unseen"]
    assert found.kind.tolist() == kinds
    assert found.complete.tolist() == [False, False, True, False, False]
    assert found.irrelevant.tolist() == [True, False, False, True, False]


@pytest.mark.parametrize(
    ("sequences", "labels", "words"),
    [
        ([[0, 9]], [1], "sequences: got token id 9; needs ids from 0 to 3"),
        ([[0, 1]], [2], "labels: got 2; needs −1 or"),
        ([[0, 1]], [1, 1], "labels: got 2 for 1 sequence"),
    ],
)
def test_bad_statistics(sequences: list[list[int]], labels: list[int], words: str) -> None:
    with pytest.raises(am.InputError, match=words):
        am.embeddings.token_statistics(sequences, labels, 4)


@given(seed=st.integers(0, 10**6), n=st.integers(1, 6), T=st.integers(2, 7))
@settings(max_examples=30, deadline=None)
def test_important_tokens_obey_assumption_4(seed: int, n: int, T: int) -> None:
    data = am.embeddings.important_tokens(2 * n, T, important=2, irrelevant=3, seed=seed)
    statistics = data.statistics()
    complete = statistics.complete[data.ids]
    assert (complete.sum(-1) == 1).all()
    assert statistics.irrelevant[data.ids[~complete]].all()
    assert data.ids.shape == (2 * n, T)


def test_the_model_of_levels_has_its_posteriors() -> None:
    data, difference = am.embeddings.level_tokens(600, T=256, seed=0)
    assert data.vocabulary == len(difference) == 2048
    assert (difference != 0).sum() == 2 * sum(4 + 2**k for k in range(1, 9)) == 2048 - 964
    statistics = data.statistics()
    assert statistics.count.sum() == 600 * 256
    for k, level in enumerate(LEVELS):
        of_level = np.isclose(difference, 1 - 2 * level)
        assert of_level.sum() == 4 + 2 ** (k + 1)
        seen, positive = statistics.count[of_level].sum(), statistics.positive[of_level].sum()
        assert abs(positive / seen - (1 - level)) < 4 * (level * (1 - level) / seen) ** 0.5 + 1e-3


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


def test_checks_of_paper_d() -> None:
    data = am.embeddings.important_tokens(4, 3, seed=0)
    checks = {
        c.name: c
        for c in am.theory.check_embeddings(am.embeddings.random_embeddings(data, d=512), lr=1.0)
    }
    assert list(checks) == ["Definition 1", "Assumption 4", "Lemma 2", "Theorem 5", "Lemma 6",
                            "Lemma 19"]  # fmt: skip
    found = {name: str(check.outcome) for name, check in checks.items()}
    assert [found[name] for name in ("Assumption 4", "Lemma 2")] == ["holds", "holds"]
    assert [found[name] for name in ("Theorem 5", "Lemma 6", "Lemma 19")] == ["fails"] * 3
    numbers = checks["Theorem 5"].numbers
    assert float(numbers["η₀ that it asks for"]) == 4 * 4**2 * 3**2
    assert float(numbers["log₁₀ of the d that it asks for"]) == pytest.approx(8 * np.log10(201))
    other = am.embeddings.LabelledTokens(
        data.ids, -data.y * np.array([1, -1, 1, 1]), data.vocabulary
    )
    again = {
        c.name: c
        for c in am.theory.check_embeddings(am.embeddings.random_embeddings(other, d=16), lr=1.0)
    }
    assert str(again["Assumption 4"].outcome) == "fails"
    assert str(again["Lemma 19"].outcome) == "not decidable here"


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
