"""Graph-SVM, the cyclic correction and the automaton: Lemmas 2 and 3, conic and autograd twins."""

from functools import partial

import cvxpy as cp
import numpy as np
import pytest
import torch
from cvxpy.atoms.log_sum_exp import log_sum_exp
from cvxpy.atoms.norm import norm
from hypothesis import given, settings
from torch import Tensor
from torch.autograd.functional import hessian

import attnmargin as am
from attnmargin.graphs.cyclic import component_tokens
from attnmargin.papers.c.data import Instances, mixed
from attnmargin.papers.c.data import projected as project
from attnmargin.papers.c.lemmas import gradient_on_cyclic_data, plain_loss
from tests.test_graphs import next_token_data, seven


def instances(trials: int, K: int = 6, d: int = 8, n: int = 6, T: int = 4) -> Instances:
    """Random data sets with something to retrieve and something to compose."""
    E, ids, labels = am.graphs.random_next_tokens(K, d, n, T, trials=8 * trials, name="cyclic")
    graphs = [am.token_graphs(x, y, K) for x, y in zip(ids, labels, strict=True)]
    keep = [k for k, g in enumerate(graphs) if mixed(g)][:trials]
    return Instances(E[keep], ids[keep], labels[keep], [graphs[k] for k in keep])


def test_graph_problem_by_hand() -> None:
    """Orthonormal embeddings, one edge: half up, half down."""
    graphs = am.token_graphs([[2, 0, 1]], [2], 3)
    solution = am.solve(am.graph_problem(np.eye(3), graphs))
    wanted = torch.zeros(3, 3, dtype=torch.float64)
    wanted[:, 1] = torch.tensor([-1 / 3, -1 / 3, 2 / 3])
    torch.testing.assert_close(solution.W, wanted)
    assert float(solution.value) == pytest.approx((2 / 3) ** 0.5)


def test_graph_problem_agrees_with_cvxpy() -> None:
    own = instances(5)
    solution = own.solution()
    for k, graphs in enumerate(own.graphs):
        E, W = own.E[k].numpy(), cp.Variable((8, 8))
        value = E @ W @ E.T
        rows = [
            value[i, k_] - value[j, k_] >= 1 for i, j, k_ in zip(*graphs.dominance, strict=True)
        ]
        rows += [
            value[i, g.last] == value[j, g.last]
            for g in graphs
            for part in g.components
            for i in part
            for j in part
            if i < j
        ]
        cp.Problem(cp.Minimize(norm(W, "fro")), rows).solve(solver=cp.CLARABEL)
        np.testing.assert_allclose(solution.W[k].numpy(), np.asarray(W.value), atol=1e-5)


def test_a_batch_of_graphs_equals_its_loop() -> None:
    own = instances(6)
    together = own.solution()
    for k, graphs in enumerate(own.graphs):
        alone = am.solve(am.graph_problem(own.E[k], graphs))
        torch.testing.assert_close(together.W[k], alone.W)
    shared = am.solve(am.graph_problem(own.E, own.graphs[0]))
    first = am.solve(am.graph_problem(own.E[2], own.graphs[0]))
    torch.testing.assert_close(shared.W[2], first.W)
    parts = am.cyclic_correction(own.E, own.ids[0], own.labels[0], own.graphs[0])
    one = am.cyclic_correction(own.E[3], own.ids[0], own.labels[0], own.graphs[0])
    torch.testing.assert_close(parts[3], one)


def test_dtype_is_kept_and_rows_say_what_they_are() -> None:
    graphs = am.token_graphs([[0, 1], [0, 1]], [0, 0], 2)
    E = torch.tensor([[1.0, 0.0], [1.0, 0.0]], dtype=torch.float32)  # two tokens that are the same
    solution = am.solve(am.graph_problem(E, graphs))
    assert solution.W.dtype == torch.float32
    assert solution.status == "infeasible"
    words = "the graph of last token 1 wants token 0 over token 1, but the tokens are equal"
    with pytest.raises(am.InfeasibleError, match=words):
        solution.raise_for_status()
    assert am.cyclic_correction(E, [[0, 1], [0, 1]], [0, 0], graphs).dtype == torch.float32
    assert am.graphs.cyclic_basis(E, graphs).dtype == torch.float32


