"""H, rates: courses of runs against closed forms and plain formulas."""

import math

import numpy as np
import pytest
import torch

import attnmargin as am
from attnmargin.papers.h.courses import Fit, course_of, log_spread
from attnmargin.papers.h.rates import RULES


def small(trials: int = 3) -> am.AttentionData:
    return am.random_data(2, 3, 4, trials, name="H tests")


def test_spread_is_exact_where_probabilities_are_one() -> None:
    """Against the softmax where it can be seen, and against logits where it rounds to one."""
    data = small()
    selection = am.optimal_tokens(data)
    W = am.solve(am.token_problem(data.X, data.z, selection)).W
    own = am.probabilities(data, W).gather(-1, selection[..., None])[..., 0]
    expected = (1.0 - own).log().amax(-1)
    torch.testing.assert_close(log_spread(data, W[None], selection)[0], expected)
    far = log_spread(data, 1e4 * W[None], selection)[0]
    assert bool((far < -9_000).all())
    assert bool((am.probabilities(data, 1e4 * W).amax(-1) == 1.0).all())
    torch.testing.assert_close(far / 1e4, torch.full_like(far, -1.0), rtol=1e-3, atol=0)


def test_the_direction_is_that_of_an_independent_solver() -> None:
    data = small()
    run = am.train(data, lr=0.5, steps=200, record=100)
    found = course_of(data, run)
    assert found["steps"].tolist() == [100, 200]
    for b in range(3):
        problem = am.token_problem(data.X[b], data.z[b], run.selection[-1, b])
        W = am.solve(problem, method="reference").W
        U = run.W[1:, b] / run.W[1:, b].norm(dim=(-2, -1), keepdim=True)
        expected = (U - W / W.norm()).norm(dim=(-2, -1))
        np.testing.assert_allclose(found["distance"][:, b], expected, atol=1e-6)


@pytest.mark.parametrize("rule", RULES)
def test_steps_are_those_of_autograd(rule: str) -> None:
    """L = (1/n) Σ log(1 + e^{−y vᵀ Xᵀ softmax(X W z)}); Polyak steps have length at most one."""
    data = small(1)[0]
    options = RULES[rule]
    run = am.train(data, steps=15, **options)
    assert data.y is not None
    assert data.v is not None
    best = torch.nn.functional.softplus(-am.scores(data).amax(-1)).mean()
    W = torch.zeros(4, 4, dtype=torch.float64, requires_grad=True)
    for k in range(15):
        torch.testing.assert_close(run.W[k], W.detach(), rtol=1e-12, atol=1e-12)
        s = torch.softmax(torch.einsum("ntd,de,ne->nt", data.X, W, data.z), -1)
        output = torch.einsum("nt,ntd,d->n", s, data.X, data.v)
        loss = torch.nn.functional.softplus(-data.y * output).mean()
        (g,) = torch.autograd.grad(loss, W)
        size = float(g.norm())
        rate = float(loss.detach() - best) / size**2 if rule == "polyak" else options["lr"]
        length = min(rate * size, 1.0) if rule == "polyak" else rate * size
        step = g / size * (rate if options["normalize"] else length)
        W = (W - step).detach().requires_grad_()


def test_exponents_in_closed_form() -> None:
    steps = np.arange(1, 101, dtype=float)
    length = steps[:, None] * np.array([1.0, 2.0, 3.0])
    margin = np.array([0.5, 0.1, 0.2])
    feasible = np.array([True, True, False])
    fit = Fit({"steps": steps, "length": length, "distance": 2.0 * length**-1.5, "margin": margin,
               "spread": -0.5 * margin * length, "feasible": feasible})  # fmt: skip
    np.testing.assert_allclose(fit.against_steps(), [-1.5, -1.5])
    np.testing.assert_allclose(fit.against_length(), [-1.5, -1.5])
    np.testing.assert_allclose(fit.sparsity(), [0.5, 0.5])
    np.testing.assert_allclose(fit.speed(), [1.0, 1.0])
    assert math.isclose(fit.of("steps")[0], 10.0)
