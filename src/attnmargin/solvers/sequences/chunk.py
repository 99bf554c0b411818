"""Consecutive sequences of a source: the values of all their rows, and a few rows built.

Row ``(i, k, t)`` says that the representative α of query k beats token t, or ties with it where t
is selected too:

    (x_iα − x_it)ᵀ W z_ik ≥ 1   (= 0).

With ``u = W z_ik`` once per query, all values are ``x_iα·u − x_it·u``.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import final

import torch
from torch import Tensor

from attnmargin.margin.builders import representatives, token_problem
from attnmargin.margin.norms import Frobenius, scaled_norm
from attnmargin.margin.problem import MarginProblem
from attnmargin.solvers.sequences.kept import Kept

# Where rounding could change a value by more than this, differences are formed for every query.
_ROUGH = 1e-3
_EPS = float(torch.finfo(torch.float64).eps)
# So many values that are zero are looked at more closely.
_ZEROS = 1 << 12


@final
@dataclass(frozen=True)
class Chunk:
    """Some sequences, checked, in float64 on the CPU."""

    first: int  # the number of the first sequence
    X: Tensor  # (c, T, d), hidden tokens zero
    z: Tensor  # (c, K, d)
    chosen: Tensor  # bool (c, K, T)
    visible: Tensor  # bool (c, K, T)
    several: bool  # each sequence has several queries
    position: int = 0  # the number of the first query

    @property
    def size(self) -> int:
        """Number of places for rows, ``c · K · T``."""
        return self.chosen.numel()

    @cached_property
    def representative(self) -> Tensor:
        """The token that stands for the selected ones, ``(c, K)``."""
        return representatives(self.chosen, self.visible, first=self.first)

    @cached_property
    def exists(self) -> Tensor:
        """Places that are rows, bool ``(c, K, T)``."""
        own = torch.zeros_like(self.chosen)
        own.scatter_(-1, self.representative.unsqueeze(-1), True)
        return self.visible & ~own

    def by_queries(self, most: int) -> Iterator["Chunk"]:
        """Cut into parts with at most so many queries of each sequence."""
        for k in range(0, self.z.shape[1], most):
            own = slice(k, k + most)
            z, chosen, visible = (x[:, own] for x in (self.z, self.chosen, self.visible))
            place = self.position + k
            yield Chunk(self.first, self.X, z, chosen, visible, self.several, place)

    def problem(self) -> MarginProblem:
        """Build all rows."""
        return token_problem(self.X, self.z, self.chosen, self.visible)

    @cached_property
    def _centred(self) -> Tensor:
        """The tokens minus one of their sequence: a common offset must not cost accuracy."""
        first = self.representative[:, :1, None].expand(-1, -1, self.X.shape[-1])
        return self.X - self.X.gather(1, first)

    def direction(self) -> Tensor:
        """Compute ``Σ (x_iα − mean_t x_it) z_ikᵀ``, ``(d, d)``: the first step of descent."""
        seen = self.visible.sum(-1, keepdim=True)
        weight = -(self.visible.to(torch.float64) / seen.clamp_min(1))
        weight.scatter_add_(-1, self.representative.unsqueeze(-1), (seen > 0).to(weight.dtype))
        keys = weight @ self._centred
        return keys.flatten(0, 1).mT @ self.z.flatten(0, 1)

    def missing(self, W: Tensor) -> Tensor:
        """Compute what rows miss, ``(c, K, T)``; −∞ where there is none, ∞ where no W will do.

        Relative to the bound, or to ``‖a‖ ‖W‖`` if that is zero.
        """
        value = self._values(W)
        tied = self.chosen & self.exists
        missing = (1.0 - value).masked_fill_(~self.exists, -torch.inf)
        place = ((value == 0.0) & self.exists & ~tied).nonzero()[:_ZEROS]
        if len(place):
            left, right = self._factors(place)
            zero = ~left.any(-1) | ~right.any(-1)
            missing[tuple(place[zero].T)] = torch.inf
        if bool(tied.any()):
            place = tied.nonzero()
            left, right = self._factors(place)
            size = scaled_norm(left) * scaled_norm(right) * Frobenius().value(W)
            index = tuple(place.T)
            missing[index] = (value[index].abs() / size.where(size > 0, 1.0)).where(size > 0, 0.0)
        return missing

    def _values(self, W: Tensor) -> Tensor:
        """Compute the values of all rows, ``(c, K, T)``."""
        image = self.z @ W.mT
        tokens = self._centred
        if self.z.shape[1] > 1 and _product_bound(tokens, image) > _ROUGH / _EPS:
            return torch.cat([part._values(W) for part in self.by_queries(1)], 1)
        logits = image @ tokens.mT
        return logits.gather(-1, self.representative.unsqueeze(-1)) - logits

    def _factors(self, place: Tensor) -> tuple[Tensor, Tensor]:
        """Build the left and right factors of rows at places ``(m, 3)``, both ``(m, d)``."""
        i, k, t = place.T
        left = self.X[i, self.representative[i, k]] - self.X[i, t]
        return left, self.z[i, k]

    def rows(self, place: Tensor, offset: int) -> Kept:
        """Build the rows at places ``(m,)``, flat indices; their keys count from ``offset``."""
        K, T = self.chosen.shape[1:]
        i, k, t = place // (K * T), place // T % K, place % T
        left, right = self._factors(torch.stack((i, k, t), -1))
        position = k + self.position if self.several else torch.full_like(k, -1)
        names = torch.stack((i + self.first, position, self.representative[i, k], t), -1)
        return Kept(place + offset, left, right, self.chosen[i, k, t], names)


def _product_bound(tokens: Tensor, image: Tensor) -> float:
    """Bound the products of tokens and images of queries, ``d max |x| max |u|``."""
    largest = [max(float(x.max()), -float(x.min())) for x in (tokens, image)]
    return tokens.shape[-1] * largest[0] * largest[1]
