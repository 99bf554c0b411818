"""One problem as plain arrays, scaled and with a short query; and some of its rows."""

from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from torch import Tensor

from attnmargin.base.compiled import in_threads
from attnmargin.base.kernels import Floats, Ints
from attnmargin.margin.norms import scaled_norm
from attnmargin.margin.problem import MarginProblem
from attnmargin.solvers.blocks.ascent import Live, Rows, collect, values

# Lengths in this range are not scaled: their squares and products neither over- nor underflow.
_PLAIN = (1e-40, 1e40)
# Fewer rows than this do not justify a thread.
_WORTH_A_THREAD = 20_000


@final
@dataclass(frozen=True)
class Part:
    """Some rows of a problem, with the queries that they use."""

    left: Floats  # (M, d), of all rows
    rows: Ints  # (k,)
    place: Ints  # (k,): the query of each row, among those below
    query: Floats  # (q, e)

    def adjoint(self, factor: Floats) -> Floats:
        """Compute ``Σ factor_a left_m queryᵀ``, ``(d, e)``."""
        keys = np.zeros((len(self.query), self.left.shape[1]))
        collect(self.left, self.rows, self.place, factor, keys)
        return product(keys.T, self.query)

    def apply(self, W: Floats) -> Floats:
        """Compute ``left_mᵀ W query``, ``(k,)``."""
        image, out = product(self.query, W.T), np.empty(len(self.rows))

        def work(rows: Ints, place: Ints, own: Floats) -> None:
            values(self.left, image, rows, place, own)

        parts = [self.rows, self.place, out]
        in_threads(work, parts, len(out), least=_WORTH_A_THREAD)
        return out


def product(A: Floats, B: Floats) -> Floats:
    """Multiply by torch, whose threads the library controls; numpy's spin beside busy processes."""
    return (torch.from_numpy(A) @ torch.from_numpy(B)).numpy()


@final
@dataclass(frozen=True)
class Scaled:
    """A problem in float64: rows, scales and what they mean for the original."""

    P: Rows
    there: Ints  # rows that exist and are not zero
    scale: Floats  # (M,): a row of the original is this times the scaled one
    unit: float  # W of the original is this times the scaled one
    basis: Floats | None  # (e, r): orthonormal, the queries are coordinates in it
    impossible: int  # a row 0 ≥ b that no W satisfies, or −1

    @property
    def per(self) -> int:
        """Rows of each query."""
        return len(self.P.left) // max(len(self.P.query), 1)

    @property
    def width(self) -> int:
        """Length e of the queries as they were given."""
        return (self.P.query if self.basis is None else self.basis.T).shape[1]

    def squares(self, rows: Ints) -> Floats:
        """Compute ``‖left_m‖² ‖query‖²`` of some rows, the diagonal of their Gram matrix."""
        return self.P.weight[rows] * self.P.size[rows // self.per]

    def part(self, rows: Ints) -> Part:
        """Select rows, in increasing order."""
        owner, place = np.unique(rows // self.per, return_inverse=True)
        return Part(self.P.left, rows, place, self.P.query[owner])

    def blocks(self, rows: Ints) -> Live:
        """Group rows, in increasing order, by query."""
        owner, first = np.unique(rows // self.per, return_index=True)
        return Live(rows, np.append(first, len(rows)), owner)

    def original(self, W: Floats) -> Floats:
        """Return W for the queries and bounds as they were given."""
        return self.unit * (W if self.basis is None else product(W, self.basis.T))


def scaled(problem: MarginProblem) -> Scaled:
    """Prepare one problem, in float64 and without a batch dimension."""
    left, query, bound = problem.left, problem.query, problem.bound
    long, wide = scaled_norm(left), scaled_norm(query)
    each = wide.repeat_interleave(problem.M // len(query))
    zero = problem.mask & ((long == 0) | (each == 0))
    wrong = zero & ((bound > 0) | (problem.equality & (bound != 0)))
    impossible = int(wrong.nonzero()[0]) if bool(wrong.any()) else -1
    by_left, by_query = (_powers(x) for x in (long, wide))
    if by_left is not None:
        left, long = left / by_left.unsqueeze(-1), long / by_left
    if by_query is not None:
        query, wide = query / by_query.unsqueeze(-1), wide / by_query
    scale = torch.ones_like(bound) if by_left is None else by_left
    if by_query is not None:
        scale = scale * by_query.repeat_interleave(problem.M // len(query))
    query, basis = _coordinates(query)
    bound = bound / scale
    unit = _powers(bound.abs().amax()) if problem.M else None
    if unit is not None:
        bound = bound / unit
    rows = (left, query, bound, problem.equality, long.square(), wide.square())
    P = Rows(*(x.contiguous().numpy() for x in rows))
    there = (problem.mask & ~zero).nonzero().flatten().numpy()
    return Scaled(P, there, scale.numpy(), 1.0 if unit is None else float(unit), basis, impossible)


def _powers(length: Tensor) -> Tensor | None:
    """Return powers of two near some lengths, or None if none is very long or short."""
    used = length[length > 0]
    if not len(used) or bool(((used > _PLAIN[0]) & (used < _PLAIN[1])).all()):
        return None
    near = torch.ldexp(torch.ones_like(length), length.frexp().exponent)
    return near.where(length > 0, 1.0)


def _coordinates(query: Tensor) -> tuple[Tensor, Floats | None]:
    """Write few long queries in an orthonormal basis: W lives in their span (paper A, Lemma 1)."""
    if len(query) >= query.shape[-1]:
        return query, None
    basis, upper = torch.linalg.qr(query.mT)
    return upper.mT, basis.contiguous().numpy()
