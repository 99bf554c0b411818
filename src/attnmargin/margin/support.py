"""Which rows of a solution are tight, where more than rounding decides it.

A small gap alone does not say. With ``1/p + 1/q = 1`` the solution in the ℓp norm is
``W ∝ sign(V) |V|^{q−1}``, ``V = Aᵀλ``: an entry of 0.1 has, for p = 10, a force of 1e-9, and an
entry that is wrong by a tenth of that changes the norm by less than 1e-10. What decides is whether
every row is clearly held (λ > 0) or clearly slack, whether W follows from the held rows alone, and
whether these are far from dependent.
"""

import math
from dataclasses import dataclass
from typing import Any, final

import torch
from torch import Tensor

from attnmargin.base.arrays import tiny
from attnmargin.base.compiled import one_thread
from attnmargin.margin.norms import Frobenius, Lp, Norm, scaled_norm
from attnmargin.margin.problem import MarginProblem

# Units in the last place of |a|ᵀ|W| within which the value of a row is its bound.
_ROUNDING = 64
# A row is clear when its multiplier and its slack, each relative, differ by this factor.
_CLEAR = 100.0
# Rounding above this share of the bound could hide a slack.
_SHARP = 1e-12
# A row this close to its bound is compared with the condition of the held rows.
_CLOSE = 1e-5
# Interior solutions whose held rows are nearer to dependent than this may share their multipliers.
_DEPENDENT = 1e6
# Largest relative slack of a held row in a polished solution, as a share of its multiplier: a row
# with a small one may have a slack of its own.
_LOOSE = 1e-8
# Relative error of a nuclear solution, the root of its gap.
_NUCLEAR = 1e-6
# Safety factor on an estimated error.
_SAFETY = 4.0


@final
@dataclass(frozen=True)
class Decision:
    """Tight rows, and rows of which it is not known, both bool ``(*B, M)``."""

    tight: Tensor
    doubtful: Tensor

    def __getitem__(self, index: Any) -> "Decision":
        """Return members of the batch, indexed like a tensor."""
        return Decision(self.tight[index], self.doubtful[index])

    def to(self, device: torch.device | str) -> "Decision":
        """Return the same on a device."""
        return Decision(self.tight.to(device), self.doubtful.to(device))


@final
class _Rows:
    """Slacks and multipliers of all rows, each relative; equalities are always held."""

    def __init__(self, problem: MarginProblem, W: Tensor, dual: Tensor) -> None:
        eps = torch.finfo(W.dtype).eps
        self.problem, self.W = problem.as_dtype(torch.float64), W.to(torch.float64)
        self.length = self.problem.lengths()
        self.size = self.problem.sizes(self.W)
        self.rounding = _ROUNDING * eps * self.size
        self.unit = eps
        self.slack = self.problem.apply(self.W) - self.problem.bound
        bound = self.problem.bound.abs()
        self.scale = bound.where(bound > 0, self.size).clamp_min(tiny(self.size))
        share = (self.slack.abs() - self.rounding).clamp_min(0.0) / self.scale
        self.share = share.where(self.problem.mask, 1.0)
        force = dual.to(torch.float64).abs() * self.length
        force = force.where(self.problem.mask, 0.0)
        largest = force.amax(-1, keepdim=True) if force.shape[-1] else force.sum(-1, keepdim=True)
        self.force = force / largest.where(largest > 0, 1.0)
        self.dual = dual.to(torch.float64).where(self.problem.mask, 0.0)
        blur = self.rounding / self.scale
        self.blur = blur.where(blur > _SHARP, 0.0)
        clear = torch.maximum(_CLEAR * self.share, self.blur)
        self.held = (self.force > clear) | (self.problem.equality & problem.mask)

    def comparable(self) -> Tensor:
        """Find rows that are neither clearly held nor clearly slack, bool ``(*B, M)``."""
        low, high = torch.minimum(self.force, self.share), torch.maximum(self.force, self.share)
        dim = ~self.held & (self.force > 0) & (self.blur > 0) & (self.share == 0)
        return ((high < _CLEAR * low) | dim) & ~self.problem.equality

    def exact(self) -> Tensor:
        """Find solutions whose rows are all at their bound or free of force, bool ``(*B,)``."""
        return ((self.force == 0) | ((self.share == 0) & (self.blur == 0))).all(-1)

    def dependence(self, members: Tensor) -> Tensor:
        """Compute 1 / (the least singular value of the held rows, of length one), ``(k, 1)``.

        Rows that are exactly the same count once.
        """
        held, problem = self.held[members], self.problem[members]
        count = max(int(held.sum(-1).amax()), 1)
        order = held.to(torch.int8).argsort(dim=-1, descending=True, stable=True)[..., :count]
        left, right = (_taken(x, order) for x in (problem.left, problem.right))
        bound = problem.bound.gather(-1, order).unsqueeze(-1)
        kept = held.gather(-1, order) & ~_repeated(torch.cat((left, right, bound), -1))
        left, right = (x / scaled_norm(x).clamp_min(tiny(x)).unsqueeze(-1) for x in (left, right))
        gram = (left @ left.mT) * (right @ right.mT)
        both = kept.unsqueeze(-1) & kept.unsqueeze(-2)
        gram = gram.where(both, torch.eye(count, dtype=gram.dtype, device=gram.device))
        least = torch.linalg.eigvalsh(gram)[..., :1]
        return least.clamp_min(torch.finfo(gram.dtype).eps).rsqrt()


