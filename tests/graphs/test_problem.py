"""Graph-SVM: by hand, by cvxpy, in batches."""

import cvxpy as cp
import numpy as np
import pytest
import torch
from cvxpy.atoms.norm import norm

import attnmargin as am
from tests.instances import mixed_instances, seven


def test_graph_problem_by_hand() -> None:
    """Orthonormal embeddings, one edge: half up, half down."""
    graphs = am.token_graphs([[2, 0, 1]], [2], 3)
    solution = am.solve(am.graph_problem(np.eye(3), graphs))
    wanted = torch.zeros(3, 3, dtype=torch.float64)
    wanted[:, 1] = torch.tensor([-1 / 3, -1 / 3, 2 / 3])
    torch.testing.assert_close(solution.W, wanted)
    assert float(solution.value) == pytest.approx((2 / 3) ** 0.5)


def test_graph_problem_agrees_with_cvxpy() -> None:
    own = mixed_instances(5)
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
    own = mixed_instances(6)
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
