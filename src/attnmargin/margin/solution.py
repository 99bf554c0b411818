"""Solution: W, multipliers, status and certificate of a batch of margin problems."""

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self, final

import numpy as np
import torch
from torch import Tensor

from attnmargin.base.arrays import floats, integers
from attnmargin.base.display import Summarised, range_words, shape_words, tally_words
from attnmargin.base.errors import InaccurateError, InfeasibleError, InputError
from attnmargin.base.npz import read_npz, write_npz
from attnmargin.margin.certificate import CODES, STATUSES, Certificate, Status, certify
from attnmargin.margin.explain import explain_infeasible
from attnmargin.margin.norms import Norm, as_norm
from attnmargin.margin.problem import LAST_TOKEN, MarginProblem
from attnmargin.margin.support import Decision, decide_support
from attnmargin.version import VERSION

# Largest gap and violation of a solution whose tight rows can be told from the others. Where ‖W‖
# is a million times that of a single row, rounding keeps the Frobenius gap above 1e-12.
_DECIDES = 1e-9
# Singular values above this share of the largest count for the rank.
_RANK = 1e-7


@final
@dataclass(frozen=True, eq=False, repr=False)
class Solution(Summarised):
    """Solution of ``min ‖W‖`` over the rows of ``problem``; see :func:`attnmargin.solve`.

    The multipliers belong to ``min ‖W‖``: ``bᵀ dual = value`` and ``‖Aᵀ dual‖_dual = 1``, so
    ``dual`` says how fast the norm grows with each bound. Where a problem is infeasible, ``W``
    and ``value`` are NaN and ``dual`` is the Farkas proof: ``Aᵀ dual = 0``, ``bᵀ dual = 1``.
    """

    problem: MarginProblem
    norm: Norm
    W: Tensor  # (*B, d, e)
    dual: Tensor  # (*B, M)
    certificate: Certificate
    iterations: Tensor  # int (*B,)
    rank_limit: int | None = None
    decision: Decision | None = None  # which rows are tight, where an exact method found it out
    outside: int = 0  # rows that the problem leaves out, which the certificate covers too

    def summary(self) -> dict[str, str]:
        """Return status, norm, margin and size, by name."""
        rows, (d, e) = f"{self.problem.M} rows", self.problem.shape
        if self.outside:
            rows = f"{self.problem.M} of {self.problem.M + self.outside} rows"
        return {
            "status": tally_words(self.status),
            "norm": self.norm.name,
            "margin": range_words(self.margin),
            "gap": range_words(self.certificate.gap),
            "W": f"{d} × {e}, {rows}, batch {shape_words(self.problem.batch_shape)}",
        }

    @cached_property
    def code(self) -> Tensor:
        """Each status as its place in :class:`Status`, int ``(*B,)``, on the device."""
        proved = self.certificate.code
        if self.rank_limit is None:
            return proved
        low = self.rank <= self.rank_limit
        feasible = self.certificate.primal <= self.certificate.tolerance
        optimal, bad = CODES[Status.OPTIMAL], CODES[Status.INACCURATE]
        code = torch.where((proved == optimal) & ~low, bad, proved)
        return torch.where((code == bad) & feasible & low, CODES[Status.LOCAL], code)

    @cached_property
    def status(self) -> Any:
        """A :class:`Status`; for a batch a numpy array of them, shape ``*B``."""
        return STATUSES[self.code.cpu().numpy()]

    @property
    def optimal(self) -> Tensor:
        """Whether each status is optimal, bool ``(*B,)``."""
        return self.code == CODES[Status.OPTIMAL]

    @property
    def feasible(self) -> Tensor:
        """Whether W proves that some weights satisfy all rows, bool ``(*B,)``.

        W need not be optimal for that: if every row asks for a positive margin, it is enough that
        all margins of W are positive.
        """
        proof, problem = self.certificate, self.problem
        scalable = ((problem.bound > 0) & ~problem.equality | ~problem.mask).all(-1)
        return torch.isfinite(proof.upper) & ((proof.primal <= proof.tolerance) | scalable)

    @property
    def infeasible(self) -> Tensor:
        """Whether the multipliers prove that no weights satisfy all rows, bool ``(*B,)``."""
        return self.code == CODES[Status.INFEASIBLE]

    @cached_property
    def value(self) -> Tensor:
        """``‖W‖``, shape ``(*B,)``; NaN where infeasible."""
        return self.norm.value(self.W)

    @property
    def margin(self) -> Tensor:
        """``1/‖W‖``: the margin of the direction ``W/‖W‖``, shape ``(*B,)``."""
        return 1.0 / self.value

    @cached_property
    def rank(self) -> Tensor:
        """Number of singular values above 1e-7 of the largest, int ``(*B,)``; −1 if infeasible.

        At most n for n queries (paper A, Lemma 1).
        """
        unknown = torch.isnan(self.value)
        W = self.W.to(torch.float64).masked_fill(unknown[..., None, None], 0.0)
        singular = torch.linalg.svdvals(W)
        counted = (singular > _RANK * singular[..., :1]).sum(-1)
        return counted.masked_fill(unknown, -1)

    @property
    def vector(self) -> Tensor:
        """W as a vector of shape ``(*B, d)``, for problems over a vector."""
        if self.W.shape[-1] != 1:
            raise InputError("vector", f"W of shape {tuple(self.W.shape)}", "a single column")
        return self.W[..., 0]

    @cached_property
    def support(self) -> Tensor:
        """Inequality rows that hold with equality (paper A, Definition 2), bool ``(*B, M)``.

        If a problem is infeasible, the rows of the proof. Rows that are ``doubtful`` are left out.
        """
        proof = (self.dual != 0) & torch.isnan(self.value).unsqueeze(-1)
        return self.problem.mask & ((self.rows.tight & ~self.problem.equality) | proof)

    @property
    def doubtful(self) -> Tensor:
        """Inequality rows of which it is not known if they hold with equality, bool ``(*B, M)``."""
        return self.rows.doubtful & ~self.problem.equality

    @cached_property
    def rows(self) -> Decision:
        """Which rows are tight, and of which it is not known; equalities included."""
        if self.decision is not None:
            return self.decision
        finite = ~torch.isnan(self.value)
        W = self.W.where(finite[..., None, None], 0.0)
        found = decide_support(self.problem, self.norm, W, self.dual)
        known = (self.certificate.worst <= max(_DECIDES, self.certificate.tolerance)).unsqueeze(-1)
        there = finite.unsqueeze(-1)
        doubtful = found.doubtful | (~known & self.problem.mask)
        return Decision(found.tight & there & ~doubtful, doubtful & there)

    def __getitem__(self, index: Any) -> "Solution":
        """Return members of the batch, indexed like a tensor."""
        return replace(
            self,
            problem=self.problem[index],
            W=self.W[index],
            dual=self.dual[index],
            certificate=self.certificate[index],
            iterations=self.iterations[index],
            decision=None if self.decision is None else self.decision[index],
        )

    def to(self, device: torch.device | str) -> "Solution":
        """Return the same solution on a device."""
        return replace(
            self,
            problem=self.problem.to(device),
            W=self.W.to(device),
            dual=self.dual.to(device),
            certificate=self.certificate.to(device),
            iterations=self.iterations.to(device),
            decision=None if self.decision is None else self.decision.to(device),
        )

    def raise_for_status(self) -> Self:
        """Raise unless every status is optimal, or local for a rank limit; return the solution.

        The error explains the first failure.
        """
        failed = (self.code != CODES[Status.OPTIMAL]) & (self.code != CODES[Status.LOCAL])
        if not bool(failed.any()):
            return self
        index = tuple(failed.nonzero()[0].tolist())
        where = f"problem {index[0] if len(index) == 1 else index}: " if index else ""
        raise self._failure(index, STATUSES[int(self.code[index])], where)

    def _failure(self, index: tuple[int, ...], status: Status, where: str) -> Exception:
        if status == Status.INFEASIBLE:
            words = explain_infeasible(self.problem[index], self.dual[index])
            return InfeasibleError(f"{where}infeasible: {words}")
        if self.rank_limit is not None and int(self.rank[index]) > self.rank_limit:
            return InaccurateError(f"{where}no solution of rank ≤ {self.rank_limit} was found")
        names = ("gap", "primal", "dual")
        reached = ", ".join(f"{n} {float(getattr(self.certificate, n)[index]):.2g}" for n in names)
        needed = self.certificate.tolerance
        return InaccurateError(
            f"{where}inaccurate: neither an optimum nor a contradiction is proved "
            f"({reached}; optimal needs {needed:.2g} each)"
        )

    def save(self, path: str | Path) -> Path:
        """Write problem, norm, W, dual and status to an ``.npz`` file: all that a check needs.

        Rows that the problem leaves out are not in the file, only their number.
        """
        own: dict[str, Any] = {
            "W": self.W,
            "dual": self.dual,
            "iterations": self.iterations,
            "norm": self.norm.name,
            "status": np.asarray(self.status, dtype=str),
            "version": VERSION,
        }
        if self.rank_limit is not None:
            own["rank_limit"] = self.rank_limit
        if self.outside:
            own["outside"] = self.outside
        return write_npz(path, {**self.problem.arrays(), **own})

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a solution, and recompute its certificate from the numbers in the file.

        The certificate covers the rows in the file; ``outside`` says how many more there were.
        """
        arrays = read_npz(path, needs=("left", "query", "bound", "norm", "W", "dual", "status"))
        problem = MarginProblem.from_arrays(arrays)
        norm = as_norm(str(arrays["norm"]))
        W, dual = floats("W", arrays["W"]), floats("dual", arrays["dual"])
        iterations = torch.zeros(problem.batch_shape, dtype=torch.int64)
        if "iterations" in arrays:
            iterations = integers("iterations", arrays["iterations"], W)
            if iterations.shape != problem.batch_shape:
                got = f"shape {tuple(iterations.shape)}"
                raise InputError("iterations", got, f"{tuple(problem.batch_shape)}")
        limit = _count(arrays, "rank_limit") if "rank_limit" in arrays else None
        outside = _count(arrays, "outside") if "outside" in arrays else 0
        proof = certify(problem, norm, W, dual)
        return cls(problem, norm, W, dual, proof, iterations, limit, outside=outside)


def _count(arrays: dict[str, Any], name: str) -> int:
    """Check a whole number stored in a file."""
    stored = arrays[name]
    if np.shape(stored) != () or np.asarray(stored).dtype.kind not in "iu" or stored < 1:
        raise InputError(name, f"{stored!s:.80}", "a whole number of at least 1")
    return int(stored)


def support_tokens(solution: Solution) -> Tensor:
    """Find the tokens exactly one margin below the selected one (paper A, Definition 2).

    They alone determine the direction: removing all others would not change it.

    Args:
        solution: solution of a :func:`token_problem`.

    Returns:
        bool ``(*B, n, T)``, or ``(*B, n, K, T)`` with several queries.

    Example:
        >>> import attnmargin as am
        >>> problem = am.token_problem([[[2.0], [1.0], [-5.0]]], [[1.0]], [0])
        >>> am.selections.support_tokens(am.solve(problem)).tolist()
        [[False, True, False]]
    """
    return _of_tokens(solution, solution.support)


def doubtful_tokens(solution: Solution) -> Tensor:
    """Find the tokens of which it is not known if they are support tokens, shaped the same."""
    return _of_tokens(solution, solution.doubtful)


def _of_tokens(solution: Solution, marked: Tensor) -> Tensor:
    """Mark the tokens that lose in the marked rows, bool ``(*B, n, T)`` or ``(*B, n, K, T)``."""
    problem = solution.problem
    names, batch = problem.names, problem.batch_shape
    graph = bool((names.position == LAST_TOKEN).any())
    if graph or bool((names.other < 0).any()) or problem.M == 0:
        raise InputError("solution", "one without pairs of tokens", "that of a token_problem")
    Q = problem.query.shape[-2]
    rows = (*batch, Q, problem.M // Q)
    several = min(names.other.numel(), names.chosen.numel()) > 0
    T = int(max(names.other.max(), names.chosen.max())) + 1 if several else rows[-1] + 1
    count = torch.zeros(*rows[:-1], T, dtype=torch.int64, device=problem.left.device)
    other = names.other.expand(*batch, problem.M).reshape(rows)
    guards = count.scatter_add(-1, other, marked.reshape(rows).long()) > 0
    K = int(names.position.max()) + 1
    return guards.unflatten(-2, (Q // K, K)) if K > 0 else guards
