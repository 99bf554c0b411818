"""One problem in many norms: the margin of each solution, and of given weights, in every norm."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import torch
from torch import Tensor

from attnmargin.base.arrays import Array, floats
from attnmargin.base.display import Summarised, range_words
from attnmargin.base.errors import InputError
from attnmargin.margin.norms import NAMED, Norm, as_norm
from attnmargin.margin.problem import MarginProblem
from attnmargin.margin.solution import Solution
from attnmargin.solvers.entry import solve


@final
@dataclass(frozen=True, eq=False, repr=False)
class Margins(Summarised):
    """Margins in N norms, each over the largest one possible; see :func:`attnmargin.margins`."""

    norms: tuple[Norm, ...]
    solutions: tuple[Solution, ...]  # one per norm
    best: Tensor  # (*B, N), the largest margin in each norm; NaN where infeasible
    ratios: Tensor  # (*B, N, N): [..., i, j] of the solution in norm i, measured in norm j
    given: Tensor | None  # (*L, *B, N) of the given W, measured in each norm

    def summary(self) -> dict[str, str]:
        """Return for each norm its largest margin, and what share of it the others reach."""
        return {norm.name: self._words(j) for j, norm in enumerate(self.norms)}

    def _words(self, j: int) -> str:
        others = [i for i in range(len(self.norms)) if i != j]
        words = [f"margin {range_words(self.best[..., j])}"]
        if others:
            words.append(f"other solutions reach {range_words(self.ratios[..., others, j])} of it")
        if self.given is not None:
            words.append(f"W reaches {range_words(self.given[..., j])}")
        return "; ".join(words)

    @property
    def optimal(self) -> Tensor:
        """Whether every norm is solved, bool ``(*B,)``."""
        return torch.stack([solution.optimal for solution in self.solutions]).all(0)

    def __getitem__(self, index: Any) -> "Margins":
        """Return members of the batch, without the given W."""
        solutions = tuple(solution[index] for solution in self.solutions)
        return Margins(self.norms, solutions, self.best[index], self.ratios[index], None)


def margins(
    problem: MarginProblem,
    W: Array | None = None,
    *,
    norms: Sequence[str | float | Norm] | None = None,
) -> Margins:
    """Measure the margin of each norm's solution, and of W, in every norm.

        margin of W in a norm  =  min_i ⟨a_i, W⟩ / (b_i ‖W‖)   over inequalities with b_i > 0

    Every entry is divided by the largest margin possible in the norm, ``1 / value`` of its
    solution: an optimiser that ends in the direction of a norm reaches one there. W may be a
    trajectory. Early in training a margin is negative, since some row still has the wrong sign.
    Equalities count for the solutions; a given W that violates them may exceed one.

    Args:
        problem: rows with batch ``*B``.
        W: ``(*L, *B, d, e)``, with any leading dimensions, such as the steps of a run.
        norms: as in :func:`solve`; by default all that have a name.

    Returns:
        A :class:`Margins`; NaN where the problem is infeasible or W is zero.

    Example:
        >>> import attnmargin as am
        >>> problem = am.margin_problem([[3.0, 4.0]], [[1.0]])
        >>> found = am.margins(problem, [[1.0], [0.0]], norms=["fro", "max", "sum"])
        >>> [round(x, 3) for x in found.best.tolist()]
        [5.0, 7.0, 4.0]
        >>> [[round(x, 3) for x in row] for row in found.ratios.tolist()]
        [[1.0, 0.893, 0.893], [0.99, 1.0, 0.875], [0.8, 0.571, 1.0]]
        >>> [round(x, 3) for x in found.given.tolist()]
        [0.6, 0.429, 0.75]
    """
    chosen = tuple(map(as_norm, NAMED if norms is None else norms))
    if not chosen:
        raise InputError("norms", "none", "at least one norm")
    solutions = tuple(solve(problem, norm) for norm in chosen)
    best = torch.stack([solution.margin.to(torch.float64) for solution in solutions], -1)
    problem = problem.as_dtype(torch.float64)
    own = [_measured(problem, s.W.to(torch.float64), chosen) for s in solutions]
    ratios = torch.stack(own, -2) / best.unsqueeze(-2)
    given = None if W is None else _measured(problem, _weights(W, problem), chosen) / best
    return Margins(chosen, solutions, best, ratios, given)


def _weights(W: Array, problem: MarginProblem) -> Tensor:
    """Check given weights ``(*L, *B, d, e)``."""
    given = floats("W", W).to(problem.left.device, torch.float64)
    needed = (*problem.batch_shape, *problem.shape)
    if tuple(given.shape[-len(needed) :]) != needed:
        words = ", ".join(map(str, needed))
        raise InputError(
            "W", f"shape {tuple(given.shape)}", f"(*L, {words}), as the problem has it"
        )
    return given


def _measured(problem: MarginProblem, W: Tensor, norms: Sequence[Norm]) -> Tensor:
    """Compute the margin of W ``(*L, *B, d, e)`` in each norm, ``(*L, *B, N)``."""
    counts = problem.mask & ~problem.equality & (problem.bound > 0)
    shares = problem.apply(W) / problem.bound.where(counts, 1.0)
    least = shares.where(counts, torch.inf).amin(-1)
    return torch.stack([least / norm.value(W) for norm in norms], -1)
