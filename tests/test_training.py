"""Training: the papers' formulas step by step, limits, batches, and what the theorems promise."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import attnmargin as am
from attnmargin.training import weights
from tests.problems import optimal_problem

ETA = 0.1


def plain_gradient(data: am.AttentionData, W: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """∇_W L and ∇_v L of one trial by autograd on the papers' formula."""
    W, v = W.clone().requires_grad_(), v.clone().requires_grad_()
    s = torch.softmax(torch.einsum("ntd,de,ne->nt", data.X, W, data.z), -1)
    u = data.y * torch.einsum("nt,ntd,d->n", s, data.X, v)
    loss = torch.log(1 + torch.exp(-u)).mean()
    of_W, of_v = torch.autograd.grad(loss, (W, v))
    return of_W, of_v


def mirror_step(w: Tensor, g: Tensor, p: float) -> Tensor:
    up = w.abs() ** (p - 1) * w.sign() - ETA * g
    return up.abs() ** (1 / (p - 1)) * up.sign()


def dual_norm(g: Tensor, p: float) -> Tensor:
    return (g.abs() ** (p / (p - 1))).sum() ** ((p - 1) / p)


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("p", [2.0, 1.75, 3.0])
def test_w_descends_as_in_the_papers(p: float, normalize: bool) -> None:
    """W-GD for p = 2, ℓp-AttGD else."""
    data = am.random_data(4, 5, 6, name="formula")
    W = torch.randn(6, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    method = "gd" if p == 2.0 else "mirror"
    run = am.train(data, method=method, p=p, lr=ETA, steps=60, normalize=normalize, init=W)
    for k in range(60):
        torch.testing.assert_close(run.W[k], W, rtol=1e-9, atol=1e-9)
        g = plain_gradient(data, W, data.v)[0]
        W = mirror_step(W, g / dual_norm(g, p) if normalize else g, p)


@pytest.mark.parametrize("normalize", [False, True])
def test_factors_descend_as_in_paper_a(normalize: bool) -> None:
    """KQ-GD; each factor's gradient is normalised by its own norm."""
    data = am.random_data(4, 5, 6, name="formula")
    rng = torch.Generator().manual_seed(0)
    K, Q = (torch.randn(6, 3, generator=rng, dtype=torch.float64) for _ in range(2))
    run = am.train(data, "KQ", lr=ETA, steps=60, normalize=normalize, init=(K, Q))
    for k in range(61):
        torch.testing.assert_close(run.W[k], K @ Q.T, rtol=1e-9, atol=1e-9)
        g = plain_gradient(data, K @ Q.T, data.v)[0]
        of_K, of_Q = g @ Q, g.T @ K
        if normalize:
            of_K, of_Q = of_K / of_K.norm(), of_Q / of_Q.norm()
        K, Q = K - ETA * of_K, Q - ETA * of_Q
    torch.testing.assert_close(run.last[0] @ run.last[1].T, run.W[-1])


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("p", [1.75, 2.0, 3.0])
def test_head_and_weights_descend_as_in_paper_b(p: float, normalize: bool) -> None:
    """ℓp-JointGD."""
    data = am.random_data(4, 5, 6, name="formula")
    W, v = torch.zeros(6, 6, dtype=torch.float64), torch.zeros(6, dtype=torch.float64)
    method = "gd" if p == 2.0 else "mirror"
    run = am.train(data, "vW", method, p=p, lr=ETA, steps=60, normalize=normalize)
    for k in range(60):
        torch.testing.assert_close(run.W[k], W, rtol=1e-9, atol=1e-9)
        torch.testing.assert_close(run.v[k], v, rtol=1e-9, atol=1e-9)
        of_W, of_v = plain_gradient(data, W, v)
        if normalize:
            size = dual_norm(of_W, p)
            of_W, of_v = of_W / (size if size > 0 else 1.0), of_v / dual_norm(of_v, p)
        W, v = mirror_step(W, of_W, p), mirror_step(v, of_v, p)


@pytest.mark.parametrize("parameter", ["W", "KQ", "vW"])
def test_gradients_of_all_parts_are_those_of_autograd(parameter: str) -> None:
    """One plain step with rate one is the gradient, to 1e-12 of its size."""
    data = am.random_data(4, 5, 6, name="parts")
    rng = torch.Generator().manual_seed(0)
    A, B = (torch.randn(6, 6, generator=rng, dtype=torch.float64) for _ in range(2))
    init: Any = {"W": A, "KQ": (A, B), "vW": (B[0], A)}[parameter]
    run = am.train(data, parameter, lr=1.0, steps=1, normalize=False, init=init)
    of_W, of_v = plain_gradient(data, A @ B.T if parameter == "KQ" else A, data.v)
    if parameter == "vW":
        of_W, of_v = plain_gradient(data, A, B[0])
    expected = {"W": (of_W,), "KQ": (of_W @ B, of_W.T @ A), "vW": (of_v, of_W)}[parameter]
    start = (init,) if parameter == "W" else init
    for before, after, gradient in zip(start, run.last, expected, strict=True):
        error = (before - after - gradient).norm() / gradient.norm()
        assert float(error) < 1e-12


@pytest.mark.parametrize("parameter", ["W", "KQ"])
def test_penalty_as_in_the_formula(parameter: str) -> None:
    data = am.random_data(4, 5, 6, name="formula")
    start = am.train(data, "KQ", steps=0)
    init: Any = start.last if parameter == "KQ" else None
    run = am.train(data, parameter, lr=ETA, steps=40, normalize=False, penalty=0.03, init=init)
    W = torch.zeros(6, 6, dtype=torch.float64)
    K, Q = start.last
    for k in range(40):
        torch.testing.assert_close(run.W[k], W if parameter == "W" else K @ Q.T)
        g = plain_gradient(data, run.W[k], data.v)[0]
        W = W - ETA * (g + 0.06 * W)
        K, Q = K - ETA * (g @ Q + 0.06 * K), Q - ETA * (g.T @ K + 0.06 * Q)


def test_coefficients_kernel_and_entries_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three implementations of W-GD: compiled, torch by coefficients, torch by entries."""
    data = am.random_data(5, 6, 10, trials=20, name="three")
    for options in ({}, {"normalize": False, "lr": 3.0}, {"penalty": 1e-30}):
        runs = [am.train(data, steps=500, record=500, **options)]
        monkeypatch.setattr("attnmargin.training.loop.can_compile", lambda: False)
        runs.append(am.train(data, steps=500, record=500, **options))
        monkeypatch.setattr(weights.Coefficients, "pays", staticmethod(lambda flat: False))
        runs.append(am.train(data, steps=500, record=500, **options))
        monkeypatch.undo()
        for other in runs[1:]:
            torch.testing.assert_close(other.W, runs[0].W, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    "options",
    [
        {"parameter": "KQ"},
        {"parameter": "KQ", "width": 2, "penalty": 1e-20},
        {"parameter": "KQ", "normalize": False, "lr": 1.0},
        {"parameter": "KQ", "method": "mirror", "p": 2.5},
        {"method": "mirror", "p": 1.5},
        {"method": "mirror", "p": 3.0, "penalty": 1e-10},
        {"method": "mirror", "p": 1.1, "normalize": False},
        {"method": "mirror", "p": torch.linspace(1.5, 4.0, 17)},
        {"init": torch.eye(6, dtype=torch.float64), "penalty": 1e-5},
    ],
)
def test_compiled_steps_are_those_of_torch(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few steps: normalised ones double a difference now and then."""
    data = am.random_data(4, 5, 6, trials=17, name="compiled")
    compiled = am.train(data, steps=40, record=20, **options)
    monkeypatch.setattr("attnmargin.training.loop.can_compile", lambda: False)
    plain = am.train(data, steps=40, record=20, **options)
    torch.testing.assert_close(compiled.W, plain.W, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("loss", ["exponential", "linear", "squared", "logistic"])
def test_kernel_knows_every_loss_and_masks(loss: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = am.random_data(4, 5, 8, trials=17, name="losses")
    mask = torch.ones(17, 4, 5, dtype=torch.bool)
    mask[:, 1, 3:] = False
    data = am.AttentionData(data.X, data.z, data.y, 3 * data.v, mask)
    # Around a finite minimum, as (1 − u)² has it, normalised steps are chaotic: a few only.
    steps = 20 if loss == "squared" else 200
    compiled = am.train(data, loss=loss, steps=steps, record=10)
    monkeypatch.setattr("attnmargin.training.loop.can_compile", lambda: False)
    plain = am.train(data, loss=loss, steps=steps, record=10)
    torch.testing.assert_close(compiled.W, plain.W, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"parameter": "KQ", "width": 3},
        {"method": "mirror", "p": 3.0},
        {"parameter": "vW"},
        {"normalize": False, "lr": "auto"},
        {"normalize": False, "lr": "polyak"},
        {"penalty": 1e-40},
    ],
)
def test_batch_equals_loop(options: dict[str, Any]) -> None:
    data = am.random_data(4, 5, 6, trials=4, name="loop")
    start = am.train(data, steps=0, **options).last
    batch = am.train(data, steps=50, record=25, init=start, **options)
    for i in range(4):
        own = am.AttentionData(data.X[i], data.z[i], data.y[i], data.v[i])
        alone = am.train(own, steps=50, record=25, init=tuple(x[i] for x in start), **options)
        torch.testing.assert_close(batch.W[:, i], alone.W, rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(batch.loss[:, i], alone.loss, rtol=1e-12, atol=0)


def test_same_seed_same_bits() -> None:
    data = am.random_data(4, 5, 6, trials=40, name="bits")
    for parameter in ("W", "KQ"):
        one, two = (am.train(data, parameter, steps=100, record=50) for _ in range(2))
        assert torch.equal(one.W, two.W)
    other = am.train(data, "KQ", steps=100, record=50, seed=1)
    assert not torch.equal(other.W, two.W)


def test_shapes_records_and_watched_measures() -> None:
    data = am.random_data(3, 4, 5, trials=6, name="records")
    data = am.AttentionData(*(x.unflatten(0, (2, 3)) for x in (data.X, data.z, data.y, data.v)))
    seen: list[tuple[int, int]] = []
    run = am.train(
        data,
        steps=25,
        record=10,
        watch={"norm": lambda W: W.flatten(-2).norm(dim=-1)},
        progress=lambda k, steps: seen.append((k, steps)),
    )
    assert run.steps.tolist() == [0, 10, 20, 25]
    assert seen == [(0, 25), (10, 25), (20, 25), (25, 25)]
    assert run.W.shape == (4, 2, 3, 5, 5)
    assert run.loss.shape == run.probability.shape == run.log_gradient.shape == (4, 2, 3)
    assert run.selection.shape == (4, 2, 3, 3)
    torch.testing.assert_close(run.watched["norm"], run.W.flatten(-2).norm(dim=-1))
    lean = am.train(data, steps=25, record=10, keep_weights=False)
    with pytest.raises(am.InputError, match="keep_weights=False"):
        _ = lean.W
    torch.testing.assert_close(lean.last[0], run.W[-1])

    expected = torch.stack([am.measures.largest_probability(data, W) for W in run.W])
    torch.testing.assert_close(run.probability, expected)


def test_resuming_goes_on_where_it_stopped() -> None:
    data = am.random_data(4, 5, 6, trials=3, name="resume")
    for options in ({}, {"parameter": "KQ"}, {"parameter": "vW"}, {"method": "mirror", "p": 1.5}):
        whole = am.train(data, steps=100, record=100, **options)
        half = am.train(data, steps=60, record=60, **options)
        rest = am.train(data, steps=40, record=40, init=half.last, **options)
        torch.testing.assert_close(rest.W[-1], whole.W[-1], rtol=1e-10, atol=1e-12)


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


def test_mirror_with_a_single_token_or_zero_gradient_stays() -> None:
    data = am.AttentionData([[[1.0, 2.0]]], [[1.0, 1.0]], [1.0], [1.0, 0.0])
    for options in ({}, {"method": "mirror", "p": 3.0}, {"parameter": "KQ"}):
        run = am.train(data, steps=5, **options)
        torch.testing.assert_close(run.W[-1], run.W[0])


def test_float32_works_and_says_what_it_loses() -> None:
    data = am.random_data(6, 8, 10, trials=5, name="single")
    single = am.AttentionData(*(x.float() for x in (data.X, data.z, data.y, data.v)))
    run, reference = am.train(single, steps=300, record=300), am.train(data, steps=300, record=300)
    assert run.W.dtype == torch.float32
    assert bool((am.correlation(run.W[-1].double(), reference.W[-1]) > 0.999).all())
    assert "float32: logits are rounded by 1e-07" in run.notes[0]
    assert reference.notes == ()


def test_saved_trajectories(tmp_path: Path) -> None:
    data = am.random_data(3, 4, 5, trials=2, name="save")
    run = am.train(data, "vW", steps=10, watch={"n": lambda W: W.sum((-2, -1))})
    again = am.Trajectory.load(run.save(tmp_path / "run.npz"))
    for name in ("steps", "W", "loss", "probability", "selection", "log_gradient", "v"):
        assert torch.equal(getattr(again, name), getattr(run, name))
    assert torch.equal(again.watched["n"], run.watched["n"])
    assert [x.shape for x in again.last] == [x.shape for x in run.last]


def test_theorem_3_and_lemma_2() -> None:
    """Equal scores of the others (B.2): ‖W‖ grows, the gradient vanishes, the loss stays above."""
    data = am.random_data(4, 4, 6, trials=10, name="B.2")
    gamma = am.scores(data)
    opt = am.optimal_tokens(data).unsqueeze(-1)
    low = gamma.amin(-1, keepdim=True).expand_as(gamma)
    wanted = low.scatter(-1, opt, gamma.amax(-1, keepdim=True))
    shift = (data.y.unsqueeze(-1) * (wanted - gamma)).unsqueeze(-1) * data.v[:, None, None]
    data = am.AttentionData(data.X + shift, data.z, data.y, data.v)
    torch.testing.assert_close(am.scores(data), wanted)
    run = am.train(data, lr="auto", normalize=False, steps=20_000, record=5000)
    norm = run.W.flatten(-2).norm(dim=-1)
    assert bool((norm.diff(dim=0) > 0).all())
    assert bool((run.log_gradient.diff(dim=0) < 0).all())
    infimum = torch.nn.functional.softplus(-am.scores(data).amax(-1)).mean(-1)
    assert bool((run.loss > infimum).all())
    far = am.train(data, steps=3000, record=3000)
    assert bool((am.measures.token_probability(data, far.W[-1]) > 1 - 1e-9).all())


def fig7() -> am.AttentionData:
    """The setting of paper A, figure 7, with the score gap of its other figures."""
    return am.random_data(6, 8, 10, trials=100, name="A:fig7", min_gap=0.1)


def test_every_trial_meets_the_svm_of_what_it_selects() -> None:
    data = fig7()
    run = am.train(data, steps=20_000, record=20_000)
    solution = am.solve(am.token_problem(data.X, data.z, run.selection[-1])).raise_for_status()
    assert float(am.correlation(run.W[-1], solution.W).min()) >= 0.9999


def test_factors_meet_the_nuclear_svm_with_a_vanishing_penalty() -> None:
    """Plain descent is slower; the penalty of the papers' code stops at a finite norm."""
    data, aligned = fig7(), {}
    for penalty in (0.0, 1e-60):
        run = am.train(data, "KQ", steps=5000, record=5000, penalty=penalty)
        solution = am.solve(am.token_problem(data.X, data.z, run.selection[-1]), "nuc")
        aligned[penalty] = am.correlation(run.W[-1], solution.raise_for_status().W)
    assert float(aligned[1e-60].mean()) >= 0.999
    assert 0.97 < float(aligned[0.0].mean()) < float(aligned[1e-60].mean())


def test_nonlinear_heads_train() -> None:
    data = am.random_data(3, 4, 8, trials=3, name="heads")
    V = torch.randn(8, 8, generator=torch.Generator().manual_seed(0)).double()
    for head in (am.heads.ReLUHead(V), am.heads.QuadraticHead(data.v, 0.1), lambda o: o.sum(-1)):
        run = am.train(data, head=head, steps=50, record=50)
        assert bool((run.loss[-1] < run.loss[0]).all())


def test_one_row_in_closed_form() -> None:
    """n = 1, T = 2: every step of normalised descent goes along (x₁ − x₂) zᵀ."""
    data = am.AttentionData([[[1.0, 0.0], [0.0, 1.0]]], [[3.0, 4.0]], [1.0], [1.0, 0.0])
    run = am.train(data, steps=10)
    unit = np.outer([1.0, -1.0], [3.0, 4.0]) / (5 * np.sqrt(2))
    np.testing.assert_allclose(run.W[-1].numpy(), 10 * ETA * unit, rtol=1e-12)
    assert optimal_problem(data).M == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"parameter": "X"}, "parameter: got 'X'"),
        ({"method": "adam"}, "method: got 'adam'"),
        ({"p": 3.0}, "needs method='mirror'"),
        ({"method": "mirror", "p": 1.0}, "p: got 1; needs finite powers"),
        ({"method": "mirror", "p": [1.5, 2.0]}, "p: got shape (2,)"),
        ({"lr": -1.0}, "lr: got -1"),
        ({"lr": "fast"}, "lr: got 'fast'"),
        ({"lr": "auto"}, "normalize=False"),
        ({"lr": [0.1, 0.1]}, "lr: got shape (2,)"),
        ({"steps": -1}, "steps: got -1"),
        ({"record": 0}, "record: got 0"),
        ({"penalty": -1.0}, "penalty: got -1.0"),
        ({"init": [[1.0]]}, "init: got shape (1, 1)"),
        ({"parameter": "KQ", "init": [[1.0]]}, "a pair (K, Q)"),
        ({"parameter": "KQ", "width": 0}, "width: got 0"),
        ({"parameter": "vW", "head": lambda o: o.sum(-1)}, "the linear head, trained"),
    ],
)
def test_bad_arguments(options: dict[str, Any], words: str) -> None:
    data = am.random_data(2, 3, 4, name="bad")
    with pytest.raises(am.InputError) as caught:
        am.train(data, **{"steps": 2, **options})
    assert words in str(caught.value)