def test_graph_rows_have_no_support_tokens_of_sequences() -> None:
    solution = am.solve(am.graph_problem(np.eye(4), seven()))
    assert bool(solution.support.any())
    with pytest.raises(am.InputError, match="solution: got one without pairs of tokens"):
        am.selections.support_tokens(solution)


def test_lemma_2() -> None:
    own = instances(20)
    W_mm, W_cyc, bases = own.solution().W, own.corrections(), own.bases()
    assert float((W_mm * W_cyc).sum((-2, -1)).abs().max()) < 1e-10
    torch.testing.assert_close(project(W_cyc, bases), W_cyc, atol=1e-12, rtol=0)
    assert float(project(W_mm, bases).abs().max()) < 1e-10
    assert float(W_cyc.abs().max()) > 0.01


def test_cyclic_part_projects_on_the_span_of_definition_3() -> None:
    own = instances(4)
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
    own = instances(5)
    generator = torch.Generator().manual_seed(3)
    for k, basis in enumerate(own.bases()):
        span = basis[basis.flatten(1).any(-1)].flatten(1)
        W = 2.0 * torch.randn(8, 8, dtype=torch.float64, generator=generator)
        arguments = (own.E[k], own.ids[k], own.labels[k])
        H = hessian(partial(plain_loss, *arguments), W).reshape(64, 64)
        assert float(torch.linalg.eigvalsh(H)[0]) > -1e-12
        assert float(torch.linalg.eigvalsh(span @ H @ span.mT)[0]) > 1e-8


def test_newton_ends_where_autograd_finds_no_gradient() -> None:
    own = instances(20)
    for k, W in enumerate(own.corrections()):
        assert gradient_on_cyclic_data(own, k, W) < 1e-10


def test_cyclic_correction_agrees_with_a_conic_solver() -> None:
    """Least log-loss over the span of Definition 3, where the minimiser is unique (Lemma 3)."""
    own = instances(6)
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
    own = instances(3)
    for k, W in enumerate(own.corrections()):
        ids, labels = own.ids[k].repeat(3, 1), own.labels[k].repeat(3)
        again = am.cyclic_correction(own.E[k], ids, labels, own.graphs[k])
        torch.testing.assert_close(again, W)


def test_a_token_that_stands_twice_counts_twice() -> None:
    sequences, labels = [[0, 1], [0, 1]], [0, 1]
    graphs = am.token_graphs(sequences, labels, 2)
    twice = am.graphs.Automaton(graphs).next([0, 0, 1])
    torch.testing.assert_close(twice.distribution, torch.tensor([2, 1]).double() / 3)
    assert twice.rule == "composition"


def test_automaton_with_identity_embeddings_equals_the_graphs() -> None:
    """Every graph by itself, or all together: two ways to the same answer."""
    own = instances(6)
    generator = torch.Generator().manual_seed(1)
    for graphs in own.graphs:
        whole = am.graphs.Automaton(graphs, torch.eye(6, dtype=torch.float64))
        for prompt in torch.randint(0, 6, (30, 4), generator=generator).tolist():
            if prompt[-1] not in graphs:
                continue
            first, second = am.graphs.Automaton(graphs).next(prompt), whole.next(prompt)
            assert first.rule == second.rule
            torch.testing.assert_close(first.distribution, second.distribution)
            assert first.margin == pytest.approx(second.margin, abs=1e-6)


def test_training_sequences_are_decided_and_their_label_is_kept() -> None:
    own = instances(10)
    for k, graphs in enumerate(own.graphs):
        rule = am.graphs.Automaton(graphs, own.E[k])
        for x, y in zip(own.ids[k], own.labels[k], strict=True):
            answer = rule.next(x.tolist())
            assert answer.rule in ("retrieval", "composition")
            assert float(answer.distribution[y]) > 0.0
            assert answer.decided


