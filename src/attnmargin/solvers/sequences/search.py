"""The search: solve the rows that are held, pass over the source, exchange rows, again.

The first passes need no more than rough solutions; the last ones are exact. See working_set.py,
which does the same with problems whose rows are built.
"""

from dataclasses import replace
from typing import final

import torch
from torch import Tensor

from attnmargin.base.compiled import one_thread
from attnmargin.margin.certificate import certify, extended
from attnmargin.margin.norms import Frobenius, Norm
from attnmargin.margin.solution import Solution
from attnmargin.solvers.entry import LARGE_ROWS, solve, solve_few
from attnmargin.solvers.interior.schedule import ENOUGH
from attnmargin.solvers.interior.walk import Warm, exponent
from attnmargin.solvers.methods import is_frobenius
from attnmargin.solvers.sequences.kept import Kept, joined, no_rows
from attnmargin.solvers.sequences.passes import Passes, Seen, Wanted
from attnmargin.solvers.watch import Watch
from attnmargin.solvers.working_set import COARSE, FIRST, LATER, NOTHING, missing_of

# A gap that is this share of what the worst row misses will do, but no more than this, and no less
# than a small one; when rows miss no more than ten times that, the next solution is exact.
_ROUGH, _FINE = 0.1, 1e-3
# Rows of one query that a pass adds at most: one that joins mostly brings its neighbours along.
_OF_EACH = 4
# Rows with a slack above this leave, but only when the lower bound has grown by this share.
_FAR, _GROWN = 0.5, 1e-3
_ROUNDS = 500
# Rounds of block ascent between two passes, while more rows are violated than this share of those
# that are held; else twice as many as before.
_LOOKS, _MANY = 12, 0.05
# Up to so many rows are left to the active-set method after so many rounds of block ascent, which
# starts from its multipliers if their gap is below this.
_EXACT, _END, _NEAR = 6000, 40, 1e-2
# Units in the last place of ‖a‖ ‖W‖ by which a row may miss its bound: as in the certificate.
_ROUNDING = 8 * float(torch.finfo(torch.float64).eps)


