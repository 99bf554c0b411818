"""N, of norms: classifiers written as attention, their margins, and small runs."""

import numpy as np
import pytest
import torch

from attnmargin.margin.classes import class_problem
from attnmargin.margin.norms import as_norm
from attnmargin.papers.engine.experiment import Task
from attnmargin.papers.n import attention, classes
from attnmargin.papers.n.linear import Classes, random_classes
from attnmargin.papers.registry import find
from attnmargin.training.methods import Steepest


def small() -> Classes:
    return random_classes(2, count=3, d=4, per=5)


def test_training_is_that_of_a_linear_classifier() -> None:
    own = small()
    run = own.train(Steepest("spectral"), steps=20, lr=0.1)
    for b in range(2):
        W = torch.zeros(3, 4, dtype=torch.float64, requires_grad=True)
        for k in range(20):
            loss = torch.nn.functional.cross_entropy(own.x[b] @ W.T, own.y[b])
            torch.testing.assert_close(run.loss[k, b], loss.detach(), rtol=1e-9, atol=0)
            (g,) = torch.autograd.grad(loss, W)
            U, S, Vh = torch.linalg.svd(g, full_matrices=False)
            kept = 1e-12 * S[0] < S
            W = (W - 0.1 * (U * kept) @ Vh).detach().requires_grad_()
        torch.testing.assert_close(run.W[-1, b, :3], W.detach(), rtol=1e-9, atol=1e-9)
        assert not bool(run.W[-1, b, 3:].any())


@pytest.mark.parametrize("norm", ["fro", "spectral", "max"])
def test_margins_are_those_of_the_rows(norm: str) -> None:
    own = small()
    W = torch.randn(2, 4, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    W[:, 3:] = 0.0
    rows = class_problem(own.x, own.y, 3).apply(W[:, :3]).amin(-1)
    expected = rows / as_norm(norm).value(W[:, :3])
    torch.testing.assert_close(own.margin(W[None], norm)[0], expected)


def test_slopes_in_closed_form() -> None:
    moments = np.arange(50, 2001, 50)
    gaps = np.stack([3.0 * moments**-0.5, 0.2 * moments**-1.0])
    np.testing.assert_allclose(classes.slopes(gaps), [-0.5, -1.0])


def test_unknown_trials_reach_nothing() -> None:
    relative = np.array([[0.5, 0.9, 0.1, 0.2, 0.3], [np.nan] * 5, [1.0, 0.0, 0.0, 0.0, 0.0]])
    found = attention.reached({"relative": relative, "feasible": np.array([True, True, False])})
    assert found.tolist() == [1, -1]


def test_exceptions_are_listed() -> None:
    arrays = {
        "relative": np.array([[0.9, 0.1, 0.1, 0.2, 0.3], [np.nan] * 5, [0.5, 0.7, 0.0, 0.0, 0.0]]),
        "feasible": np.array([True, False, True]),
    }
    results = dict.fromkeys(attention.RUNS, arrays)
    found = [own for own in attention.exceptions(results) if own["run"] == "W-fro"]
    assert [(own["trial"], own["nearest"]) for own in found] == [(2, "spectral")]
    assert found[0]["shares"]["spectral"] == 0.7


def test_a_short_run_comes_closest_in_its_own_norm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "_STEPS", 300)
    experiment = find("N:attention")
    for key, own in (("W-spectral", "spectral"), ("W-max", "max")):
        point = next(point for point in experiment.points if point.key == key)
        arrays = experiment.run(Task(point.settings, 2, 0, lambda done, total: None))
        assert arrays["relative"].shape == (2, 5)
        assert (attention.reached(arrays) == attention.NORMS.index(own)).all()