def test_float32_without_pull_or_with_a_penalty_is_finite() -> None:
    data = am.random_data(3, 4, 5, trials=2, name="single")
    single = am.AttentionData(*(x.float() for x in (data.X, data.z, data.y, data.v)))
    for options in ({"parameter": "vW", "penalty": 1e-3}, {"penalty": 1e-3}, {"parameter": "KQ"}):
        assert bool(torch.isfinite(am.train(single, steps=5, **options).W).all())
    one = am.AttentionData(single.X[:, :, :1], single.z, single.y, single.v)
    assert bool(torch.isfinite(am.train(one, steps=5).W).all())
    plain = am.train(one, steps=5, normalize=False, lr="polyak")
    assert bool(torch.isfinite(plain.W).all())


@pytest.mark.parametrize("scale", [1e-100, 1e100])
@pytest.mark.parametrize("options", [{}, {"parameter": "KQ"}, {"method": "mirror", "p": 1.5}])
def test_scales_of_tokens_do_not_stop_normalised_steps(
    scale: float, options: dict[str, Any]
) -> None:
    data = am.random_data(3, 4, 5, trials=2, name="scales")
    data = am.AttentionData(scale * data.X, data.z, data.y, data.v)
    run = am.train(data, steps=3, **options)
    moved = (run.W[-1] - run.W[0]).flatten(-2).norm(dim=-1)
    assert bool(torch.isfinite(run.W).all())
    assert bool((moved > 1e-3).all())


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


