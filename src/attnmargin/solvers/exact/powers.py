"""The ℓp solution to many digits, by an active-set method in high precision.

    min ‖W‖_p^p / p  subject to  ⟨a_m, W⟩ ≥ b_m  (= b_m on equality rows),   1 < p < ∞

Every round solves the problem of its working rows as equations, by Newton's method. Then a row with
a negative multiplier leaves, or a violated one enters. Sequences of different scales give entries
of W of different scales, and for large p multipliers that differ by a hundred powers of ten; the
precision is chosen so that this does not matter.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

from mpmath import mp, mpf

from attnmargin.margin.exact.rows import ExactRows

# Decimal digits; relative size of a last Newton step; relative slack of a tight row.
_DIGITS, _LAST, _TIGHT = 160, mpf("1e-40"), mpf("1e-25")
_NEWTON_STEPS, _HALVINGS, _ROUNDS_PER_ROW = 400, 60, 6

Number = Any  # mpmath has no types
Numbers = list[Number]


@final
@dataclass(frozen=True)
class PowerAnswer:
    """W by its entries, multipliers of ``‖W‖_p^p / p`` by row, and the tight rows."""

    W: Numbers
    dual: dict[int, Number]
    tight: list[int]


def solve_powers(
    rows: ExactRows, p: float, guess: list[int], start: list[float]
) -> PowerAnswer | None:
    """Solve feasible rows; None if it does not end.

    Args:
        rows: of one problem.
        p: the power.
        guess: rows that are probably tight, the likeliest first.
        start: an approximate W, by its entries.
    """
    with mp.workdps(_DIGITS):
        search = _Search(rows, p, [mpf(x) * int(rows.scale) for x in start])
        for likely in guess:
            search.enter(likely, swap=False)
        for _ in range(_ROUNDS_PER_ROW * len(rows.bound) + 20):
            if not search.solve():
                return None
            if search.leave():
                continue
            k = search.most_violated()
            if k is None:
                return PowerAnswer(search.W, search.dual, search.tight())
            if not search.enter(k, swap=True):
                return None
    return None


@final
class _Search:
    """The working rows, with W and multipliers of the problem that has only these, as equations."""

    def __init__(self, rows: ExactRows, p: float, W: Numbers) -> None:
        self.rows, self.p, self.W = rows, mpf(p), W
        self.dual: dict[int, Number] = {}
        self.A = [
            [mpf(x * y) for x in left for y in right]
            for left, right in zip(rows.left, rows.right, strict=True)
        ]
        self.b = [mpf(x) for x in rows.bound]
        for m, equal in enumerate(rows.equality):
            if equal:
                self.enter(m, swap=False)

    def solve(self) -> bool:
        """Minimise over the working rows as equations; false if Newton's method fails."""
        working = list(self.dual)
        system = _Equations([self.A[m] for m in working], [self.b[m] for m in working], self.p)
        found = system.minimise(self.W)
        if found is None:
            return False
        self.W, dual = found
        self.dual = dict(zip(working, dual, strict=True))
        return True

    def leave(self) -> bool:
        """Remove the row with the most negative multiplier, measured by its force on W."""
        force = {
            m: x * max(map(abs, self.A[m]))
            for m, x in self.dual.items()
            if x < 0 and not self.rows.equality[m]
        }
        if force:
            del self.dual[min(force, key=lambda m: force[m])]
        return bool(force)

    def tight(self) -> list[int]:
        """List the rows that hold with equality."""
        every = range(len(self.b))
        return [m for m in every if m in self.dual or abs(self._missing(m)) <= _TIGHT]

    def most_violated(self) -> int | None:
        missing = {m: self._missing(m) for m in range(len(self.b)) if m not in self.dual}
        worst = max(missing, key=lambda m: missing[m], default=None)
        return worst if worst is not None and missing[worst] > _TIGHT else None

    def _missing(self, m: int) -> Number:
        """Compute the violation relative to the size of the terms of the row."""
        terms = [x * y for x, y in zip(self.A[m], self.W, strict=True)]
        missing = self.b[m] - mp.fsum(terms)
        size = max(abs(self.b[m]), *map(abs, terms))
        return missing / size if size else missing

    def enter(self, k: int, swap: bool) -> bool:
        """Add a row; if it depends on the others, in exchange for one of them, or not at all."""
        working = list(self.dual)
        gram = [[mpf(self.rows.gram(i, j)) for j in working] for i in working]
        follow = _solve(gram, [mpf(self.rows.gram(i, k)) for i in working])
        own = mpf(self.rows.gram(k, k))
        if follow is None or own == 0:
            return False
        pairs = zip(working, follow, strict=True)
        shares = {m: x for m, x in pairs if x > 0 and not self.rows.equality[m]}
        rest = own - mp.fsum(x * self.rows.gram(m, k) for m, x in zip(working, follow, strict=True))
        if rest <= _LAST * own:
            if not swap or not shares:
                return False
            del self.dual[min(shares, key=lambda m: self.dual[m] / shares[m])]
        self.dual[k] = mpf(0)
        return True