def _taken(x: Tensor, order: Tensor) -> Tensor:
    return x.gather(-2, order.unsqueeze(-1).expand(*order.shape, x.shape[-1]))


def _repeated(rows: Tensor) -> Tensor:
    """Mark rows ``(k, m, c)`` that equal an earlier one, bool ``(k, m)``."""
    same = torch.ones(*rows.shape[:2], rows.shape[1], dtype=torch.bool, device=rows.device)
    for column in rows.unbind(-1):
        same &= column.unsqueeze(-1) == column.unsqueeze(-2)
    return same.tril(-1).any(-1)


@one_thread
def decide_support(
    problem: MarginProblem, norm: Norm, W: Tensor, dual: Tensor, off: Tensor | None = None
) -> Decision:
    """Decide which rows hold with equality.

    Args:
        problem: the rows, batch ``*B``.
        norm: the norm that W ``(*B, d, e)`` solves the problem in.
        W: a solution; finite.
        dual: its multipliers ``(*B, M)``.
        off: how far entries of W are from what follows from the held rows, ``(*B, d, e)``, where
            more digits of the multipliers say it better.
    """
    rows = _Rows(problem, W, dual)
    doubt, exact = _doubt(rows, norm, off), rows.exact()
    shared = torch.zeros_like(rows.held)
    close = (~rows.held & (rows.share < _CLOSE)).any(-1)
    asked = (close | ~exact) & problem.mask.any(-1)
    if bool(asked.any()):
        error, dependence = _conditioned(rows, asked)
        doubt[asked] = doubt[asked] + error
        shared[asked] = rows.held[asked] & (dependence > _DEPENDENT) & ~exact[asked].unsqueeze(-1)
    return _decision(rows, rows.comparable() | shared, doubt)


@one_thread
def needs_polish(
    problem: MarginProblem, norm: Norm, W: Tensor, dual: Tensor, off: Tensor | None = None
) -> Tensor:
    """Find solutions with rows that are unclear, or held but not at their bound, bool ``(*B,)``."""
    rows = _Rows(problem, W, dual)
    loose = rows.held & (rows.share > _LOOSE * rows.force) & ~problem.equality
    return _decision(rows, rows.comparable() | loose, _doubt(rows, norm, off)).doubtful.any(-1)


def _decision(rows: _Rows, unknown: Tensor, doubt: Tensor) -> Decision:
    """Tell tight rows from slack ones, ``unknown`` and within ``doubt`` apart, ``(*B, M)``."""
    mask = rows.problem.mask
    within = (rows.share == 0) & (rows.blur == 0) & rows.exact().unsqueeze(-1)
    tight = mask & ~unknown & (rows.held | within)
    away = ~rows.held & ~within & (rows.slack > doubt)
    return Decision(tight, mask & ~tight & (unknown | ~away))


def _doubt(rows: _Rows, norm: Norm, off: Tensor | None = None) -> Tensor:
    """Bound the error of the row values, ``(*B, M)``: closely only where that matters.

    In the nuclear norm W does not follow from the held rows: a gap fixes it up to a share of ‖W‖.
    """
    if not isinstance(norm, Frobenius | Lp):
        moved = _NUCLEAR * rows.length * Frobenius().value(rows.W).unsqueeze(-1)
        return rows.rounding + _SAFETY * moved
    off = _off(rows, norm) if off is None else off
    farthest = off.amax((-2, -1)) * math.sqrt(off.shape[-2:].numel())
    doubt = rows.rounding + _SAFETY * rows.length * farthest.unsqueeze(-1)
    near = (~rows.held & (rows.slack <= doubt) & rows.problem.mask).any(-1)
    if bool(near.any()):
        doubt[near] = rows.rounding[near] + _SAFETY * _moved(rows.problem[near], off[near])
    return doubt


def _conditioned(rows: _Rows, asked: Tensor) -> tuple[Tensor, Tensor]:
    """Bound what errors in the held rows do to other rows, ``(k, M)``, and their condition."""
    dependence = rows.dependence(asked)
    length, held = rows.length[asked], rows.held[asked]
    missed = (rows.slack[asked].abs() / length.clamp_min(tiny(length))).where(held, 0.0)
    rounding = _ROUNDING * rows.unit * rows.size[asked]
    error = dependence * (_SAFETY * missed.amax(-1, keepdim=True) * length + rounding)
    return error, dependence


def _off(rows: _Rows, norm: Frobenius | Lp) -> Tensor:
    """Compare W with what follows from the held rows alone, entry by entry, ``(*B, d, e)``."""
    V = rows.problem.adjoint(rows.dual.where(rows.held, 0.0))
    if isinstance(norm, Lp) and norm.p != 2.0:
        largest = V.abs().amax((-2, -1), keepdim=True)
        V = (V / largest.where(largest > 0, 1.0)).abs().pow(1.0 / (norm.p - 1.0)) * V.sign()
    length = norm.value(V)
    share = norm.value(rows.W) / length.where(length > 0, 1.0)
    return V.mul_(share[..., None, None]).sub_(rows.W).abs_()


def _moved(problem: MarginProblem, off: Tensor) -> Tensor:
    """Bound what changes ``off`` of the entries of W, at most, do to the rows, ``(k, M)``."""
    left, query = problem.left.abs(), problem.query.abs()
    grouped = left.unflatten(-2, (query.shape[-2], -1))
    return (grouped * (query @ off.mT).unsqueeze(-2)).sum(-1).flatten(-2)
