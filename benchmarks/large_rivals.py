"""The rivals on one large Frobenius problem, each with the form that suits it best.

Each takes a problem and returns W, not necessarily feasible; accuracy is judged afterwards. Ours
returns its solution, with the certificate.
"""

from importlib import import_module
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

import attnmargin as am


def features(problem: am.MarginProblem) -> NDArray[Any]:
    """Rows as vectors ``left_m ⊗ query``, ``(M, d e)``."""
    rows = problem.left.unsqueeze(-1) * problem.right.unsqueeze(-2)
    return rows.flatten(-2).numpy()


def gram(problem: am.MarginProblem) -> NDArray[Any]:
    """Inner products of the rows, ``(M, M)``."""
    right = problem.right
    return ((problem.left @ problem.left.mT) * (right @ right.mT)).numpy()


def ours(problem: am.MarginProblem) -> am.Solution:
    return am.solve(problem)


def linear_svc(problem: am.MarginProblem) -> Tensor:
    """Hinge loss with a large C; every other row is flipped, so that there are two classes."""
    svm: Any = import_module("sklearn.svm")
    rows = features(problem)
    signs = np.where(np.arange(len(rows)) % 2, 1.0, -1.0)
    model = svm.LinearSVC(C=1e5, loss="hinge", tol=1e-6, fit_intercept=False, max_iter=100_000)
    model.fit(rows * signs[:, None], signs)
    return torch.from_numpy(model.coef_.reshape(problem.shape))


def kernel_svc(problem: am.MarginProblem) -> Tensor:
    """A precomputed kernel; every row stands with both signs, so that the intercept is zero."""
    svm: Any = import_module("sklearn.svm")
    K, signs = gram(problem), np.repeat([1.0, -1.0], problem.M)
    both = np.block([[K, -K], [-K, K]])
    model = svm.SVC(C=1e5, kernel="precomputed", tol=1e-6)
    model.fit(both, signs)
    dual = np.zeros(2 * problem.M)
    dual[model.support_] = np.abs(model.dual_coef_[0])
    return problem.adjoint(torch.from_numpy(dual[: problem.M] + dual[problem.M :]))


def conic(solver: str, **options: Any) -> Any:
    """A package of cvxpy on the dual, ``min ½ λᵀ K λ − 1ᵀλ`` over λ ≥ 0, with a factor of K."""

    def run(problem: am.MarginProblem) -> Tensor:
        cvxpy: Any = import_module("cvxpy")
        dual = cvxpy.Variable(problem.M, nonneg=True)
        rows = features(problem)
        goal = cvxpy.Minimize(0.5 * cvxpy.sum_squares(rows.T @ dual) - cvxpy.sum(dual))
        cvxpy.Problem(goal).solve(solver=solver, **options)
        return problem.adjoint(torch.from_numpy(np.maximum(dual.value, 0.0)))

    return run


def quadratic(name: str) -> Any:
    """A package for quadratic programs on the same dual, with its Gram matrix."""

    def run(problem: am.MarginProblem) -> Tensor:
        K, M = gram(problem), problem.M
        dual = {"daqp": _daqp, "piqp": _piqp, "proxqp": _proxqp}[name](K, M)
        return problem.adjoint(torch.from_numpy(np.maximum(dual, 0.0)))

    return run


def pdlp(problem: am.MarginProblem) -> Tensor:
    """The first-order method of OR-tools on the primal, ``min ½ ‖W‖²``, with dense rows."""
    own: Any = import_module("ortools.pdlp.python.pdlp")
    options: Any = import_module("ortools.pdlp.solvers_pb2")
    rows = features(problem)
    M, size = rows.shape
    program = own.QuadraticProgram()
    program.resize_and_initialize(size, M)
    program.set_objective_matrix_diagonal(np.ones(size))
    program.constraint_matrix = sparse.csc_matrix(rows)
    program.constraint_lower_bounds = np.ones(M)
    program.constraint_upper_bounds = np.full(M, np.inf)
    program.variable_lower_bounds = np.full(size, -np.inf)
    program.variable_upper_bounds = np.full(size, np.inf)
    settings = options.PrimalDualHybridGradientParams(num_threads=2)
    goal = settings.termination_criteria.simple_optimality_criteria
    goal.eps_optimal_relative = goal.eps_optimal_absolute = 1e-8
    found = own.primal_dual_hybrid_gradient(program, settings)
    return torch.tensor(found.primal_solution.reshape(problem.shape))


def _daqp(K: NDArray[Any], M: int) -> NDArray[Any]:
    daqp: Any = import_module("daqp")
    sense = np.zeros(M, np.int32)
    found: NDArray[Any] = daqp.solve(
        K, -np.ones(M), np.zeros((0, M)), np.full(M, 1e30), np.zeros(M), sense
    )[0]
    return found


def _piqp(K: NDArray[Any], M: int) -> NDArray[Any]:
    piqp: Any = import_module("piqp")
    solver = piqp.DenseSolver()
    solver.settings.eps_abs = solver.settings.eps_rel = 1e-10
    solver.setup(K, -np.ones(M), x_l=np.zeros(M))
    solver.solve()
    found: NDArray[Any] = solver.result.x
    return found


def _proxqp(K: NDArray[Any], M: int) -> NDArray[Any]:
    dense: Any = import_module("proxsuite").proxqp.dense
    found: NDArray[Any] = dense.solve(
        H=K, g=-np.ones(M), C=np.eye(M), l=np.zeros(M), u=np.full(M, 1e20), eps_abs=1e-9
    ).x
    return found
