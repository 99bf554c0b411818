"""Rates: per trial, by Lemma 4, guarded, and those of Polyak."""

from typing import Any

import numpy as np
import pytest
import torch

import attnmargin as am
from tests.formulas import plain_gradient


def test_per_trial_rates_powers_and_schedules() -> None:
    data = am.random_data(3, 4, 5, trials=2, name="rates")
    both = am.train(data, method="mirror", p=[1.5, 3.0], lr=torch.tensor([0.1, 0.2]), steps=20)
    for i, (p, lr) in enumerate(((1.5, 0.1), (3.0, 0.2))):
        own = am.AttentionData(data.X[i], data.z[i], data.y[i], data.v[i])
        alone = am.train(own, method="mirror", p=p, lr=lr, steps=20)
        torch.testing.assert_close(both.W[:, i], alone.W)
    falling = am.train(data, lr=lambda k: 0.1 / (1 + k), steps=3)
    lengths = falling.W.diff(dim=0).flatten(-2).norm(dim=-1)
    torch.testing.assert_close(lengths[:, 0], torch.tensor([0.1, 0.05, 0.1 / 3]).double())


def test_auto_rate_is_that_of_lemma_4() -> None:
    data = am.random_data(3, 4, 5, name="lemma 4")
    run = am.train(data, lr="auto", normalize=False, steps=1)
    X = torch.linalg.matrix_norm(data.X, 2)
    size = data.v.norm()
    L = (size * data.z.norm(dim=-1) ** 2 * X**3 * (0.25 * size * X + 3)).mean()
    g = plain_gradient(data, torch.zeros(5, 5).double(), data.v)[0]
    torch.testing.assert_close(run.W[1], -g / L)


def test_auto_rate_of_the_log_loss_is_that_of_paper_c() -> None:
    """(23): L = 2 √T_max ‖E‖⁴, and with it no step raises the loss (Lemma 5)."""
    E = am.graphs.random_next_tokens(4, 5, 1, 1, trials=2, name="auto of C")[0]
    sequences, labels = [[0, 1, 2, 3, 3], [1, 0], [2, 3, 2]], [0, 1, 3]
    data = am.graphs.next_token_data(E, sequences)
    head = am.graphs.next_token_head(E, sequences, labels)
    run = am.train(data, head=head, loss="log", lr="auto", normalize=False, steps=200)
    for k in range(2):
        own = am.graphs.next_token_data(E[k], sequences)
        alone = am.graphs.next_token_head(E[k], sequences, labels)
        G, log_scale = am.gradient(own, torch.zeros(5, 5).double(), head=alone, loss="log")
        L = 2.0 * 5**0.5 * torch.linalg.svdvals(E[k])[0] ** 4
        torch.testing.assert_close(run.W[1, k], -G * log_scale.exp() / L)
    assert bool((run.loss.diff(dim=0) < 0.0).all())
    other = am.heads.ScoreHead(0.5 * head.scores)
    with pytest.raises(am.InputError, match="lr: got 'auto' with the loss 'log' and other scores"):
        am.train(data, head=other, loss="log", lr="auto", normalize=False, steps=1)


