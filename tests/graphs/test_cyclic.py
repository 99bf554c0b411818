"""The cyclic correction: Lemmas 2 and 3, conic and autograd twins."""

from functools import partial

import cvxpy as cp
import numpy as np
import pytest
import torch
from cvxpy.atoms.log_sum_exp import log_sum_exp
from hypothesis import given, settings
from torch import Tensor
from torch.autograd.functional import hessian

import attnmargin as am
from attnmargin.graphs.cyclic import component_tokens
from attnmargin.papers.c.data import Instances
from attnmargin.papers.c.data import projected as project
from attnmargin.papers.c.lemmas import gradient_on_cyclic_data, plain_loss
from tests.instances import mixed_instances, next_token_data, seven


def test_lemma_2() -> None:
    own = mixed_instances(20)
    W_mm, W_cyc, bases = own.solution().W, own.corrections(), own.bases()
    assert float((W_mm * W_cyc).sum((-2, -1)).abs().max()) < 1e-10
    torch.testing.assert_close(project(W_cyc, bases), W_cyc, atol=1e-12, rtol=0)
    assert float(project(W_mm, bases).abs().max()) < 1e-10
    assert float(W_cyc.abs().max()) > 0.01


def test_cyclic_part_projects_on_the_span_of_definition_3() -> None:
    own = mixed_instances(4)
    for k, graphs in enumerate(own.graphs):
        E = own.E[k]
        span = [
            torch.outer(E[j] - E[part].mean(0), E[g.last]).flatten()
            for g in graphs
            for part in g.components
            if len(part) > 1
            for j in part
        ]
        rows = torch.stack(span)
        W = torch.randn(8, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(k))
        wanted = torch.linalg.pinv(rows) @ (rows @ W.flatten())
        torch.testing.assert_close(am.graphs.cyclic_part(W, E, graphs).flatten(), wanted)


def test_lemma_3_by_hessians() -> None:
    own = mixed_instances(5)
    generator = torch.Generator().manual_seed(3)
    for k, basis in enumerate(own.bases()):
        span = basis[basis.flatten(1).any(-1)].flatten(1)
        W = 2.0 * torch.randn(8, 8, dtype=torch.float64, generator=generator)
        arguments = (own.E[k], own.ids[k], own.labels[k])
        H = hessian(partial(plain_loss, *arguments), W).reshape(64, 64)
        assert float(torch.linalg.eigvalsh(H)[0]) > -1e-12
        assert float(torch.linalg.eigvalsh(span @ H @ span.mT)[0]) > 1e-8


def test_newton_ends_where_autograd_finds_no_gradient() -> None:
    own = mixed_instances(20)
    for k, W in enumerate(own.corrections()):
        assert gradient_on_cyclic_data(own, k, W) < 1e-10


def test_cyclic_correction_agrees_with_a_conic_solver() -> None:
    """Least log-loss over the span of Definition 3, where the minimiser is unique (Lemma 3)."""
    own = mixed_instances(6)
    for k, W_cyc in enumerate(own.corrections()):
        E = own.E[k].numpy()
        data = am.graphs.cyclic_data(own.ids[k], own.labels[k], own.graphs[k])
        basis = am.graphs.cyclic_basis(E, own.graphs[k]).numpy()
        theta, losses, ours = cp.Variable(len(basis)), [], []
        for x, y, last in zip(data.sequences, data.labels, data.last, strict=True):
            rows = np.einsum("td,rde,e->tr", E[x], basis, E[int(last)])
            label = x.index(int(y))
            losses.append(log_sum_exp(rows @ theta) - rows[label] @ theta)
            logits = E[x] @ W_cyc.numpy() @ E[int(last)]
            ours.append(np.log(np.exp(logits).sum()) - logits[label])
        best = cp.Problem(cp.Minimize(sum(losses))).solve(solver=cp.CLARABEL)
        assert sum(ours) == pytest.approx(best, abs=1e-7)
        assert sum(ours) <= best + 1e-9
        found = np.einsum("r,rde->de", np.asarray(theta.value), basis)
        np.testing.assert_allclose(W_cyc.numpy(), found, atol=1e-3)