@final
class Search:
    """Solves the rows of a source that matter, in one norm, and in the Frobenius norm before."""

    def __init__(self, passes: Passes, norm: Norm, watch: Watch, most: int) -> None:
        self._passes, self._norm, self._watch, self._most = passes, norm, watch, most
        self._direction = passes.direction()
        self._held: Kept = no_rows(len(self._direction))
        self._dual: Tensor | None = None
        self._best, self._lifted = torch.inf, self._direction
        self._grown, self._iterations, self._gap = 0.0, 0, torch.inf
        self._found: Solution | None = None
        self._looks = _LOOKS

    def solve(self) -> Solution:
        """Solve, and certify over all rows."""
        if self._passes.rows <= self._most:
            self._hold(self._look(self._direction, torch.inf, self._most, self._most))
            self._found = self._solved(self._norm, 0.0)
            return self._certified(self._found, self._found.W)
        self._hold(self._look(self._direction, torch.inf))
        if is_frobenius(self._norm):
            return self._finished(self._improve(self._norm, _FINE))
        ended = self._improve(Frobenius(), COARSE, exact=False)
        if ended and not bool(self._last.infeasible):
            self._hold(self._look(self._last.W, FIRST, of_each=self._most))
            self._dual, self._best, self._grown = None, torch.inf, 0.0
            ended = self._improve(self._norm, COARSE)
        return self._finished(ended)

    @property
    def _last(self) -> Solution:
        assert self._found is not None
        return self._found

    def _improve(self, norm: Norm, fine: float, exact: bool = True) -> bool:
        """Go on until no row is missed by an exact solution, or the watch ends it.

        Args:
            norm: the norm.
            fine: least gap before the exact solution.
            exact: whether that is wanted; if not, end when rows miss little.
        """
        enough = _ROUGH
        for _ in range(_ROUNDS):
            self._found = found = self._solved(norm, enough)
            if bool(found.infeasible):
                return True
            if self._watch.over:
                return False
            seen = self._look(_shortened(found), LATER)
            self._remember(seen)
            if enough == 0.0 and not _violated(seen, found.W):
                return True
            many = int((seen.missing > 0).sum()) > _MANY * len(self._held)
            self._looks = _LOOKS if many else 2 * self._looks
            self._exchange(seen)
            error = max(seen.worst, min(float(found.certificate.gap), 1.0))
            if error > fine / _ROUGH:
                enough = min(_ROUGH * error, _ROUGH)
            elif exact:
                enough = 0.0
            else:
                return True
        return False

    def _solved(self, norm: Norm, enough: float) -> Solution:
        """Solve the rows that are held, to a relative gap; exactly if that is zero."""
        many = len(self._held) > LARGE_ROWS and self._passes.rows > self._most
        if is_frobenius(norm) or not (many or enough):
            found = self._watched(norm, enough, grouped=many)
            if enough == 0.0 and many and not self._watch.over:
                found = to_the_end(found)
        else:
            known = None if self._dual is None else Warm(self._dual, exponent(norm))
            found = solve_few(norm, self._held.problem(), known, enough or ENOUGH)
        self._iterations += int(found.iterations)
        self._watch.tell(self._passes.rows, int((found.dual != 0).sum()), self._gap)
        return found

    def _watched(self, norm: Norm, enough: float, grouped: bool) -> Solution:
        """Solve by a method that can be ended."""

        looks = 0
        most = self._looks if enough else _END if len(self._held) <= _EXACT else torch.inf

        def look(_: int, support: int, gap: float) -> bool:
            nonlocal looks
            looks += 1
            self._watch.tell(self._passes.rows, support, max(gap, self._gap))
            return self._watch.over or gap < enough or looks > most

        problem, warm = self._held.problem(), self._dual
        if not grouped:
            return solve(problem, norm, warm_start=warm, progress=look)
        padded, place = self._held.grouped()
        if warm is not None:
            warm = torch.zeros_like(padded.bound).index_copy(0, place, warm)
        found = solve(padded, norm, warm_start=warm, progress=look)
        return replace(found, problem=problem, dual=found.dual[place], decision=None)

    def _look(self, W: Tensor, share: float, most: int = 0, of_each: int = _OF_EACH) -> Seen:
        return self._passes.look(W, self._held, Wanted(most or self._most, of_each, share))

    def _hold(self, seen: Seen) -> None:
        """Hold some rows in place of those before."""
        self._held = seen.rows

    def _remember(self, seen: Seen) -> None:
        """Keep the shortest W so far that, scaled up, satisfies all rows."""
        found, W = self._last, _shortened(self._last)
        upper = seen.lift * float(self._norm.value(W))
        if upper < self._best:
            self._best, self._lifted = upper, W * seen.lift
        gap = max(float(found.certificate.gap), seen.worst)
        self._gap = min(self._gap, gap) if gap < torch.inf else self._gap

    def _exchange(self, seen: Seen) -> None:
        """Add rows; drop those that are far, if the lower bound has grown enough since."""
        found, kept = self._last, torch.ones(len(self._held), dtype=torch.bool)
        if float(found.certificate.lower) > (1.0 + _GROWN) * self._grown:
            self._grown = float(found.certificate.lower)
            near = missing_of(found.problem, found.W) > -_FAR
            kept = near | (found.dual != 0) | found.problem.equality
        dual = torch.cat((found.dual[kept], torch.zeros(len(seen.rows), dtype=torch.float64)))
        rows = joined(self._held[kept], seen.rows)
        order = rows.key.argsort()
        self._held, self._dual = rows[order], dual[order]

    def _finished(self, ended: bool) -> Solution:
        """Certify the last solution, or what is best so far."""
        found = self._last
        if ended or self._best == torch.inf:
            return self._certified(found, found.W)
        return self._certified(found, self._lifted)

    @one_thread
    def _certified(self, found: Solution, W: Tensor) -> Solution:
        problem, norm = found.problem, self._norm
        proof = certify(problem, norm, W, found.dual)
        proof = extended(proof, self._passes.parts(self._held), norm, W)
        iterations = torch.tensor(self._iterations)
        decision = found.decision if found.norm == norm and W is found.W else None
        outside = self._passes.rows - problem.M
        return Solution(
            problem, norm, W, found.dual, proof, iterations, decision=decision, outside=outside
        )


def to_the_end(found: Solution) -> Solution:
    """Solve few rows by the exact method, from the multipliers that block ascent ended with."""
    proof, ended = found.certificate, bool(found.optimal) or bool(found.infeasible)
    if ended or found.problem.M > _EXACT:
        return found
    start = found if float(proof.gap) < _NEAR else None
    again = solve(found.problem, found.norm, warm_start=start, method="active-set")
    better = float(again.certificate.worst) < float(proof.worst)
    return again if better or bool(again.infeasible) else found


def _shortened(found: Solution) -> Tensor:
    """Scale a rough W down to the lower bound: it may have been scaled up to satisfy its rows."""
    lower = found.certificate.lower
    return found.W if bool(found.optimal) or not lower > 0 else found.W * (lower / found.value)


def _violated(seen: Seen, W: Tensor) -> bool:
    """Decide whether a row that is not held misses its bound by more than rounding."""
    problem = seen.rows.problem()
    scale = problem.bound.where(problem.bound > 0, torch.inf)
    noise = _ROUNDING * problem.lengths() * Frobenius().value(W) / scale
    return bool((seen.missing > noise.clamp_min(NOTHING)).any())
