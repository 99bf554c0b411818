"""The rivals on the Frobenius problem: what a user would write with each of them.

Each takes tokens, queries and selected tokens of a batch and returns ``(W, dual)`` of the whole
batch, so that building the problem is part of its time, and its accuracy is certified by
:func:`attnmargin.certify` like ours.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import torch
from torch import Tensor

import attnmargin as am

Answer = tuple[Tensor, Tensor]


def ours(X: Tensor, z: Tensor, alpha: Tensor) -> Answer:
    solution = am.solve(am.token_problem(X, z, alpha))
    return solution.W, solution.dual


def ours_lockstep(X: Tensor, z: Tensor, alpha: Tensor) -> Answer:
    solution = am.solve(am.token_problem(X, z, alpha), method="lockstep")
    return solution.W, solution.dual


def cvxpy_as_in_the_papers(p: float = 2.0) -> Callable[[Tensor, Tensor, Tensor], Answer]:
    """One constraint object per token pair, default solver, one instance at a time."""

    def run(X: Tensor, z: Tensor, alpha: Tensor) -> Answer:
        cvxpy: Any = import_module("cvxpy")
        weights, duals = [], []
        for tokens, queries, chosen in zip(X.numpy(), z.numpy(), alpha.tolist(), strict=True):
            W = cvxpy.Variable((tokens.shape[-1], queries.shape[-1]))
            rows = [
                (tokens[i, a] - tokens[i, t]) @ W @ queries[i] >= 1
                for i, a in enumerate(chosen)
                for t in range(tokens.shape[1])
                if t != a
            ]
            entries = cvxpy.vec(W, order="C")
            goal = cvxpy.norm(W, "fro") if p == 2.0 else cvxpy.pnorm(entries, p)
            cvxpy.Problem(cvxpy.Minimize(goal), rows).solve()
            weights.append(torch.from_numpy(W.value))
            duals.append(torch.tensor([float(row.dual_value) for row in rows]).double())
        return torch.stack(weights), torch.stack(duals)

    return run


def _dual_gram(X: Tensor, z: Tensor, alpha: Tensor) -> tuple[am.MarginProblem, Any]:
    """Rows and their Gram matrix ``(B, M, M)``: token Gram times query Gram, in numpy."""
    problem = am.token_problem(X, z, alpha)
    left, query = problem.left.numpy(), problem.query.numpy()
    B, M, _ = left.shape
    Q = query.shape[1]
    gram = np.matmul(left, left.swapaxes(1, 2)).reshape(B, Q, M // Q, Q, M // Q)
    gram *= np.matmul(query, query.swapaxes(1, 2))[:, :, None, :, None]
    return problem, gram.reshape(B, M, M)


def daqp_in_a_loop(X: Tensor, z: Tensor, alpha: Tensor) -> Answer:
    """min ½ λᵀGλ − 1ᵀλ over λ ≥ 0, one instance at a time."""
    import daqp

    problem, gram = _dual_gram(X, z, alpha)
    M = problem.M
    none, f = np.zeros((0, M)), -np.ones(M)
    upper, lower, sense = np.full(M, 1e30), np.zeros(M), np.zeros(M, np.int32)
    duals = [daqp.solve(G, f, none, upper, lower, sense)[0] for G in gram]
    dual = torch.from_numpy(np.stack(duals)).clamp_min(0.0)
    return problem.adjoint(dual), dual


def moreau_batched(X: Tensor, z: Tensor, alpha: Tensor) -> Answer:
    """The same dual, the whole batch in one call; its active-set mode, the faster one here."""
    import moreau

    problem, gram = _dual_gram(X, z, alpha)
    B, M = problem.bound.shape
    solver = moreau.CompiledSolver(
        n=M,
        m=M,
        P_row_offsets=np.arange(M + 1) * M,
        P_col_indices=np.tile(np.arange(M), M),
        A_row_offsets=np.arange(M + 1),
        A_col_indices=np.arange(M),
        cones=moreau.Cones(num_nonneg_cones=M),
        settings=moreau.Settings(batch_size=B, solver="active_set", device="cpu"),
    )
    solver.setup(gram.reshape(B, -1), -np.ones((B, M)))
    answer = solver.solve(-np.ones((B, M)), np.zeros((B, M)))
    dual = torch.from_numpy(np.asarray(answer.x)).clamp_min(0.0)
    return problem.adjoint(dual), dual
