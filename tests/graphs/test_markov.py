"""Attention as a Markov chain conditioned on its context."""

from typing import Any

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

import attnmargin as am
from attnmargin.base.errors import InputError
from attnmargin.graphs.markov import ContextChain, fit_chain
from attnmargin.graphs.newton import gathered
from attnmargin.papers.j.chains import random_chain, random_prompts

K = 4


def drawn(n: int = 300, trial: int = 0) -> tuple[ContextChain, torch.Tensor, torch.Tensor]:
    chain, generator = random_chain(K, "tests", trial)
    prompts = random_prompts(n, K, generator)
    return chain, prompts, chain.sample(prompts, generator)


def log_loss(W: Any, E: torch.Tensor, prompts: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """−mean log of the attention mass on the label, from the definition of attention."""
    X = E[prompts]
    attention = torch.softmax((X @ W @ X[:, -1, :, None])[..., 0], -1)
    return -(attention * (prompts == labels[:, None])).sum(-1).log().mean()


def test_a_uniform_chain_counts() -> None:
    chain = ContextChain(np.full((3, 3), 1 / 3))
    assert chain.next([0, 1, 1, 1]).tolist() == pytest.approx([0.25, 0.75, 0.0])


def test_attention_is_the_chain() -> None:
    chain, prompts, _ = drawn(20)
    E = torch.randn(K, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    W = chain.weights(E)
    for prompt in prompts:
        X = E[prompt]
        mass = torch.zeros(K, dtype=E.dtype)
        mass.index_add_(0, prompt, torch.softmax(X @ W @ X[-1], 0))
        torch.testing.assert_close(mass, chain.next(prompt), rtol=1e-12, atol=1e-12)


def test_gradients_are_those_of_autograd() -> None:
    """The log-loss of attention in W and that of choices in logits have the same slope."""
    _, prompts, labels = drawn(50)
    own = prompts[:, -1] == 0
    counts = torch.nn.functional.one_hot(prompts[own], K).sum(1).numpy().astype(float)
    choices = gathered(csr_array(counts), labels[own].numpy())
    E = torch.eye(K, dtype=torch.float64)
    W = torch.randn(K, K, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    W.requires_grad_()
    (g,) = torch.autograd.grad(log_loss(W, E, prompts[own], labels[own]), W)
    slope = choices.slope(W[:, 0].detach().numpy())[0]
    np.testing.assert_allclose(slope, g[:, 0], rtol=0, atol=1e-12)


@pytest.mark.slow
def test_estimates_are_those_of_a_conic_solver() -> None:
    cp: Any = pytest.importorskip("cvxpy")
    _, prompts, labels = drawn()
    estimate = fit_chain(prompts.numpy(), labels.numpy(), K)
    for k in range(K):
        rows = (prompts[:, -1] == k).nonzero()[:, 0]
        counts = torch.nn.functional.one_hot(prompts[rows], K).sum(1).numpy()
        a: Any = cp.Variable(K)
        terms = [
            cp.log_sum_exp(a[np.flatnonzero(c)] + np.log(c[c > 0])) - a[int(y)] - np.log(c[int(y)])
            for c, y in zip(counts, labels[rows], strict=True)
        ]
        problem = cp.Problem(cp.Minimize(sum(terms)), [a.T @ np.ones(K) == 0])
        best = problem.solve(solver="CLARABEL")
        E = torch.eye(K, dtype=torch.float64)
        W = estimate.P[k].log()[:, None].expand(K, K)
        own = float(len(rows) * log_loss(W, E, prompts[rows], labels[rows]))
        assert abs(own - best) < 1e-7 * best
        np.testing.assert_allclose(
            estimate.P[k], np.exp(a.value) / np.exp(a.value).sum(), atol=1e-4
        )


def test_no_gradient_is_left() -> None:
    _, prompts, labels = drawn()
    estimate = fit_chain(prompts.numpy(), labels.numpy(), K)
    assert estimate.identified.all()
    E = torch.eye(K, dtype=torch.float64)
    W = ContextChain(estimate.P).weights(E).requires_grad_()
    (g,) = torch.autograd.grad(log_loss(W, E, prompts, labels), W)
    assert float(g.norm()) < 1e-10


def test_what_the_data_do_not_determine_is_told() -> None:
    found = fit_chain([[0, 1, 0], [1, 0, 0]], [0, 1], 4)
    assert not found.identified.any()
    assert found.why[0] == "no prompt holds tokens of both [0, 1] and [2]"
    assert found.why[1] == "no prompt ends with it"
    assert bool(found.P.isnan().all())
    one_way = fit_chain([[0, 1, 0]] * 3, [1, 1, 1], 2)
    assert one_way.why[0] == "choices between [1] and the other tokens all go one way"


def test_trajectories_repeat_what_they_hold() -> None:
    """The same seed gives the same tokens; a prompt of one token can only repeat it."""
    chain, _, _ = drawn(1)
    assert set(chain.trajectory([2, 2], 50).tolist()) == {2}
    one, two = (chain.trajectory(list(range(K)), 200, seed=3) for _ in range(2))
    np.testing.assert_array_equal(one, two)
    counts = np.array([chain.trajectory([0, 1], 1, seed=s)[0] for s in range(4000)])
    assert (counts == 0).mean() == pytest.approx(float(chain.next([0, 1])[0]), abs=0.03)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ContextChain([[1.0, 0.0], [0.5, 0.5]]), "P: got an entry that is not positive"),
        (lambda: ContextChain([[0.5, 0.6], [0.5, 0.5]]), r"P: got a row that sums to 1\.1"),
        (lambda: ContextChain([0.5, 0.5]), r"P: got shape \(2,\)"),
        (lambda: ContextChain([[1.0]]).next([1]), "prompt: got .* needs one or more ids from 0"),
        (lambda: ContextChain([[1.0]]).next([]), "prompt: got "),
        (lambda: ContextChain([[0.5, 0.5]] * 2).weights([[1.0], [2.0]]), "E: got embeddings that"),
        (lambda: fit_chain([[0, 1]], [2], 3), "labels: got the label 2 of prompt 0"),
        (lambda: fit_chain([[0, 1]], [0], 0), "K: got 0"),
    ],
)
def test_bad_input(call: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        call()


def test_names() -> None:
    assert am.graphs.ContextChain is ContextChain


@pytest.mark.parametrize("K", [2, 5, 9])
def test_compiled_trajectories_are_those_of_a_plain_loop(K: int) -> None:
    rng = np.random.default_rng(K)
    P = rng.random((K, K)) + 0.05
    P /= P.sum(1, keepdims=True)
    counts, last, found = np.ones(K), K - 1, []
    for u in np.random.default_rng(3).random(500):
        total = np.cumsum(counts * P[last])
        last = int(np.searchsorted(total, u * total[-1], side="right"))
        counts[last] += 1.0
        found.append(last)
    assert ContextChain(P).trajectory(list(range(K)), 500, seed=3).tolist() == found
