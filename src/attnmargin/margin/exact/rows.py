"""The rows of one problem as integers; every float is one, up to a power of two."""

from dataclasses import dataclass
from fractions import Fraction
from typing import final

import torch
from torch import Tensor

from attnmargin.margin.problem import MarginProblem

Integers = list[int]


@final
@dataclass(frozen=True)
class ExactRows:
    """Rows ``⟨left_m right_mᵀ, W⟩ ≥ bound_m``, each times a power of two; W times ``scale``.

    The rows that exist, in the order of ``place``, their indices in the problem.
    """

    left: list[Integers]
    right: list[Integers]
    bound: Integers
    equality: list[bool]
    place: Integers
    power: Integers  # 2^power times an original row is the row here
    scale: Fraction  # W here is the original W times this

    def gram(self, i: int, j: int) -> int:
        """Compute ``⟨a_i, a_j⟩``."""
        left = sum(x * y for x, y in zip(self.left[i], self.left[j], strict=True))
        right = sum(x * y for x, y in zip(self.right[i], self.right[j], strict=True))
        return left * right


def exact_rows(problem: MarginProblem) -> ExactRows:
    """Convert one problem, without a batch."""
    place = problem.mask.nonzero().flatten().tolist()
    left = [_integers(row) for row in _lists(problem.left, place)]
    query = [_integers(row) for row in _lists(problem.query, range(len(problem.query)))]
    group = problem.M // max(len(query), 1)
    right = [query[m // group] for m in place]
    power = [x[1] + y[1] for x, y in zip(left, right, strict=True)]
    bound = [Fraction(b) for b in problem.bound.to(torch.float64)[place].tolist()]
    bound = [b * Fraction(2) ** k for b, k in zip(bound, power, strict=True)]
    scale = max((b.denominator for b in bound), default=1)  # powers of two
    return ExactRows(
        [x[0] for x in left],
        [y[0] for y in right],
        [int(b * scale) for b in bound],
        problem.equality[place].tolist(),
        place,
        power,
        Fraction(scale),
    )


def _lists(rows: Tensor, keep: Integers | range) -> list[list[float]]:
    everything: list[list[float]] = rows.to(torch.float64).tolist()
    return [everything[m] for m in keep]


def _integers(numbers: list[float]) -> tuple[Integers, int]:
    """Return integers and the power k with ``integers = 2^k numbers``, the smallest ones."""
    ratios = [x.as_integer_ratio() for x in numbers]
    power = max((below.bit_length() - 1 for _, below in ratios), default=0)
    whole = [(above << power) // below for above, below in ratios]
    shared = min(((x & -x).bit_length() - 1 for x in whole if x), default=0)
    return [x >> shared for x in whole], power - shared
