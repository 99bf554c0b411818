"""Instances with planted answers, and second implementations to compare with."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import clarabel
import numpy as np
import torch
from scipy import sparse
from scipy.optimize import linprog
from torch import Tensor

import attnmargin as am
from attnmargin.margin.norms import as_norm

SHAPES = [(2, 3, 2), (5, 5, 5), (6, 8, 10), (5, 5, 20), (20, 5, 40)]
MORE_SHAPES = [*SHAPES, (10, 5, 15), (5, 15, 12)]


@dataclass(frozen=True)
class Planted:
    """A problem whose solution is known, in the Frobenius norm unless said otherwise."""

    problem: am.MarginProblem
    W: Tensor
    dual: Tensor  # W = Aᵀ dual in the Frobenius norm


def planted_optimum(
    M: int, d: int, e: int, seed: int, equalities: int = 0, scale: float = 1.0
) -> Planted:
    """Choose multipliers, so W, then bounds that make the pair satisfy the KKT conditions."""
    rng = np.random.default_rng(seed)
    left = torch.from_numpy(rng.standard_normal((M, d))) * scale
    right = torch.from_numpy(rng.standard_normal((M, e)))
    equality = torch.arange(M) < equalities
    dual = torch.from_numpy(rng.exponential(size=M) * (rng.random(M) < 0.5))
    dual = torch.where(equality, torch.from_numpy(rng.standard_normal(M)), dual)
    W = torch.einsum("m,md,me->de", dual, left, right)
    rows = torch.einsum("md,de,me->m", left, W, right)
    slack = torch.from_numpy(rng.exponential(size=M)) * scale**2
    bound = torch.where((dual > 0) | equality, rows, rows - slack)
    return Planted(am.margin_problem(left, right, bound, equality), W, dual)


def planted_in(
    norm: str | float, M: int, d: int, e: int, seed: int, equalities: int = 0
) -> Planted:
    """Choose multipliers, so V, then a W that V touches, and bounds that make both optimal.

    W is any of its kind: in norms that are not strictly convex, others may be as short.
    """
    plain = planted_optimum(M, d, e, seed, equalities).problem
    rng = np.random.default_rng([seed, 1])
    dual = torch.from_numpy(rng.exponential(size=M) * (rng.random(M) < 0.5))
    dual = torch.where(plain.equality, torch.from_numpy(rng.standard_normal(M)), dual)
    W = as_norm(norm).steepest(plain.adjoint(dual))
    rows, slack = plain.apply(W), torch.from_numpy(rng.exponential(size=M))
    bound = torch.where((dual > 0) | plain.equality, rows, rows - slack)
    return Planted(am.margin_problem(plain.left, plain.right, bound, plain.equality), W, dual)


def planted_contradiction(
    rows: int, others: int, d: int, seed: int
) -> tuple[am.MarginProblem, Tensor]:
    """Rows that a positive combination adds up to 0 ≥ positive, among harmless others.

    Returns the problem and the combination; the others have fresh directions, so that the
    combination is the only proof.
    """
    rng = np.random.default_rng(seed)
    weight = rng.uniform(0.5, 2.0, rows)
    left = rng.standard_normal((rows, d))
    left[-1] = -(weight[:-1, None] * left[:-1]).sum(0) / weight[-1]
    right = np.tile(rng.standard_normal(2), (rows, 1))
    left = np.concatenate([left, rng.standard_normal((others, d))])
    right = np.concatenate([right, rng.standard_normal((others, 2))])
    order = rng.permutation(rows + others)
    dual = np.concatenate([weight, np.zeros(others)])[order]
    return am.margin_problem(left[order], right[order]), torch.from_numpy(dual)


def dense_rows(problem: am.MarginProblem) -> tuple[Any, Any, Any]:
    """Existing rows of a single problem as a matrix ``(m, d·e)``, bounds, equality."""
    A = torch.einsum("md,me->mde", problem.left, problem.right).flatten(1)
    keep = problem.mask
    return A[keep].numpy(), problem.bound[keep].numpy(), problem.equality[keep].numpy()


def clarabel_value(problem: am.MarginProblem) -> float | None:
    """Least Frobenius norm by an interior-point solver; None if infeasible.

    The primal problem where W is small, else the dual on the dense Gram matrix.
    """
    A, b, equality = dense_rows(problem)
    order = np.argsort(~equality, kind="stable")
    A, b, rows = A[order], b[order], int(equality.sum())
    if A.shape[1] > 500:
        cones = [clarabel.NonnegativeConeT(len(b) - rows)]
        choose = sparse.eye(len(b), format="csc")[rows:]
        answer = _clarabel(A @ A.T, -b, -choose, np.zeros(len(b) - rows), cones)
        return None if answer is None else float(np.sqrt(b @ answer))
    cones = [clarabel.ZeroConeT(rows), clarabel.NonnegativeConeT(len(b) - rows)]
    answer = _clarabel(np.eye(A.shape[1]), np.zeros(A.shape[1]), -A, -b, cones)
    return None if answer is None else float(np.linalg.norm(answer))


def _clarabel(P: Any, q: Any, A: Any, b: Any, cones: list[Any]) -> Any:
    """min ½ xᵀPx + qᵀx with b − Ax in the cones; None if infeasible or unbounded."""
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    data = (sparse.csc_matrix(np.triu(P)), q, sparse.csc_matrix(A), b, cones, settings)
    answer = clarabel.DefaultSolver(*data).solve()
    return None if "Infeasible" in str(answer.status) else np.array(answer.x)


def feasible_by_linear_program(problem: am.MarginProblem) -> bool:
    """Feasibility by HiGHS, on rows scaled to unit length."""
    A, b, equality = dense_rows(problem)
    length = np.linalg.norm(A, axis=1)
    length[length == 0] = 1.0
    A, b = A / length[:, None], b / length
    rows = {"A_ub": -A[~equality], "b_ub": -b[~equality]}
    if equality.any():
        rows |= {"A_eq": A[equality], "b_eq": b[equality]}
    answer = linprog(np.zeros(A.shape[1]), **rows, bounds=(None, None))
    assert answer.status in (0, 2)
    return bool(answer.status == 0)


def optimal_problem(data: am.AttentionData) -> am.MarginProblem:
    """The attention SVM of the optimal tokens."""
    return am.token_problem(data.X, data.z, am.optimal_tokens(data), data.mask)


def random_problem(
    shape: tuple[int, int, int], trials: int, distribution: str, self_attention: bool
) -> am.MarginProblem:
    """Optimal tokens of the instances that the tests of every norm share."""
    data = am.random_data(
        *shape,
        trials=trials,
        name="thousand",
        distribution=distribution,
        self_attention=self_attention,
    )
    return optimal_problem(data)


def tokens_and_sets(seed: int, trials: int = 6) -> am.MarginProblem:
    """Tokens and sets: equality rows, masked rows, some infeasible members."""
    rng = np.random.default_rng(seed)
    X, z = rng.standard_normal((trials, 4, 4, 3)), rng.standard_normal((trials, 4, 3))
    chosen = np.zeros((trials, 4, 4), bool)
    chosen[..., 0] = True
    chosen[::2, 0, 1] = True
    mask = np.ones((trials, 4, 4), bool)
    mask[:, 1, 3] = False
    return am.token_problem(X, z, chosen, mask)


UNIT = [[1.0, 0.0], [0.0, 1.0]]


def _hard_inputs() -> dict[str, tuple[Callable[[], am.MarginProblem], str]]:
    rng = np.random.default_rng(7)
    X, z = rng.standard_normal((3, 4, 6)), rng.standard_normal((3, 6))
    alpha = [0, 1, 2]
    twins = X.copy()
    twins[0, 2], twins[1, 3] = twins[0, 1], twins[1, 0]
    clash = X.copy()
    clash[0, 3] = clash[0, 0]
    line = X[:, :1] * np.array([3.0, 2.0, 1.0, -1.0])[None, :, None]
    cold = z.copy()
    cold[1] = 0.0
    hidden = np.ones((3, 4), bool)
    hidden[1] = False
    return {
        "duplicate losers": (lambda: am.token_problem(twins, z, alpha), "optimal"),
        "duplicate of the winner": (lambda: am.token_problem(clash, z, alpha), "infeasible"),
        "collinear, end chosen": (lambda: am.token_problem(line, z, [0, 0, 0]), "optimal"),
        "collinear, middle chosen": (lambda: am.token_problem(line, z, [1, 1, 1]), "infeasible"),
        "zero query": (lambda: am.token_problem(X, cold, alpha), "infeasible"),
        "one token": (lambda: am.token_problem(X[:, :1], z, [0, 0, 0]), "optimal"),
        "one sequence": (lambda: am.token_problem(X[:1], z[:1], [0]), "optimal"),
        "width one": (lambda: am.token_problem([[[2.0], [1.0]]], [[1.0]], [0]), "optimal"),
        "width one, clash": (
            lambda: am.token_problem([[[2.0], [1.0], [3.0]]], [[1.0]], [0]),
            "infeasible",
        ),
        "tiny": (lambda: am.token_problem(1e-6 * X, 1e-6 * z, alpha), "optimal"),
        "huge": (lambda: am.token_problem(1e6 * X, 1e6 * z, alpha), "optimal"),
        "mixed scales": (
            lambda: am.token_problem(X * 10.0 ** np.array([-6, 0, 6])[:, None, None], z, alpha),
            "optimal",
        ),
        "hidden sequence": (lambda: am.token_problem(X, z, alpha, hidden), "optimal"),
        "200 equal rows": (
            lambda: am.token_problem(
                [np.concatenate([X[0, :1], np.tile(X[0, 1], (200, 1))])], z[:1], [0]
            ),
            "optimal",
        ),
        "200 equal sequences": (
            lambda: am.token_problem(
                np.tile(X[:1], (200, 1, 1)), np.tile(z[:1], (200, 1)), [0] * 200
            ),
            "optimal",
        ),
        "everything selected": (
            lambda: am.token_problem(X, z, np.ones((3, 4), bool)),
            "optimal",
        ),
    }


HARD = _hard_inputs()


def plain_problem(scale: float) -> am.MarginProblem:
    rng = np.random.default_rng(7)
    X, z = rng.standard_normal((3, 4, 6)), rng.standard_normal((3, 6))
    return am.token_problem(scale * X, scale * z, [0, 1, 2])
