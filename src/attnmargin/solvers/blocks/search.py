"""The search for the multipliers of one large problem, round by round."""

from typing import final

import numpy as np

from attnmargin.base.kernels import Bools, Floats, Ints
from attnmargin.solvers.blocks.ascent import ascend
from attnmargin.solvers.blocks.augmented import augmented
from attnmargin.solvers.blocks.rows import Scaled
from attnmargin.solvers.blocks.subspace import Held, Subspace

# Epochs of block ascent per round, and operations per entry of W and live row, with those of
# conjugate gradients.
_EPOCHS, _OPERATIONS = 10, 200
# Units in the last place of ‖a‖ ‖W‖ by which rounding may change the value of a row.
_ROUNDING = 4 * float(np.finfo(np.float64).eps)
# σ of the augmented Lagrangian, in mean multipliers, and by which factors it grows.
_WEIGHT, _STAGES = 20.0, (1.0, 3.0)
# Rows stay in the working set while their slack, relative to their bound, is below so many times
# the largest violation, but at least and at most this.
_TIMES, _NEAR, _FAR = 10.0, 0.02, 0.25
# Progress: an error below this share of the best so far, or a dual objective above it by this
# share.
_BELOW, _ABOVE = 0.7, 1e-3


@final
class Search:
    """Multipliers λ of ``min ½‖W‖²``, with ``W = Σ λ_m left_m queryᵀ``.

    ``error`` is the larger of the relative gap and the largest violation of a row, relative to its
    bound and beyond rounding. ``excess`` is ``bᵀλ / ‖W‖²``, which is 1 at a solution and grows
    without end if there is none. ``work`` is roughly the number of operations so far.
    """

    goal = 2e-13

    def __init__(self, own: Scaled, start: Floats | None) -> None:
        self.own, self.rounds, self.waited, self.work = own, 0, 0, 0.0
        self._whole = own.part(own.there)
        P, there = own.P, own.there
        self._length = np.sqrt(own.squares(there))
        self._random, self._highest = np.random.default_rng(0), 0.0
        self._best: tuple[float, Floats, Floats] = (np.inf, np.empty(0), np.empty(0))
        self.dual = np.zeros(len(P.left))
        self.held: Ints = there[:0]
        self._subspace = Subspace()
        self.live: Ints = there
        self.start_from(there, np.zeros(len(there)) if start is None else start[there])
        if start is not None:
            self._rescale()

    def set_dual(self, rows: Ints, dual: Floats) -> None:
        """Set the multipliers of some rows, all others to zero."""
        self.dual[:] = 0.0
        self.dual[rows] = np.where(self.own.P.free[rows], dual, np.maximum(dual, 0.0))
        self.held = rows[self.dual[rows] != 0.0]

    def start_from(self, rows: Ints, dual: Floats, W: Floats | None = None) -> None:
        """Go on from multipliers of some rows, and their W where it is known better."""
        self.set_dual(rows, dual)
        if W is None:
            W = self.own.part(self.held).adjoint(self.dual[self.held])
        self._measure(W)

    def _rescale(self) -> None:
        """Multiply the multipliers by the best common factor."""
        gain = float(self.own.P.bound @ self.dual)
        if gain > 0.0 and self.norm > 0.0:
            self.start_from(self.held, gain / self.norm**2 * self.dual[self.held])

    @property
    def crowded(self) -> bool:
        """Whether more rows hold than W has entries."""
        return len(self.held) > self.W.size

    def round(self) -> None:
        """Ascend in the live rows, refine those that hold, and look at all."""
        P, own = self.own.P, self.own.blocks(self.live)
        order = np.stack([self._random.permutation(len(own.owner)) for _ in range(_EPOCHS)])
        ascend(P, own, order, self.dual, self.W)
        before, self.held = self.held, self.live[(self.dual[self.live] != 0.0) | P.free[self.live]]
        part = self.own.part(self.held)
        squares = self.own.squares(self.held)
        held = Held(part, P.bound[self.held], P.free[self.held], squares)
        change = _change(before, self.held)
        self.dual[self.held], W = self._subspace.refined(held, self.dual[self.held], change)
        self.rounds += 1
        self.work += _OPERATIONS * (len(own.owner) * W.size + len(self.live) * W.shape[0])
        self._measure(W)

    def leap(self) -> None:
        """Take two stages of the augmented Lagrangian on the live rows."""
        weight = _WEIGHT * float(np.abs(self.dual[self.held]).mean())
        for factor in _STAGES:
            rows = self.live
            stage = augmented(self.own, rows, self.dual[rows], self.W, factor * weight)
            self.start_from(rows, *stage)
        self.start_from(self.held, self.dual[self.held])
        self.rounds += 1

    def _measure(self, W: Floats) -> None:
        """Evaluate all rows at W; choose the next live ones."""
        P, there = self.own.P, self.own.there
        self.W, self.norm = W, float(np.linalg.norm(W))
        bound, free = P.bound[there], P.free[there]
        value = self._whole.apply(W)
        missing = np.where(free, np.abs(bound - value), bound - value)
        size = self._length * self.norm
        scale = np.where(bound != 0.0, np.abs(bound), np.maximum(size, 1e-300))
        worst = float(np.max(missing / scale, initial=0.0))
        self._beyond = float(np.max((missing - _ROUNDING * size) / scale, initial=0.0))
        gain = float(bound @ self.dual[there])
        self._lift = self._factor(bound, free, value)
        gap = abs(self._lift * self.norm**2 - gain) / self.norm**2 if self.norm > 0.0 else 0.0
        self.error = max(self._beyond, gap)
        self.excess = gain / self.norm**2 if self.norm > 0.0 else 0.0
        self._objective = gain - 0.5 * self.norm**2
        near = -missing <= min(max(_NEAR, _TIMES * worst), _FAR) * scale
        self.live = there[near | free | (self.dual[there] != 0.0)]
        self._remember()

    @staticmethod
    def _factor(bound: Floats, free: Bools, value: Floats) -> float:
        """Return the factor that makes W satisfy all rows, or 1 if none does."""
        asked = (bound > 0.0) & ~free
        if (free & (bound != 0.0)).any() or not (value[asked] > 0.0).all():
            return 1.0
        return max(float(np.max(bound[asked] / value[asked], initial=0.0)), 1.0)

    def _remember(self) -> None:
        best = self._best[0]
        better = self.error < _BELOW * best or self._objective > (1.0 + _ABOVE) * self._highest
        self.waited = 0 if better else self.waited + 1
        self._highest = max(self._highest, self._objective)
        if self.error < best:
            factor = self._lift if self._beyond > self.goal else 1.0
            self._best = self.error, self.dual.copy(), factor * self.W

    def return_to_best(self) -> None:
        """Return to the multipliers of least error; W is scaled up if rows are violated."""
        _, self.dual, W = self._best
        self.held = self.dual.nonzero()[0]
        self.W, self.norm = W, float(np.linalg.norm(W))

    def critical(self, most: int) -> Ints:
        """Return all rows, the live ones or those that hold: the first of these that are few."""
        for rows in (self.own.there, self.live, self.held):
            if len(rows) <= most:
                return rows
        return self.held[:0]


def _change(before: Ints, after: Ints) -> float:
    """Return the share of rows that were added or dropped."""
    return len(np.setxor1d(before, after, assume_unique=True)) / max(len(after), 1)
