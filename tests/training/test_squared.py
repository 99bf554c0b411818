"""The slope of (1 − u)² stays exact where it vanishes, at a best score of one."""

from decimal import Decimal, localcontext
from typing import Any

import pytest
import torch

import attnmargin as am

# One best score is 1, the other 1/2: the first sequence pulls like e^(−2 margin).
X = [[[1.0, 0.0], [0.25, 0.5]], [[0.5, 1.0], [0.125, 0.0]]]


def instance(dtype: torch.dtype = torch.float64) -> am.AttentionData:
    z, v = [[1.0, 0.0], [0.25, 1.0]], [1.0, 0.0]
    tokens, queries, head = (torch.tensor(x, dtype=dtype) for x in (X, z, v))
    return am.AttentionData(tokens, queries, [1, 1], head)


def plain_run(data: am.AttentionData, steps: int) -> torch.Tensor:
    """Normalised steps of length one by the formula of the paper, with 300 digits."""
    with localcontext() as context:
        context.prec = 300

        def numbers(x: Any) -> Any:
            return [numbers(part) for part in x] if isinstance(x, list) else Decimal(x)

        tokens, queries, gamma = (numbers(x.tolist()) for x in (data.X, data.z, am.scores(data)))
        W = [Decimal(0)] * 4
        for _ in range(steps):
            D = [Decimal(0)] * 4
            for x, z, g in zip(tokens, queries, gamma, strict=True):
                image = [W[0] * z[0] + W[1] * z[1], W[2] * z[0] + W[3] * z[1]]
                e = [(t[0] * image[0] + t[1] * image[1]).exp() for t in x]
                s = [value / sum(e) for value in e]
                u = sum(a * b for a, b in zip(s, g, strict=True))
                for t in range(2):
                    c = (1 - u) * s[t] * (g[t] - u)
                    D = [D[k] + c * x[t][k // 2] * z[k % 2] for k in range(4)]
            size = sum(value * value for value in D).sqrt()
            W = [value + change / size for value, change in zip(W, D, strict=True)]
        return torch.tensor([float(value) for value in W], dtype=torch.float64).reshape(2, 2)


@pytest.mark.parametrize("way", ["compiled", "entries", "torch", "float32"])
def test_long_runs_are_those_with_many_digits(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is not the direction of the SVM, and 1 − u is far below rounding."""
    data = instance(torch.float32 if way == "float32" else torch.float64)
    if way == "torch":
        monkeypatch.setattr("attnmargin.training.loop.can_compile", lambda: False)
    if way == "entries":
        monkeypatch.setattr("attnmargin.training.loop.Coefficients.pays", lambda flat: False)
    expected = plain_run(instance(), 250)
    run = am.train(data, steps=250, record=250, lr=1.0, loss="squared")
    W = run.W[-1].double()
    assert float(am.logits(instance(), expected).diff().abs().max()) > 70.0
    digits = 2e-5 if way == "float32" else 1e-10
    torch.testing.assert_close(W, expected, rtol=digits, atol=100 * digits)
    solution = am.solve(am.token_problem(data.X, data.z, [0, 0])).W
    assert float(am.correlation(W, solution.double())) == pytest.approx(0.95, abs=0.01)


def test_factors_and_mirror_steps_agree_with_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few long steps: normalised ones double a difference now and then."""
    ways: list[dict[str, Any]] = [{"parameter": "KQ"}, {"method": "mirror", "p": 1.5}]
    options: dict[str, Any] = {"steps": 12, "record": 12, "lr": 2.0, "loss": "squared"}
    compiled = [am.train(instance(), **options, **way).W for way in ways]
    monkeypatch.setattr("attnmargin.training.loop.can_compile", lambda: False)
    for way, found in zip(ways, compiled, strict=True):
        plain = am.train(instance(), **options, **way).W
        torch.testing.assert_close(plain, found, rtol=1e-9, atol=1e-9)
        assert float(am.logits(instance(), found[-1]).diff().abs().max()) > 20.0


def test_loss_and_gradient_where_probabilities_are_not_representable() -> None:
    """One sequence with scores 1 and 1/4: 1 − u = (3/4) s, and the gradient is −2 (3/4)² s²."""
    data = am.AttentionData(X[:1], [[1.0, 0.0]], [1], [1.0, 0.0])
    for size in (10.0, 100.0, 5000.0):
        W = torch.tensor([[size, 0.0], [0.0, 0.0]], dtype=torch.float64)
        log_s = -torch.nn.functional.softplus(torch.tensor(0.75 * size, dtype=torch.float64))
        G, log_scale = am.gradient(data, W, loss="squared")
        wanted = torch.tensor([[0.75, 0.0], [-0.5, 0.0]]).double()
        torch.testing.assert_close(-G / G[0, 0].abs(), wanted / 0.75)
        inner = torch.log1p(-log_s.exp())
        log_size = torch.log(torch.tensor(2 * 0.75**3).double()) + 2 * log_s + inner
        torch.testing.assert_close(G[0, 0].abs().log() + log_scale, log_size)
        loss = am.train(data, steps=0, init=W, loss="squared").loss[0]
        torch.testing.assert_close(loss, (0.75 * log_s.exp()) ** 2)


def test_beyond_its_minimum_the_slope_turns() -> None:
    """Scores 2 and 0 cross one where both are equally likely: no pull there, and back beyond."""
    data = am.AttentionData([[[2.0], [0.0]]], [[1.0]], [1], [1.0])
    signs = [float(am.gradient(data, [[w]], loss="squared")[0].sign()) for w in (-1.0, 0.0, 1.0)]
    assert signs == [-1.0, 0.0, 1.0]
    run = am.train(data, lr=0.3, steps=400, normalize=False, loss="squared", init=[[1.0]])
    assert float(run.W[-1].abs()) < 1e-6


@pytest.mark.parametrize("loss", ["logistic", "exponential", "linear", "squared"])
def test_large_scores_do_not_overflow(loss: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loss itself may be too large for a number; normalised steps do not see that."""
    data = am.random_data(3, 4, 5, name="large")
    data = am.AttentionData(data.X, data.z, data.y, 5000.0 * data.v)
    steps = 3 if loss == "squared" else 50
    compiled = am.train(data, steps=steps, record=steps, loss=loss).W
    monkeypatch.setattr("attnmargin.training.loop.can_compile", lambda: False)
    plain = am.train(data, steps=steps, record=steps, loss=loss).W
    assert bool(torch.isfinite(plain).all())
    torch.testing.assert_close(compiled, plain, rtol=1e-8, atol=1e-8)


def test_a_trained_head_at_its_minimum_stays() -> None:
    data = am.AttentionData([[[1.0, 0.0]]], [[1.0, 0.0]], [1])
    run = am.train(data, "vW", steps=2, loss="squared", init=([1.0, 0.0], [[0.0, 0.0]] * 2))
    assert run.v[-1].tolist() == [1.0, 0.0]


def test_a_trained_head_uses_the_same_slope() -> None:
    """Scores 1 at a saturated softmax: the head is pulled by 1 − u, and up, however small it is."""
    data = am.AttentionData(X[:1], [[1.0, 0.0]], [1])
    start = torch.tensor([1.0, 0.0]).double(), torch.tensor([[200.0, 0.0], [0.0, 0.0]]).double()
    run = am.train(data, "vW", steps=1, lr=(1e-9, 0.5), loss="squared", init=start)
    torch.testing.assert_close(run.v[-1], torch.tensor([1.5, 0.0]).double())