def test_the_gradient_of_head_and_weights_counts_both() -> None:
    data = am.random_data(3, 4, 5, name="both")
    run = am.train(data, "vW", steps=3)
    of_W, of_v = plain_gradient(data, run.W[2], run.v[2])
    expected = (of_W.square().sum() + of_v.square().sum()).sqrt().log()
    torch.testing.assert_close(run.log_gradient[2], expected)


def test_watched_functions_cannot_touch_the_weights() -> None:
    data = am.random_data(3, 4, 5, name="watch")
    watch = {"zero": lambda W: W.zero_().sum((-2, -1))}
    runs = [am.train(data, method="mirror", p=3.0, steps=5, watch=w) for w in (watch, None)]
    assert torch.equal(runs[0].W, runs[1].W)


def test_losses_that_rise_have_no_known_best() -> None:
    data = am.random_data(3, 4, 5, name="rise")
    with pytest.raises(am.InputError, match="loss: got 'squared'"):
        am.train(data, loss="squared", lr="polyak", normalize=False, steps=2)
    with pytest.raises(am.InputError, match="loss: got 'squared'"):
        am.regularization_path(data, [1.0], loss="squared")


def test_starts_of_another_batch_are_refused() -> None:
    data = am.random_data(3, 4, 5, trials=3, name="batch")
    for options in (
        {"init": torch.zeros(2, 5, 5).double()},
        {"parameter": "KQ", "init": (1.0, 2.0)},
    ):
        with pytest.raises(am.InputError, match="init: got"):
            am.train(data, steps=1, **options)


