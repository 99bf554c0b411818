"""The Gram matrix of rows that hold, factored; and used again while few of them change."""

from typing import final

import numpy as np
import torch
from torch import Tensor

from attnmargin.base.kernels import Floats, Ints
from attnmargin.solvers.blocks.rows import Part

# A factor serves until so many rows differ from its own. Solutions are refined so many times, and
# are refused if they leave a larger share of the residual.
_DIFFER, _REFINEMENTS, _LEFT = 64, 2, 1e-6


@final
class Factored:
    """Solve ``K x = r`` for rows that are nearly those of a factored Gram matrix.

    With rows J factored, R of them gone and A new, x solves, bordered by C = [K_JA, E_R],

        [ K_JJ  C ] [ x_J    ]   [ r_J    ]         D = [ K_AA  0 ]
        [ Cᵀ    D ] [ x_A, μ ] = [ r_A, 0 ],            [ 0     0 ],

    in which μ stands for the values of the rows that are gone.
    """

    def __init__(self, part: Part) -> None:
        self._part = part
        own = _factors(part, np.arange(len(part.rows)))
        factor, failed = torch.linalg.cholesky_ex(_gram(own, own))
        self._factor, self._failed = factor, bool(failed)

    def fits(self, rows: Ints) -> bool:
        """Say whether few rows differ."""
        return len(np.setxor1d(self._part.rows, rows, assume_unique=True)) <= _DIFFER

    def solved(self, part: Part, right: Floats) -> Floats | None:
        """Solve for the rows of ``part``; None if that cannot be done well."""
        if self._failed:
            return None
        border = _Border(self._part, self._factor, part)
        x = np.zeros_like(right)
        rest = right
        for _ in range(1 + _REFINEMENTS):
            x = x + border.solved(rest)
            rest = right - part.apply(part.adjoint(x))
        good = np.linalg.norm(rest) <= _LEFT * np.linalg.norm(right)
        return x if good else None


@final
class _Border:
    """The bordered system for some rows, eliminated down to its corner."""

    def __init__(self, old: Part, factor: Tensor, new: Part) -> None:
        _, self._own, self._other = np.intersect1d(
            old.rows, new.rows, assume_unique=True, return_indices=True
        )
        gone = np.setdiff1d(np.arange(len(old.rows)), self._own)
        self._added = np.setdiff1d(np.arange(len(new.rows)), self._other)
        self._factor, a = factor, len(self._added)
        added = _factors(new, self._added)
        columns = factor.new_zeros(len(old.rows), a + len(gone))
        columns[:, :a] = _gram(_factors(old, np.arange(len(old.rows))), added)
        columns[torch.from_numpy(gone), torch.arange(a, a + len(gone))] = 1.0
        self._half = torch.linalg.solve_triangular(factor, columns, upper=False)
        corner = -self._half.mT @ self._half
        corner[:a, :a] += _gram(added, added)
        self._corner = torch.linalg.lu_factor_ex(corner)[:2]

    def solved(self, right: Floats) -> Floats:
        r, a = torch.from_numpy(right), len(self._added)
        inner = r.new_zeros(len(self._factor), 1)
        inner[self._own, 0] = r[self._other]
        inner = torch.linalg.solve_triangular(self._factor, inner, upper=False)
        outer = -self._half.mT @ inner
        outer[:a, 0] += r[self._added]
        if len(outer):
            outer = torch.linalg.lu_solve(*self._corner, outer)
        inner = torch.linalg.solve_triangular(
            self._factor.mT, inner - self._half @ outer, upper=True
        )
        x = torch.empty_like(r)
        x[self._other], x[self._added] = inner[self._own, 0], outer[:a, 0]
        return x.numpy()


def _factors(part: Part, places: Ints) -> tuple[Tensor, Tensor]:
    """Return left vectors and queries of some rows of a part."""
    return (
        torch.from_numpy(part.left[part.rows[places]]),
        torch.from_numpy(part.query[part.place[places]]),
    )


def _gram(one: tuple[Tensor, Tensor], other: tuple[Tensor, Tensor]) -> Tensor:
    return (one[0] @ other[0].mT).mul_(one[1] @ other[1].mT)