def test_trained_model_follows_the_automaton() -> None:
    own = instances(10)
    data, head = own.data(), own.head()
    run = am.train(data, head=head, loss="log", lr=0.01, steps=20_000, record=20_000)
    s = am.probabilities(data, run.W[-1])
    said = torch.zeros(len(own.E), 6, 6, dtype=torch.float64).scatter_add_(-1, own.ids, s)
    for k, graphs in enumerate(own.graphs):
        rule = am.graphs.Automaton(graphs, own.E[k])
        for i, x in enumerate(own.ids[k]):
            wanted = rule.next(x.tolist()).distribution
            assert 0.5 * float((said[k, i] - wanted).abs().sum()) < 0.01


def test_rules_of_the_automaton() -> None:
    graphs = seven()
    assert am.graphs.Automaton(graphs).next("e3 e4 e1").rule == "retrieval"
    assert am.graphs.Automaton(graphs).next("e1 e3 e2").rule == "composition"
    assert am.graphs.Automaton(graphs).next("e1 e3").rule == "unseen"
    split = am.token_graphs([[0, 4], [1, 2, 4], [2, 3, 4]], [0, 1, 2], 5)
    assert am.graphs.Automaton(split).next([0, 3, 4]).rule == "margin"
    tie = am.token_graphs([[0, 2], [1, 2]], [0, 1], 3)
    answer = am.graphs.Automaton(tie).next([0, 1, 2])
    assert (answer.rule, answer.decided) == ("tie", False)
    torch.testing.assert_close(answer.distribution, torch.tensor([0.5, 0.5, 0.0]).double())


def test_one_token_is_retrieved_whatever_was_learnt() -> None:
    graphs = am.token_graphs([["a", "b"]], ["a"])
    answer = am.graphs.Automaton(graphs).next(["a"])
    assert (answer.rule, answer.decided, answer.tokens) == ("retrieval", True, [("a", 1.0)])
    table = am.graphs.Automaton(graphs, np.eye(2))
    assert table.next("b a").rule == "unseen"
    assert str(am.graphs.Automaton(graphs).next(torch.tensor([0, 1]))) == str(
        am.graphs.Automaton(graphs).next(range(2))
    )


def test_retrieval_needs_no_samples() -> None:
    graphs = am.token_graphs([[0, 1, 2], [1, 0, 2], [3, 2]], [0, 1, 3], 4, keep_samples=False)
    assert am.graphs.Automaton(graphs).next([3, 2]).rule == "retrieval"


def test_large_graphs_decide_without_the_margin(monkeypatch: pytest.MonkeyPatch) -> None:
    from attnmargin.graphs import automaton

    monkeypatch.setattr(automaton, "_LARGE", 2)
    answer = am.graphs.Automaton(seven()).next("e3 e4 e1")
    assert (str(answer), np.isnan(answer.margin)) == ("e3: retrieval of e3 over e1, e4", True)


def test_generation_follows_the_rule_and_its_seed() -> None:
    graphs = seven()
    rule = am.graphs.Automaton(graphs)
    assert rule.generate("e3 e4 e1", 1) == ["e3", "e4", "e1", "e3"]
    assert rule.generate("e1 e3 e2", 5, seed=1) == rule.generate("e1 e3 e2", 5, seed=1)


def test_the_coarse_head_moves_w_orthogonally_to_the_cyclic_subspace() -> None:
    """What `fixed` promises: no motion in the span, and steps of the full length outside of it."""
    own = instances(4)
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


def test_graphs_without_samples_cannot_compose() -> None:
    graphs = am.token_graphs([[0, 1], [0, 1]], [0, 1], 2, keep_samples=False)
    with pytest.raises(am.InputError, match="graphs without samples; needs keep_samples=True"):
        am.graphs.Automaton(graphs).next([0, 1])