@pytest.mark.parametrize("record", [1, 500])
def test_weights_stay_where_the_gradient_cancels(record: int) -> None:
    """The same sequence with both labels: the loss is least for equal shares, at any distance.

    The two pulls cancel to rounding; normalising that would throw the weights away.
    """
    data = am.AttentionData([[[1.0, 0.0], [0.0, 1.0]]] * 2, [[1.0, 1.0]] * 2, [1, -1], [1.0, 0.0])
    run = am.train(data, steps=500, record=record)
    sizes = torch.linalg.matrix_norm(run.W)
    assert float(sizes[-1]) > 5.0
    assert bool((run.loss.diff() <= 1e-12).all())


@pytest.mark.parametrize(
    ("parameter", "head"), [("W", "linear"), ("W", "quadratic"), ("W", "relu"), ("vW", "linear")]
)
def test_a_query_that_sees_nothing_pulls_nowhere(parameter: str, head: str) -> None:
    """One of two queries sees no token: the other one trains alone, with half of the pull."""
    rng = np.random.default_rng(0)
    X, z, v = rng.normal(size=(1, 3, 2)), rng.normal(size=(1, 2, 2)), rng.normal(size=2)
    mask = np.array([[[True] * 3, [False] * 3]])
    both = am.AttentionData(X, z, [[1.0, 1.0]], v, mask)
    alone = am.AttentionData(X, z[:, :1], [[1.0]], v)
    heads = {
        "quadratic": am.heads.QuadraticHead(v, 0.3),
        "relu": am.heads.ReLUHead(rng.normal(size=(4, 2))),
    }
    options: dict[str, Any] = {"steps": 3, "normalize": False, "head": heads.get(head, "linear")}
    first, second = (
        am.train(data, parameter, lr=lr, **options) for data, lr in ((both, 1.0), (alone, 0.5))
    )
    torch.testing.assert_close(first.W[-1], second.W[-1])
    assert am.probabilities(both, first.W[-1])[0, 1].tolist() == [0.0, 0.0, 0.0]
    assert am.logits(both, first.W[-1])[0, 1].tolist() == [-math.inf] * 3
    torch.testing.assert_close(
        first.probability[-1], am.measures.largest_probability(both, first.W[-1])
    )