@given(next_token_data())
@settings(max_examples=40, deadline=None)
def test_lemma_2_and_the_gradient_hold_for_any_realisable_data(
    data: tuple[list[list[int]], list[int], int],
) -> None:
    sequences, labels, K = data
    labels = [x[y % len(x)] for x, y in zip(sequences, labels, strict=True)]
    graphs = am.token_graphs(sequences, labels, K)
    E = torch.randn(K, K, dtype=torch.float64, generator=torch.Generator().manual_seed(K))
    W_mm = am.solve(am.graph_problem(E, graphs))
    assert W_mm.status == "optimal"
    W_cyc = am.cyclic_correction(E, sequences, labels, graphs)
    assert float(am.graphs.cyclic_part(W_mm.W, E, graphs).abs().max()) < 1e-8
    part = am.graphs.cyclic_part(W_cyc, E, graphs)
    assert float((part - W_cyc).abs().max()) < 1e-8 * (1.0 + float(W_cyc.abs().max()))
    if graphs.acyclic:
        assert not W_cyc.any()


def test_orthonormal_shares_are_those_of_the_labels() -> None:
    """One component, always the same choice: attention gives the shares of the labels."""
    sequences, labels = [[0, 1, 2]] * 6, [0, 0, 0, 1, 1, 2]
    graphs = am.token_graphs(sequences, labels, 3)
    W = am.cyclic_correction(np.eye(3), sequences, labels, graphs)
    torch.testing.assert_close(torch.softmax(W[:, 2], 0), torch.tensor([3, 2, 1]).double() / 6)
    torch.testing.assert_close(
        am.graphs.Automaton(graphs).next([0, 1, 2]).distribution, torch.softmax(W[:, 2], 0)
    )


@pytest.mark.parametrize("scale", [1e-20, 1e-7, 1e-3, 1.0, 1e3, 1e6])
def test_shares_do_not_depend_on_the_length_of_embeddings(scale: float) -> None:
    sequences, labels = [[0, 1, 2]] * 3 + [[0, 1, 3]] * 3, [0, 0, 1] * 2
    graphs = am.token_graphs(sequences, labels, 4)
    for short in (1.0, 1e-6):  # one graph may have a far shorter query than the other
        E = scale * torch.diag(torch.tensor([1.0, 1.0, 1.0, short], dtype=torch.float64))
        assert len(am.graphs.cyclic_basis(E, graphs)) == 2
        W = am.cyclic_correction(E, sequences, labels, graphs)
        shares = torch.softmax(E[:2] @ W @ E.mT, 0)
        wanted = torch.tensor([[0.5, 0.5, 2 / 3, 2 / 3], [0.5, 0.5, 1 / 3, 1 / 3]]).double()
        torch.testing.assert_close(shares, wanted)


