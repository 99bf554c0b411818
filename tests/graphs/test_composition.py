"""W_cyc of other losses than the log-loss: closed forms, brute force, autograd."""

import math

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from scipy.special import logsumexp
from torch import Tensor

import attnmargin as am

SLOPES = {
    "logistic": lambda u: math.log1p(math.exp(-u)),
    "squared": lambda u: (1.0 - u) ** 2,
    "exponential": lambda u: math.exp(-u),
    "linear": lambda u: -u,
}


def cyclic_loss(E: Tensor, sequences: list[list[int]], labels: list[int], loss: str, W: Tensor):  # type: ignore[no-untyped-def]
    """Write out Definition 3 for data that are all cyclic."""
    total = W.new_zeros(())
    for x, y in zip(sequences, labels, strict=True):
        s = torch.softmax(E[x] @ W @ E[x[-1]], 0)
        total = total + am.losses.as_loss(loss).value(s[torch.tensor(x) == y].sum())
    return total / len(labels)


def correction(sequences: list[list[int]], labels: list[int], loss: str, K: int = 2) -> Tensor:
    E = torch.eye(K, dtype=torch.float64)
    return am.cyclic_correction(E, sequences, labels, am.token_graphs(sequences, labels, K), loss)


def test_shares_of_two_tokens_in_closed_form() -> None:
    """Two of three labels: squared 2/3; 2 e^{−t} = e^{t − 1} gives t = (1 + log 2)/2."""
    for loss, share in (("squared", 2.0 / 3.0), ("exponential", 0.5 * (1.0 + math.log(2.0)))):
        W = correction([[0, 1]] * 3, [0, 0, 1], loss)
        torch.testing.assert_close(torch.softmax(W[:, 1], 0)[0], torch.tensor(share).double())
    for loss in ("logistic", "linear"):
        with pytest.raises(am.InputError, match=f"loss: got '{loss}', with no finite minimum"):
            correction([[0, 1]] * 3, [0, 0, 1], loss)
    assert float(correction([[0, 0, 1]] * 2, [0, 1], "linear").abs().max()) == 0.0


@pytest.mark.parametrize("loss", ["squared", "exponential"])
@pytest.mark.parametrize(
    ("sequences", "labels"),
    [
        ([[0, 1, 1]] * 2 + [[0, 1, 1, 1]] * 2 + [[0, 0, 1]], [0, 1, 0, 1, 1]),
        ([[0, 1]] * 5 + [[0, 0, 1]] * 4, [0, 0, 0, 1, 1, 0, 1, 1, 1]),
    ],
)
def test_two_tokens_with_several_bags_by_brute_force(
    sequences: list[list[int]], labels: list[int], loss: str
) -> None:
    def value(t: float) -> float:
        total = 0.0
        for x, y in zip(sequences, labels, strict=True):
            c = x.count(0) * t, x.count(1) * (1.0 - t)
            total += SLOPES[loss](c[y] / sum(c))
        return total

    grid = np.linspace(0.0, 1.0, 10_001)
    best = float(grid[np.argmin([value(t) for t in grid])])
    if best in (0.0, 1.0):
        with pytest.raises(am.InputError, match="with no finite minimum"):
            correction(sequences, labels, loss)
        return
    W = correction(sequences, labels, loss)
    t = float(torch.softmax(W[:, 1], 0)[0])
    assert t == pytest.approx(best, abs=2e-4)
    assert value(t) <= min(value(s) for s in grid) + 1e-12
    at = W.clone().requires_grad_()
    E = torch.eye(2, dtype=torch.float64)
    (g,) = torch.autograd.grad(cyclic_loss(E, sequences, labels, loss, at), at)
    assert float(g.abs().max()) < 1e-12


@pytest.mark.parametrize("loss", ["squared", "logistic", "exponential"])
def test_one_bag_of_several_tokens_by_many_starts(loss: str) -> None:
    """Shares of four tokens, in embeddings that are not orthogonal."""
    sequences, labels = [[0, 1, 1, 2, 3]] * 41, [0] * 10 + [1] * 11 + [2] * 10 + [3] * 10
    E = am.graphs.random_next_tokens(4, 5, 1, 1, name="one bag")[0]
    graphs = am.token_graphs(sequences, labels, 4)
    W = am.cyclic_correction(E, sequences, labels, graphs, loss)
    at = W.clone().requires_grad_()
    least = cyclic_loss(E, sequences, labels, loss, at)
    (g,) = torch.autograd.grad(least, at)
    assert float(g.abs().max()) < 1e-11
    torch.testing.assert_close(am.graphs.cyclic_part(W, E, graphs), W, atol=1e-11, rtol=0.0)
    share = np.array([10.0, 11.0, 10.0, 10.0]) / 41.0
    rng = np.random.default_rng(0)
    for _ in range(10):
        start = 2.0 * rng.normal(size=4)
        found = minimize(
            lambda a: share @ [SLOPES[loss](s) for s in np.exp(a - logsumexp(a))], start
        )
        assert float(found.fun) >= float(least.detach()) - 1e-12


def test_the_log_loss_is_unchanged_and_unknown_cases_are_refused() -> None:
    sequences, labels = [[0, 1, 2], [0, 0, 1, 2], [1, 1, 0, 2]], [0, 1, 2]
    graphs = am.token_graphs(sequences, labels, 3)
    E = torch.eye(3, dtype=torch.float64)
    both = [am.cyclic_correction(E, sequences, labels, graphs, *x) for x in ((), ("log",))]
    assert torch.equal(*both)
    with pytest.raises(am.InputError, match="with no known finite minimum"):
        am.cyclic_correction(E, sequences, labels, graphs, "squared")
    dependent = [[1.0, 0.0], [1.0, 0.0]]
    graphs = am.token_graphs([[0, 1]] * 3, [0, 0, 1], 2)
    with pytest.raises(am.InputError, match="E: got dependent embeddings"):
        am.cyclic_correction(dependent, [[0, 1]] * 3, [0, 0, 1], graphs, "squared")
