"""The rivals on the nuclear and ℓp problems: general conic solvers, as a user would call them.

Like those of :mod:`benchmarks.rivals`, each takes tokens, queries and selected tokens of a batch
and returns ``(W, dual)``, so that building the problem counts and the accuracy is certified by the
same judge. The nuclear problem is given to them in two forms, with M rows ``u_iᵀ W z_i ≥ b_i``:

    primal SDP        min ½(tr P + tr R)  subject to  [[P, W], [Wᵀ, R]] ⪰ 0 and the rows
    reduced dual LMI  max bᵀλ  subject to  [[I, N], [Nᵀ, I]] ⪰ 0, λ ≥ 0,  N = Σ λ_i u_i z_iᵀ

the second with u and z in the coordinates of their spans.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

import attnmargin as am
from benchmarks.rivals import Answer

Floats = NDArray[np.float64]


@dataclass
class Program:
    """min cᵀx with h − G x in (M nonnegative numbers, one PSD triangle), for a batch."""

    c: Floats  # (variables,)
    G: Floats  # (B, rows, variables)
    h: Floats  # (B, rows)
    M: int
    side: int
    read: Callable[[Floats, Floats], Answer]  # from x and the multipliers


def ours(norm: str | float) -> Callable[[Tensor, Tensor, Tensor], Answer]:
    def run(X: Tensor, z: Tensor, alpha: Tensor) -> Answer:
        solution = am.solve(am.token_problem(X, z, alpha), norm)
        return solution.W, solution.dual

    return run


def _triangle(side: int) -> tuple[Any, Any, Floats]:
    """Rows, columns and scale of the upper triangle, column by column."""
    columns, rows = np.tril_indices(side)
    return rows, columns, np.where(rows == columns, 1.0, np.sqrt(2.0))


def _span(x: Tensor) -> tuple[Tensor, Tensor]:
    """Orthonormal basis of the rows' span, and coordinates; as they are where it is full."""
    if x.shape[-2] >= x.shape[-1]:
        return torch.eye(x.shape[-1], dtype=x.dtype).expand(len(x), -1, -1), x
    basis, triangle = torch.linalg.qr(x.mT)
    return basis, triangle.mT


def dual_lmi(X: Tensor, z: Tensor, alpha: Tensor) -> Program:
    problem = am.token_problem(X, z, alpha)
    (left_basis, U), (right_basis, Z) = _span(problem.left), _span(problem.query)
    Z = Z.repeat_interleave(problem.M // Z.shape[-2], dim=-2)
    B, M, p = U.shape
    side = p + Z.shape[-1]
    rows, columns, scale = _triangle(side)
    outer = torch.einsum("bma,bmc->bmac", U, Z).numpy()
    off = (rows < p) & (columns >= p)
    G = np.zeros((B, M + len(rows), M))
    G[:, np.arange(M), np.arange(M)] = -1.0
    G[:, M + np.flatnonzero(off)] = (
        scale[off] * outer[:, :, rows[off], columns[off] - p]
    ).swapaxes(1, 2)
    h = np.zeros((B, M + len(rows)))
    h[:, M + np.flatnonzero(rows == columns)] = 1.0

    def read(x: Floats, dual: Floats) -> Answer:
        inner = np.zeros((B, p, side - p))
        inner[:, rows[off], columns[off] - p] = 2.0 * dual[:, M + np.flatnonzero(off)] / scale[off]
        W = left_basis @ torch.from_numpy(inner) @ right_basis.mT
        return W, torch.from_numpy(x).clamp_min(0.0)

    return Program(-problem.bound[0].numpy(), G, h, M, side, read)


def primal_sdp(X: Tensor, z: Tensor, alpha: Tensor) -> Program:
    problem = am.token_problem(X, z, alpha)
    d, e = problem.shape
    B, M = problem.bound.shape
    side = d + e
    rows, columns, scale = _triangle(side)
    size = len(rows)
    off = (rows < d) & (columns >= d)
    outer = torch.einsum("bma,bmc->bmac", problem.left, problem.right).numpy()
    G = np.zeros((B, M + size, size))
    G[:, :M, off] = -outer[:, :, rows[off], columns[off] - d] / scale[off]
    G[:, M + np.arange(size), np.arange(size)] = -1.0
    h = np.zeros((B, M + size))
    h[:, :M] = -problem.bound.numpy()

    def read(x: Floats, dual: Floats) -> Answer:
        W = np.zeros((B, d, e))
        W[:, rows[off], columns[off] - d] = x[:, off] / scale[off]
        return torch.from_numpy(W), torch.from_numpy(dual[:, :M]).clamp_min(0.0)

    return Program(np.where(rows == columns, 0.5, 0.0), G, h, M, side, read)


Form = Callable[[Tensor, Tensor, Tensor], Program]


def clarabel_in_a_loop(form: Form) -> Callable[[Tensor, Tensor, Tensor], Answer]:
    import clarabel

    def run(X: Tensor, z: Tensor, alpha: Tensor) -> Answer:
        program = form(X, z, alpha)
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        cones = [clarabel.NonnegativeConeT(program.M), clarabel.PSDTriangleConeT(program.side)]
        n = len(program.c)
        none, answers = sparse.csc_matrix((n, n)), []
        for G, h in zip(program.G, program.h, strict=True):
            given = (none, program.c, sparse.csc_matrix(G), h, cones, settings)
            answers.append(clarabel.DefaultSolver(*given).solve())
        return program.read(np.array([a.x for a in answers]), np.array([a.z for a in answers]))

    return run


def moreau_batched(form: Form) -> Callable[[Tensor, Tensor, Tensor], Answer]:
    import moreau

    def run(X: Tensor, z: Tensor, alpha: Tensor) -> Answer:
        program = form(X, z, alpha)
        B, m, n = program.G.shape
        used = (program.G != 0).any(0)
        pattern = sparse.csr_matrix(used)
        solver = moreau.CompiledSolver(
            n=n,
            m=m,
            P_row_offsets=np.zeros(n + 1, int),
            P_col_indices=np.zeros(0, int),
            A_row_offsets=pattern.indptr,
            A_col_indices=pattern.indices,
            cones=moreau.Cones(num_nonneg_cones=program.M, psd_dims=[program.side]),
            settings=moreau.Settings(batch_size=B, solver="ipm", device="cpu"),
        )
        solver.setup(np.zeros((B, 0)), program.G[:, used])
        answer = solver.solve(np.tile(program.c, (B, 1)), program.h)
        return program.read(np.asarray(answer.x), np.asarray(answer.z))

    return run
