"""Projection on span(token differences) × span(queries), where attention SVMs live."""

from typing import final

import torch
from torch import Tensor

from attnmargin.margin.problem import MarginProblem

# Squared singular values below this share of the largest are rounding of float32 tokens.
_ZERO = 1e-12


@final
class TokenSpan:
    """The span of all token differences of some texts: what any token difference lives in.

    Args:
        hidden: tokens ``(n, T, d)``.
        inside: which of them are not padding, bool ``(n, T)``.
    """

    def __init__(self, hidden: Tensor, inside: Tensor) -> None:
        X = hidden.double()
        count = inside.sum(-1).clamp_min(1)[:, None, None]
        mean = (X * inside.unsqueeze(-1)).sum(1, keepdim=True) / count
        self.basis = _basis((X - mean)[inside])

    def inside(self, left: Tensor, M: Tensor) -> Tensor:
        """Project the columns of ``M (d, e)`` on the span of token differences ``(k, d)``."""
        if self._is_spanned_by(left):
            return self.basis @ (self.basis.mT @ M)
        return inside(left, M)

    def _is_spanned_by(self, left: Tensor) -> bool:
        """Test quickly, with some of the differences, whether they span all of it."""
        r = self.basis.shape[-1]
        some = left[:: max(len(left) // max(3 * r, 1), 1)] @ self.basis
        factor, failed = torch.linalg.cholesky_ex(some.mT @ some)
        if r == 0 or int(failed):
            return False
        size = factor.diagonal().square()
        return bool(size.min() > _ZERO * size.max())


def projected(W: Tensor, problem: MarginProblem, tokens: TokenSpan | None = None) -> Tensor:
    """Project ``W (d, e)`` on the span of the rows of a single problem (paper A, Lemma 1)."""
    left = problem.left[problem.mask]
    right = inside(problem.query, W.mT).mT
    return inside(left, right) if tokens is None else tokens.inside(left, right)


def inside(vectors: Tensor, M: Tensor) -> Tensor:
    """Project the columns of ``M (d, e)`` on the span of vectors ``(k, d)``."""
    if len(vectors) >= vectors.shape[-1]:
        basis = _basis(vectors)
        return basis @ (basis.mT @ M)
    size, own = torch.linalg.eigh(vectors @ vectors.mT)
    kept = size > _ZERO * size[-1]
    basis = vectors.mT @ own[:, kept] / size[kept].sqrt()
    return basis @ (basis.mT @ M)


def _basis(vectors: Tensor) -> Tensor:
    """Compute an orthonormal basis of the span of vectors ``(k, d)``, as columns."""
    size, own = torch.linalg.eigh(vectors.mT @ vectors)
    return own[:, size > _ZERO * size[-1]]
