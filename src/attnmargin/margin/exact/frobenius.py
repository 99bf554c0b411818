"""The Frobenius solution in rational numbers, by a dual active-set method.

    min ½‖W‖²  subject to  ⟨a_m, W⟩ ≥ b_m  (= b_m on equality rows),     W = Σ λ_m a_m

Rows are added one at a time (Goldfarb and Idnani): the multipliers of the working rows are valid
all the time, and the value grows with every change, so it ends. It ends with the solution, or with
a violated row that is a combination of the others: a contradiction.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import final

from attnmargin.margin.exact.elimination import solve_integers
from attnmargin.margin.exact.rows import ExactRows

Shares = dict[int, Fraction]


@final
@dataclass
class ExactAnswer:
    """Multipliers by row; a proof of infeasibility where ``feasible`` is false."""

    feasible: bool
    dual: Shares
    tight: list[int] = field(default_factory=list)


@final
class _Walk:
    """The working rows, their multipliers, and all row values."""

    def __init__(self, rows: ExactRows) -> None:
        self.rows, self.count = rows, len(rows.bound)
        self.sign = [1] * self.count  # an equality that is exceeded is turned round
        self.dual: Shares = {}
        self._known: dict[tuple[int, int], int] = {}

    def gram(self, i: int, j: int) -> int:
        key = (i, j) if i <= j else (j, i)
        if key not in self._known:
            self._known[key] = self.rows.gram(*key)
        return self.sign[i] * self.sign[j] * self._known[key]

    def missing(self, m: int) -> Fraction:
        """Compute ``b_m − ⟨a_m, W⟩``."""
        value = sum((x * self.gram(m, i) for i, x in self.dual.items()), Fraction(0))
        return self.sign[m] * self.rows.bound[m] - value

    def begin(self, guess: list[int]) -> None:
        """Start from those guessed rows whose multipliers are valid."""
        working = list(guess)
        while working:
            found = self._solve(working, [self.rows.bound[m] for m in working])
            if found is None:  # dependent
                working.pop()
                continue
            wrong = [m for m, x in found.items() if x < 0 and not self.rows.equality[m]]
            if not wrong:
                self.dual = found
                return
            working = [m for m in working if m not in wrong]

    def _solve(self, working: list[int], right: list[int]) -> Shares | None:
        system = [[self.gram(i, j) for j in working] for i in working]
        found = solve_integers(system, right)
        return None if found is None else dict(zip(working, found, strict=True))

    def violated(self) -> int | None:
        """Find a violated row, equalities first."""
        for m in sorted(range(self.count), key=lambda m: not self.rows.equality[m]):
            if m in self.dual:
                continue
            missing = self.missing(m)
            if missing < 0 and self.rows.equality[m]:
                self.sign[m] = -self.sign[m]
                return m
            if missing > 0:
                return m
        return None

    def add(self, k: int) -> Shares | None:
        """Add a violated row, dropping others on the way; return a contradiction if there is one.

        The row's multiplier grows while those of the working rows follow; one that reaches zero
        is dropped.
        """
        self.dual[k] = Fraction(0)
        while True:
            others = [m for m in self.dual if m != k]
            follow = self._solve(others, [self.gram(m, k) for m in others])
            assert follow is not None  # working rows are independent
            distance = self.gram(k, k) - sum(x * self.gram(k, m) for m, x in follow.items())
            limits = [
                (self.dual[m] / x, m)
                for m, x in follow.items()
                if x > 0 and not self.rows.equality[m]
            ]
            if distance == 0 and not limits:
                return {k: Fraction(1), **{m: -x for m, x in follow.items()}}
            full = self.missing(k) / distance if distance else None
            partial = min(limits, default=None)
            step = full if partial is None or (full is not None and full <= partial[0]) else None
            length = partial[0] if step is None and partial is not None else step
            assert length is not None
            self.dual[k] += length
            for m, x in follow.items():
                self.dual[m] -= length * x
            if step is not None:
                return None
            assert partial is not None
            del self.dual[partial[1]]


def solve_exactly(rows: ExactRows, guess: list[int]) -> ExactAnswer:
    """Solve; ``guess`` are rows that are probably tight, or part of a contradiction."""
    walk = _Walk(rows)
    walk.begin(guess)
    while (k := walk.violated()) is not None:
        proof = walk.add(k)
        if proof is not None:
            return ExactAnswer(False, {m: walk.sign[m] * x for m, x in proof.items() if x})
    tight = [m for m in range(walk.count) if m in walk.dual or walk.missing(m) == 0]
    dual = {m: walk.sign[m] * x for m, x in walk.dual.items() if x}
    return ExactAnswer(True, dual, tight)
