"""Local optimality of a selection, and the label margin that a choice of tokens gives."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import final

import torch
from torch import Tensor

from attnmargin.attention.score import high_tokens
from attnmargin.attention.selection import check_selection
from attnmargin.base.arrays import Array
from attnmargin.base.display import Summarised, shape_words, share_words
from attnmargin.base.errors import InaccurateError, InputError
from attnmargin.data.attention_data import AttentionData
from attnmargin.margin.builders import label_problem, token_problem
from attnmargin.margin.norms import Norm
from attnmargin.margin.solution import Solution, doubtful_tokens, support_tokens
from attnmargin.solvers.entry import solve

# Multipliers below this share of the largest may be zero; norms closer than this are the same.
_MULTIPLIER, _SAME = 1e-6, 1e-9


@final
@dataclass(frozen=True, eq=False, repr=False)
class Locality(Summarised):
    """Which selections are locally optimal, and which tokens prevent the others."""

    solution: Solution
    feasible: Tensor  # bool (*S,)
    undecided: Tensor  # bool (*S,): rounding hides whether it is feasible, or what pulls away
    support: Tensor  # bool (*S, n, T): the support tokens
    doubtful: Tensor  # bool (*S, n, T): tokens that may or may not be support tokens
    pull: Tensor  # bool (*S, n, T): support tokens whose score is not lower: they pull away
    local: Tensor  # bool (*S,): feasible, and nothing pulls away
    marginal: Tensor  # bool (*S,): not local, but W is the same without the tokens that pull

    def summary(self) -> dict[str, str]:
        """Return how many selections are feasible and locally optimal, by name."""
        return {
            "selections": shape_words(self.local.shape),
            "feasible": share_words(self.feasible),
            "locally optimal": share_words(self.local),
        }


def locality(data: AttentionData, selection: Array, norm: str | float | Norm = "fro") -> Locality:
    """Solve the SVM of selections and compare the scores of their support tokens.

    Args:
        data: tokens, queries, labels and head; batch ``*B``.
        selection: int ``(*S, n)`` or ``(*S, n, K)``; ``*S`` broadcasts with ``*B``, so that many
            selections of one instance are one call.
        norm: of the direction.

    Returns:
        A :class:`Locality`. Selections without a solution are not locally optimal.

    Example:
        >>> import attnmargin as am
        >>> data = am.random_data(2, 3, 4, name="locality")
        >>> am.selections.locality(data, [am.optimal_tokens(data).tolist(), [0, 0]]).local.tolist()
        [True, False]
    """
    index = check_selection(data, selection)
    solution = solve(token_problem(data.X, data.z, index, data.mask), norm)
    feasible, high = solution.feasible, high_tokens(data, index)
    support, doubtful = support_of(data, solution), doubtful_of(data, solution)
    pull = support & high
    inner = tuple(range(len(solution.problem.batch_shape), pull.ndim))
    pulled, perhaps = pull.any(inner), (doubtful & high).any(inner)
    local = feasible & ~pulled & ~perhaps
    undecided = (~feasible & ~solution.infeasible) | (feasible & ~pulled & perhaps)
    marginal = _marginal(solution, pull, feasible & pulled)
    return Locality(solution, feasible, undecided, support, doubtful, pull, local, marginal)


def support_of(data: AttentionData, solution: Solution) -> Tensor:
    """Mark the support tokens of a selection, ``(*S, n, T)`` or ``(*S, n, K, T)``."""
    return _of_data(data, solution, support_tokens)


def doubtful_of(data: AttentionData, solution: Solution) -> Tensor:
    """Mark the tokens that may or may not be support tokens, shaped the same."""
    return _of_data(data, solution, doubtful_tokens)


def _of_data(
    data: AttentionData, solution: Solution, marked: Callable[[Solution], Tensor]
) -> Tensor:
    shape = (*solution.problem.batch_shape, *data.z.shape[data.X.ndim - 3 : -1], data.T)
    if data.T == 1:
        return torch.zeros(shape, dtype=torch.bool, device=data.X.device)
    return marked(solution).reshape(shape)


def _marginal(solution: Solution, pull: Tensor, asked: Tensor) -> Tensor:
    """Find where W is the same without the tokens that pull.

    Definition 2 calls such a selection not locally optimal, but the force of these tokens is of
    the order of what the others leave, and training may stay. If every support row has a positive
    multiplier, their number is that of independent rows, and all are needed.
    """
    dual = solution.dual
    largest = dual.abs().amax(-1, keepdim=True) if dual.shape[-1] else dual.sum(-1, keepdim=True)
    held = dual.abs() > _MULTIPLIER * largest
    doubtful = asked & (solution.support & ~held).any(-1)
    if not bool(doubtful.any()):
        return torch.zeros_like(asked)
    where = doubtful if doubtful.ndim else ()
    problem = solution.problem[where]
    names = problem.names
    Q = problem.query.shape[-2]
    grouped = pull[where].reshape(*problem.batch_shape, Q, -1)
    other = names.other.expand(problem.bound.shape).reshape(*problem.batch_shape, Q, -1)
    pulling = grouped.gather(-1, other).flatten(-2)
    rest = solve(replace(problem, mask=problem.mask & ~pulling), solution.norm)
    same = rest.value >= (1.0 - _SAME) * solution.value[where]
    marginal = torch.zeros_like(asked)
    marginal[where] = same
    return marginal


def locally_optimal(
    data: AttentionData, selection: Array, norm: str | float | Norm = "fro"
) -> Tensor:
    """Decide if selections are locally optimal, bool ``(*S,)`` (paper A, Defs. 2 and 4).

    A selection is locally optimal if its SVM is feasible and every selected token has a higher
    score than its support tokens, those exactly one margin below it. Gradient descent that
    begins near such a direction stays with it (Theorem 7).

    Example:
        >>> import attnmargin as am
        >>> data = am.random_data(2, 3, 4, name="locality")
        >>> bool(am.selections.locally_optimal(data, am.optimal_tokens(data)))
        True
    """
    found = locality(data, selection, norm)
    if bool(found.undecided.any()):
        open_ones = found.solution[found.undecided] if found.undecided.ndim else found.solution
        open_ones.raise_for_status()
        count = int(open_ones.doubtful.any(-1).sum())
        raise InaccurateError(
            f"undecided: rounding hides the support tokens of {count} selections; "
            "see selections.locality(…).undecided"
        )
    return found.local


def label_margin(data: AttentionData, selection: Array, p: float = 2.0) -> Tensor:
    """Solve the ℓp-SVM of the selected tokens: ``1/‖v‖_p``, ``(*S,)``; 0 if infeasible.

    Paper B, Section 3.2: the larger it is, the better a jointly trained head can do with these
    tokens.

    Example:
        >>> import attnmargin as am
        >>> data = am.AttentionData([[[2.0], [1.0]], [[-4.0], [-0.5]]], [[1.0], [1.0]], [1, -1])
        >>> am.selections.label_margin(data, [[0, 0], [1, 1]]).tolist()
        [2.0, 0.5]
    """
    if data.y is None:
        raise InputError("data", "no labels", "labels y, which the label margin is about")
    index = check_selection(data, selection)
    mask = data.mask
    if mask is not None and mask.ndim == data.X.ndim and mask.shape[-2] == 1:
        mask = mask.squeeze(-2)
    solution = solve(label_problem(data.X, data.y, index, mask), p)
    return solution.margin.nan_to_num(nan=0.0)