@pytest.mark.parametrize(
    "options",
    [{}, {"parameter": "KQ"}, {"method": "mirror", "p": 3.0},
     {"head": am.heads.QuadraticHead([1.0, -1.0], 0.01)}],
)  # fmt: skip
@pytest.mark.parametrize("compiled", [True, False])
def test_a_zero_query_does_not_stop_the_others(
    options: dict[str, Any], compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It pulls nowhere and never saturates; its loss is that of its mean token."""
    if not compiled:
        monkeypatch.setattr("attnmargin.training.loop.can_compile", lambda: False)
    X = [[[1.0, 0.0], [0.0, 1.0]], [[2.0, 0.0], [0.0, 1.0]]]
    both, alone = (
        am.train(am.AttentionData(X[:n], [[1.0, 0.0], [0.0, 0.0]][:n], [1] * n, [1.0, -1.0]),
                 lr=1.0, steps=400, record=400, **options)
        for n in (2, 1)
    )  # fmt: skip
    size = float(alone.W[-1].norm())
    assert float(both.W[-1].norm()) == pytest.approx(size, rel=1e-9)
    if not options:
        still = math.log1p(math.exp(-0.5))
        assert float(both.loss[-1]) == pytest.approx((float(alone.loss[-1]) + still) / 2)


def test_given_scores_of_a_query_that_sees_nothing() -> None:
    rng = np.random.default_rng(0)
    X, z, v = rng.normal(size=(2, 3, 4)), rng.normal(size=(2, 4)), rng.normal(size=4)
    data = am.AttentionData(X, z, [1.0, 1.0], v, [[True] * 3, [False] * 3])
    plain, scored = (am.train(data, steps=1, head=h) for h in ("linear", am.heads.ScoreHead(X @ v)))
    torch.testing.assert_close(plain.loss, scored.loss)
    torch.testing.assert_close(plain.W, scored.W)