def test_random_embeddings_of_any_length() -> None:
    sequences = [[0, 1, 2, 4], [1, 2, 3, 4], [2, 0, 4], [3, 0, 1, 4], [0, 1, 4]]
    labels = [0, 1, 2, 3, 1]
    graphs = am.token_graphs(sequences, labels, 5)
    generator = torch.Generator().manual_seed(0)
    E = torch.randn(20, 5, 6, dtype=torch.float64, generator=generator)
    wanted = am.cyclic_correction(E, sequences, labels, graphs)
    for scale in (1e-6, 1e3, 1e6):
        found = am.cyclic_correction(scale * E, sequences, labels, graphs)
        torch.testing.assert_close(found * scale**2, wanted, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("often", [10, 1000, 10**6])
def test_skewed_labels_keep_their_digits(often: int) -> None:
    sequences = np.tile([0, 1, 2], (often + 1, 1))
    labels = np.zeros(often + 1, dtype=int)
    labels[-1] = 1
    graphs = am.token_graphs(sequences, labels, 3)
    p = am.graphs.Automaton(graphs).next([0, 1, 2]).distribution
    assert float(torch.log(p[0] / p[1])) == pytest.approx(np.log(often), abs=1e-9)


def test_equal_choices_are_taken_together() -> None:
    own = mixed_instances(3)
    for k, W in enumerate(own.corrections()):
        ids, labels = own.ids[k].repeat(3, 1), own.labels[k].repeat(3)
        again = am.cyclic_correction(own.E[k], ids, labels, own.graphs[k])
        torch.testing.assert_close(again, W)


def test_the_coarse_head_moves_w_orthogonally_to_the_cyclic_subspace() -> None:
    """What `fixed` promises: no motion in the span, and steps of the full length outside of it."""
    own = mixed_instances(4)
    data, bases = own.data(), own.bases()
    inside = [component_tokens(g.samples, g)[0] for g in own.graphs if g.samples is not None]
    head = am.heads.ScoreHead(torch.from_numpy(np.stack(inside)).reshape(own.ids.shape).double())
    W = own.corrections()
    run = am.train(data, head=head, loss="log", lr=0.1, steps=50, init=W, fixed=bases)
    torch.testing.assert_close(project(run.W, bases), W.expand_as(run.W), atol=1e-10, rtol=0)
    lengths = torch.linalg.matrix_norm(run.W.diff(dim=0))
    torch.testing.assert_close(lengths, torch.full_like(lengths, 0.1), rtol=1e-9, atol=0)
    torch.testing.assert_close(run.W[1], by_hand(own, head, W, bases), atol=1e-10, rtol=0)


def by_hand(own: Instances, head: am.heads.ScoreHead, W: Tensor, bases: Tensor) -> Tensor:
    """One projected, normalised step from the gradient itself."""
    G, _ = am.gradient(own.data(), W, head=head, loss="log")
    G = G - project(G, bases)
    return W - 0.1 * G / torch.linalg.matrix_norm(G)[:, None, None]


def rule() -> am.graphs.Automaton:
    return am.graphs.Automaton(seven())


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: am.graph_problem(np.eye(3), seven()), r"E: got shape \(3, 3\); needs embeddings"),
        (lambda: am.graph_problem(np.eye(4), []), "graphs: got a list"),
        (lambda: am.graph_problem(np.eye(4), [seven()]), "needs 1 table, one for each graph"),
        (lambda: am.graphs.cyclic_basis([np.eye(4)], seven()), r"needs embeddings \(4, d\)"),
        (lambda: am.graphs.cyclic_part(np.eye(3), np.eye(4), seven()), r"W: got shape \(3, 3\)"),
        (lambda: am.graphs.cyclic_data([[3, 3]], [3], seven()), "graphs: got graphs of other data"),
        (lambda: am.graphs.Automaton(seven(), np.ones((1, 4, 4))), r"needs embeddings \(4, d\)"),
        (lambda: am.cyclic_correction(np.eye(4), [[0, 1, 2]], [0], am.token_graphs(
            [[0, 1, 2], [1, 0, 2]], [0, 1], 4)), "graphs: got graphs of other data"),
        (lambda: am.cyclic_correction(np.eye(4), [[0, 1]], [0], None), "graphs: got a NoneType"),  # type: ignore[arg-type]
        (lambda: am.graphs.Automaton([seven()]), "graphs: got a list"),  # type: ignore[arg-type]
        (lambda: am.graphs.Automaton(am.token_graphs([[1, 2]], [0], 3)),
         r"labels outside of 1 sequence \("),
        (lambda: am.graph_problem(np.ones((2, 4, 4)), [seven(), am.token_graphs([[0]], [0], 5)]),
         r"graphs: got vocabularies of \[4, 5\] tokens"),
        (lambda: am.graph_problem(np.eye(4), seven()["e1"]), "graphs: got a TokenGraph;"),  # type: ignore[arg-type]
        (lambda: rule().next(None), "prompt: got None; needs a list of tokens"),
        (lambda: rule().generate("e1", 1.5), "steps: got 1.5"),  # type: ignore[arg-type]
        (lambda: rule().generate("e1", 1, seed=-1), "seed: got -1"),
        (lambda: rule().generate([], 1), "prompt: got"),
        (lambda: rule().next(["zz got q;r"]), "prompt: got the token 'zz got q;r'"),
        (lambda: rule().next([]), r"prompt: got \[\]; needs at least one token"),
        (lambda: rule().next("e7 e1"), "prompt: got the token 'e7'"),
        (
            lambda: am.cyclic_correction(
                np.eye(3), [[0, 1], [0, 1], [1, 0, 1]], [2, 0, 1],
                am.token_graphs([[0, 1], [0, 1], [1, 0, 1], [2, 1], [2, 1]], [2, 0, 1, 0, 1], 3),
            ),
            "the label 2 of sequence 0; needs labels that occur",
        ),
    ],
)  # fmt: skip
def test_bad_input_gets_one_sentence(call: object, words: str) -> None:
    assert callable(call)
    with pytest.raises(am.InputError, match=words):
        call()
