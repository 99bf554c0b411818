"""The reference for every norm: cvxpy with Clarabel, one problem at a time, exact cones.

It is slow and shares no code with the fast methods, so that they can be compared with it.
"""

import warnings
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from attnmargin.base.errors import MissingPackageError
from attnmargin.margin.norms import ColumnMax, Lp, Max, Norm, Nuclear, RowMax, Spectral, Sum
from attnmargin.margin.problem import MarginProblem
from attnmargin.solvers.frobenius.method import Answer, flatten
from attnmargin.solvers.outcome import INFEASIBLE, SOLVED, STALLED

Floats = NDArray[np.float64]

# As tight as is reasonable to ask of Clarabel; the certificate says what it reached.
_PRECISE = {"tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-12}
_SOLVED = ("optimal", "optimal_inaccurate")
_IMPOSSIBLE = ("infeasible", "infeasible_inaccurate")


def solve_reference(problem: MarginProblem, norm: Norm) -> Answer:
    """Solve in float64; return multipliers ``(*B, M)``, W, outcome and iterations."""
    for package in ("cvxpy", "clarabel"):
        if find_spec(package) is None:
            raise MissingPackageError("method 'reference'", "attnmargin[verify]")
    flat = flatten(problem)
    batch, B = problem.batch_shape, problem.batch_shape.numel()
    dual, W = torch.zeros(B, problem.M).double(), torch.zeros(B, *problem.shape).double()
    outcome, iterations = torch.zeros(B).long(), torch.zeros(B).long()
    for i in range(B):
        one = _Dense(flat[i], norm)
        one.solve()
        dual[i, one.place], W[i] = torch.from_numpy(one.dual), torch.from_numpy(one.W)
        outcome[i], iterations[i] = one.outcome, one.iterations
    device = problem.left.device
    dual, W = dual.reshape(*batch, problem.M), W.reshape(*batch, *problem.shape)
    outcome, iterations = outcome.reshape(batch), iterations.reshape(batch)
    return dual.to(device), W.to(device), outcome.to(device), iterations.to(device)


class _Dense:
    """One problem with dense rows."""

    def __init__(self, problem: MarginProblem, norm: Norm) -> None:
        self.norm, self.shape = norm, problem.shape
        self.place = problem.mask.cpu().nonzero()[:, 0]
        left, right = (x.cpu()[self.place].numpy() for x in (problem.left, problem.right))
        self.A: Floats = np.einsum("ma,mb->mab", left, right).reshape(len(left), -1)
        self.b: Floats = problem.bound.cpu()[self.place].numpy()
        self.equality = problem.equality.cpu()[self.place].numpy()
        self.dual, self.W = np.zeros(len(self.b)), np.zeros(self.shape)
        self.outcome, self.iterations = SOLVED, 0

    def solve(self) -> None:
        """Set dual, W, outcome and iterations."""
        if not ((self.b > 0.0) | (self.equality & (self.b != 0.0))).any():
            return  # W = 0
        cvxpy: Any = import_module("cvxpy")
        W = cvxpy.Variable(self.shape)
        rows = self.A @ cvxpy.vec(W, order="C")
        greater = rows[~self.equality] >= self.b[~self.equality]
        equal = rows[self.equality] == self.b[self.equality]
        status = self._run(cvxpy.Minimize(self._measure(W)), [greater, equal])
        if status in _IMPOSSIBLE:
            self._prove()
        elif status in _SOLVED:
            self.W = W.value
            if greater.size:
                self.dual[~self.equality] = np.maximum(greater.dual_value, 0.0)
            if equal.size:
                self.dual[self.equality] = -equal.dual_value
        else:
            self.outcome = STALLED

    def _measure(self, W: Any) -> Any:
        """Express the norm in cvxpy, with exact power cones for every p."""
        cvxpy: Any = import_module("cvxpy")
        measures: dict[type[Norm], Any] = {
            Nuclear: cvxpy.normNuc,
            Spectral: cvxpy.sigma_max,
            Max: lambda W: cvxpy.max(cvxpy.abs(W)),
            Sum: lambda W: cvxpy.sum(cvxpy.abs(W)),
            RowMax: lambda W: cvxpy.max(cvxpy.norm(W, 2, axis=1)),
            ColumnMax: lambda W: cvxpy.max(cvxpy.norm(W, 2, axis=0)),
        }
        if type(self.norm) in measures:
            return measures[type(self.norm)](W)
        p = self.norm.p if isinstance(self.norm, Lp) else 2.0
        entries = cvxpy.vec(W, order="C")
        return cvxpy.norm(entries, 2) if p == 2.0 else cvxpy.pnorm(entries, p, approx=False)

    def _run(self, goal: Any, constraints: list[Any]) -> str:
        """Solve a cvxpy problem without its empty constraints; return its status."""
        cvxpy: Any = import_module("cvxpy")
        program = cvxpy.Problem(goal, [row for row in constraints if row.size])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                program.solve("CLARABEL", **_PRECISE)
            except cvxpy.SolverError:
                return "failed"
        self.iterations += program.solver_stats.num_iters or 0
        return str(program.status)

    def _prove(self) -> None:
        """Find the Farkas multipliers of least weighted sum."""
        cvxpy: Any = import_module("cvxpy")
        dual = cvxpy.Variable(len(self.b))
        size = np.linalg.norm(self.A, axis=1)
        constraints = [dual[~self.equality] >= 0, self.A.T @ dual == 0, self.b @ dual == 1]
        status = self._run(cvxpy.Minimize(size @ cvxpy.abs(dual)), constraints)
        self.outcome = INFEASIBLE if status in _SOLVED else STALLED
        if self.outcome == INFEASIBLE:
            self.dual = np.where(self.equality, dual.value, np.maximum(dual.value, 0.0))