@pytest.mark.parametrize("head", ["linear", "relu"])
def test_guarded_steps_are_those_of_autograd(head: str) -> None:
    data = am.random_data(3, 4, 5, trials=2, name="guarded steps")
    V = torch.randn(6, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    own = am.heads.ReLUHead(V) if head == "relu" else "linear"
    run = am.train(data, lr=am.Guarded(0.1, guard=0.05), head=own, steps=30)
    for b in range(2):
        W = torch.zeros(5, 5, dtype=torch.float64, requires_grad=True)
        for k in range(30):
            s = torch.softmax(torch.einsum("ntd,de,ne->nt", data.X[b], W, data.z[b]), -1)
            o = (s.unsqueeze(-2) @ data.X[b]).squeeze(-2)
            h = torch.relu(o @ V.T).sum(-1) if head == "relu" else o @ data.v[b]
            (G,) = torch.autograd.grad(torch.nn.functional.softplus(-data.y[b] * h).mean(), W)
            W = (W - 0.1 * G / (G.norm() + 0.05)).detach().requires_grad_()
            torch.testing.assert_close(run.W[k + 1, b], W.detach(), rtol=1e-9, atol=1e-11)


def test_a_guard_ends_training_where_the_gradient_is_below_it() -> None:
    data = am.random_data(3, 4, 5, name="guarded end")
    run = am.train(data, lr=am.Guarded(0.1), steps=8000, record=4000)
    lengths = torch.linalg.matrix_norm(run.W)
    assert float(lengths[1]) > 10.0
    assert float(lengths[2] - lengths[1]) < 5.0  # log 2 / margin is all that is left
    assert float(torch.linalg.matrix_norm(am.train(data, steps=8000, record=8000).W[-1])) > 700.0


def test_guarded_rates_need_normalised_descent_on_W() -> None:
    data = am.random_data(2, 3, 4, name="guarded errors")
    for bad in ({"parameter": "KQ"}, {"normalize": False}, {"penalty": 1e-9},
                {"method": "mirror", "p": 3.0}):  # fmt: skip
        with pytest.raises(am.InputError, match="lr: got a guarded rate; needs a single one"):
            am.train(data, lr=am.Guarded(0.1), steps=1, **bad)
    with pytest.raises(am.InputError, match="lr: got a guarded rate"):
        am.train(data, "vW", lr=(0.1, am.Guarded(0.1)), steps=1)
    with pytest.raises(am.InputError, match="lr: got a guarded rate; needs a single one"):
        am.train(data, lr=(am.Guarded(0.1),) * 2, steps=1)
    with pytest.raises(am.InputError, match="guard: got 0"):
        am.Guarded(0.1, guard=0.0)
    with pytest.raises(am.InputError, match="lr: got 'fast'"):
        am.Guarded("fast")


def test_polyak_steps_by_hand_and_deep_in_saturation() -> None:
    data = am.random_data(3, 4, 5, name="polyak steps")
    run = am.train(data, lr="polyak", normalize=False, steps=3000, record=1)
    best = torch.nn.functional.softplus(-am.scores(data).amax(-1)).mean()
    lengths = run.W.diff(dim=0).flatten(-2).norm(dim=-1)
    assert float(lengths.max()) <= 1 + 1e-9
    for k in (0, 3, 40):
        g = plain_gradient(data, run.W[k], data.v)[0]
        rate = torch.minimum((run.loss[k] - best) / (g * g).sum(), 1 / g.norm())
        torch.testing.assert_close(run.W[k + 1], run.W[k] - rate * g)
    assert bool((lengths[:4] < 1).any())
    assert float(run.log_gradient[-1]) < -800
    assert bool(torch.isfinite(run.W).all())


@pytest.mark.parametrize("loss", ["logistic", "exponential", "linear"])
@pytest.mark.parametrize("masked", [False, True])
def test_compiled_polyak_steps_are_those_of_the_loop(
    loss: str, masked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = am.random_data(3, 4, 5, trials=3, name="polyak kernel")
    mask = torch.ones(3, 3, 4, dtype=torch.bool)
    mask[::2, 1, 3] = not masked
    data = am.AttentionData(4.0 * data.X, data.z, data.y, data.v, mask)
    options: dict[str, Any] = {"lr": "polyak", "normalize": False, "loss": loss}
    far = am.train(data, steps=3000, record=3000).W[-1]  # deep in saturation
    starts: list[dict[str, Any]] = [{"record": 1}, {"record": 5, "init": far}]
    compiled = [am.train(data, steps=20, **own, **options) for own in starts]
    free = compiled[0].W.diff(dim=0).flatten(-2).norm(dim=-1) < 0.999
    assert int(free.sum()) > 10  # else all steps are as long as they may be
    assert bool((compiled[1].log_gradient < -50).all())
    monkeypatch.setattr("attnmargin.training.loop.can_compile", lambda: False)
    for run, own in zip(compiled, starts, strict=True):
        plain = am.train(data, steps=20, **own, **options)
        torch.testing.assert_close(run.W, plain.W, rtol=1e-9, atol=1e-11)
        torch.testing.assert_close(run.log_gradient, plain.log_gradient, rtol=1e-9, atol=1e-9)
        assert torch.equal(run.selection, plain.selection)


def test_auto_rate_counts_the_penalty() -> None:
    data = am.random_data(3, 4, 5, name="auto")
    start = torch.eye(5, dtype=torch.float64)
    run = am.train(data, lr="auto", normalize=False, penalty=100.0, init=start, steps=50)
    assert bool((run.W.flatten(-2).norm(dim=-1).diff() <= 1e-12).all())


def test_the_pair_of_rates_is_for_head_and_weights_only() -> None:
    data = am.random_data(3, 4, 5, trials=2, name="pair")
    pair = am.train(data, "vW", lr=(0.1, 0.5), steps=1)
    torch.testing.assert_close(pair.v[-1].norm(dim=-1), torch.full((2,), 0.5).double())
    both = am.train(data, lr=(0.1, 0.5), steps=1)
    lengths = both.W[-1].flatten(-2).norm(dim=-1)
    torch.testing.assert_close(lengths, torch.tensor([0.1, 0.5]).double(), rtol=1e-6, atol=0)
    assert torch.equal(am.train(data, lr=np.array([0.1, 0.5]), steps=1).W, both.W)
    with pytest.raises(am.InputError, match="lr: got 3 rates"):
        am.train(data, "vW", lr=(0.1, 0.2, 0.3), steps=1)


def test_losses_that_rise_have_no_known_best() -> None:
    small = am.random_data(3, 4, 5, name="rise")
    assert small.v is not None
    data = am.AttentionData(small.X, small.z, small.y, 3.0 * small.v)  # scores above 1
    with pytest.raises(am.InputError, match="loss: got 'squared'"):
        am.train(data, loss="squared", lr="polyak", normalize=False, steps=2)
    with pytest.raises(am.InputError, match="loss: got 'squared'"):
        am.regularization_path(data, [1.0], loss="squared")