@final
class _Equations:
    """``min ‖w‖_p^p / p`` subject to ``A w = b`` with independent rows."""

    def __init__(self, A: list[Numbers], b: Numbers, p: Number) -> None:
        self.A, self.b, self.p = A, b, p

    def minimise(self, W: Numbers) -> tuple[Numbers, Numbers] | None:
        """Return W and multipliers, starting near a given W."""
        used = [j for j in range(len(W)) if any(row[j] for row in self.A)]
        self.A = [[row[j] for j in used] for row in self.A]
        w = self._projected([W[j] for j in used])
        if w is None:
            return None
        found = self._ascend(w) if self.p < 2 else self._descend(w)
        if found is None:
            return None
        full = [mpf(0)] * len(W)
        for j, x in zip(used, found[0], strict=True):
            full[j] = x
        return full, found[1]

    def _projected(self, w: Numbers) -> Numbers | None:
        """Find the point of the equations that is nearest to w."""
        y = _solve(self._schur([mpf(1)] * len(w)), self._missing(w))
        return None if y is None else _plus(w, 1, self._combine(y))

    def _descend(self, w: Numbers) -> tuple[Numbers, Numbers] | None:
        """Take Newton steps in w within the equations, shortened until the value falls."""
        if not w:
            return w, []
        for _ in range(_NEWTON_STEPS):
            step, dual = self._newton(w)
            if dual is None:
                return None
            done = max(map(abs, step)) <= _LAST * max(map(abs, w))
            w = self._shortened(self._value, w, step)
            if done:
                return w, dual
        return None

    def _ascend(self, w: Numbers) -> tuple[Numbers, Numbers] | None:
        """Take Newton steps in the multipliers, for ``w = ∇f*(Aᵀλ)``; smooth for p < 2."""
        slope = [mp.sign(x) * abs(x) ** (self.p - 1) for x in w]
        start = _solve(self._schur([mpf(1)] * len(w)), [_dot(row, slope) for row in self.A])
        if not start:
            return None if start is None else (w, [])
        dual, q = start, self.p / (self.p - 1)
        for _ in range(_NEWTON_STEPS):
            V = self._combine(dual)
            least = mpf(10) ** (-_DIGITS // 3) * (max(map(abs, V)) or mpf(1))
            w = [mp.sign(x) * abs(x) ** (q - 1) for x in V]
            weight = [(q - 1) * max(abs(x), least) ** (q - 2) for x in V]
            step = _solve(self._schur(weight), self._missing(w))
            if step is None:
                return None
            done = max(map(abs, step)) <= _LAST * max(map(abs, dual))
            dual = self._shortened(self._loss, dual, step)
            if done:
                return w, dual
        return None

    def _missing(self, w: Numbers) -> Numbers:
        return [b - _dot(row, w) for row, b in zip(self.A, self.b, strict=True)]

    def _loss(self, dual: Numbers) -> Number:
        """Compute the negative dual value ``‖Aᵀλ‖_q^q / q − bᵀλ``."""
        q = self.p / (self.p - 1)
        return mp.fsum(abs(x) ** q for x in self._combine(dual)) / q - _dot(self.b, dual)

    def _newton(self, w: Numbers) -> tuple[Numbers, Numbers | None]:
        size = max(map(abs, w)) or mpf(1)
        least = mpf(10) ** (-_DIGITS // 3)
        slope = [mp.sign(x) * abs(x / size) ** (self.p - 1) for x in w]
        bend = [(self.p - 1) * max(abs(x / size), least) ** (self.p - 2) for x in w]
        inverse = [1 / x for x in bend]
        dual = _solve(self._schur(inverse), [
            _dot(row, [s * i for s, i in zip(slope, inverse, strict=True)]) for row in self.A
        ])  # fmt: skip
        if dual is None:
            return [], None
        pull = self._combine(dual)
        step = [size * (c - s) * i for c, s, i in zip(pull, slope, inverse, strict=True)]
        return step, [x * size ** (self.p - 1) for x in dual]

    def _shortened(self, value: Callable[[Numbers], Number], x: Numbers, step: Numbers) -> Numbers:
        before, share = value(x), mpf(1)
        for _ in range(_HALVINGS):
            new = _plus(x, share, step)
            if value(new) <= before:
                return new
            share /= 2
        return x

    def _value(self, w: Numbers) -> Number:
        return mp.fsum(abs(x) ** self.p for x in w)

    def _schur(self, weight: Numbers) -> list[Numbers]:
        scaled = [[x * y for x, y in zip(row, weight, strict=True)] for row in self.A]
        return [[_dot(row, other) for other in self.A] for row in scaled]

    def _combine(self, y: Numbers) -> Numbers:
        return [_dot(y, column) for column in zip(*self.A, strict=True)]


def _plus(x: Numbers, share: Number, step: Numbers) -> Numbers:
    return [a + share * b for a, b in zip(x, step, strict=True)]


def _dot(x: Any, y: Any) -> Number:
    return mp.fdot(zip(x, y, strict=True))


def _solve(A: list[Numbers], b: Numbers) -> Numbers | None:
    """Solve by elimination with pivots from the diagonal; None if A, symmetric, is singular."""
    n = len(A)
    rows = [[*row, right] for row, right in zip(A, b, strict=True)]
    for k in range(n):
        pivot = max(range(k, n), key=lambda i: abs(rows[i][k]))
        if rows[pivot][k] == 0:
            return None
        rows[k], rows[pivot] = rows[pivot], rows[k]
        for i in range(k + 1, n):
            factor = rows[i][k] / rows[k][k]
            rows[i] = [x - factor * y for x, y in zip(rows[i], rows[k], strict=True)]
    x = [mpf(0)] * n
    for i in reversed(range(n)):
        x[i] = (rows[i][n] - _dot(rows[i][i + 1 : n], x[i + 1 :])) / rows[i][i]
    return x
