"""Descent and flow of a linear decoder."""

import math

import pytest
import torch

import attnmargin as am
from attnmargin.decoders import descend, finite_part, flow, largest_rate, random_next_words


def test_descent_is_that_of_autograd() -> None:
    data = random_next_words(4, 3, 5, 2, name="descent")
    run = descend(data, 5, 0.7)
    W = torch.zeros(5, 3, dtype=torch.float64, requires_grad=True)
    for k in range(6):
        torch.testing.assert_close(run.W[k], W.detach(), rtol=0, atol=1e-13)
        loss = data.loss(W)
        assert float(run.loss[k]) == pytest.approx(float(loss.detach()), abs=1e-13)
        (g,) = torch.autograd.grad(loss, W)
        W = (W - 0.7 * g).detach().requires_grad_()


def test_the_largest_rate_bounds_the_hessian() -> None:
    data = random_next_words(4, 3, 5, 2, name="rate")
    generator = torch.Generator().manual_seed(0)
    for size in (0.0, 1.0, 3.0):
        W = size * torch.randn(5, 3, generator=generator, dtype=torch.float64)
        H = torch.autograd.functional.hessian(data.loss, W).reshape(15, 15)
        assert float(torch.linalg.eigvalsh(H)[-1] * largest_rate(data)) <= 1.0 + 1e-12


def test_flow_and_short_steps_of_descent_follow_the_same_path() -> None:
    data = random_next_words(4, 3, 6, 2, 3, name="short steps")
    plain = descend(data, 2000, 0.05, 2000).W[-1]
    path = flow(data, math.log(100.0), stride=0.01).W[-1]
    assert float((plain - path).norm() / path.norm()) < 0.01


def test_flow_ends_in_both_parts() -> None:
    data = random_next_words(5, 6, 7, 3, 6, name="both parts")
    run, solution = flow(data, [20.0, 100.0, 300.0]), am.solve(data.problem)
    assert bool(solution.optimal.all())
    off = (run.finite - finite_part(data).W).norm(dim=(-2, -1))
    distance = 1.0 - am.correlation(run.growing, solution.W)
    assert float(off[1:].max()) < 1e-9
    assert float(distance[-1].max()) < 1e-3
    assert bool((distance[2] < distance[1]).all())
    torch.testing.assert_close(run.loss[-1], data.entropy, rtol=0, atol=1e-12)


def test_without_compatibility_descent_ends_in_the_best_finite_part() -> None:
    data = am.decoders.next_words([[1.0], [2.0]], [[1, 3, 0], [1, 1, 0]])
    run = flow(data, 200.0)
    torch.testing.assert_close(run.finite[-1], finite_part(data).W, rtol=0, atol=1e-9)
    assert float(am.correlation(run.growing[-1], am.solve(data.problem).W)) > 0.9999


def test_one_word_after_each_context_is_the_multiclass_svm() -> None:
    x = torch.tensor([[1.0, 0.2], [-0.4, 1.0], [-0.5, -1.0]], dtype=torch.float64)
    data = am.decoders.next_words(x, torch.eye(3, dtype=torch.float64))
    expected = am.solve(am.class_problem(x, [0, 1, 2]))
    torch.testing.assert_close(am.solve(data.problem).W, expected.W)
    run = flow(data)
    assert not bool(run.finite.any())
    assert float(am.correlation(run.growing[-1], expected.W)) > 0.9999


def test_bad_arguments() -> None:
    data = random_next_words(3, 3, 4, 2)
    with pytest.raises(am.InputError, match="log_times: got"):
        flow(data, [2.0, 1.0])
    with pytest.raises(am.InputError, match=r"lr: got -1\.0; needs a positive number"):
        descend(data, 3, -1.0)
