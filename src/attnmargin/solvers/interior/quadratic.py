"""Frobenius norm, some thousand rows on any device: interior points on their Gram matrix.

    max bᵀλ − ½ λᵀ K λ,   λ ≥ 0 on inequalities,   K the Gram matrix of the rows, of length one

Mehrotra's predictor-corrector finds the rows that hold. The linear system in these rows alone then
gives all digits; rows with λ < 0 leave it, violated ones enter, until there are none.
"""

from typing import final

import torch
from torch import Tensor

from attnmargin.margin.norms import scaled_norm
from attnmargin.margin.problem import MarginProblem
from attnmargin.solvers.frobenius.method import Answer
from attnmargin.solvers.interior.schedule import ITERATIONS, REGULAR, TINY
from attnmargin.solvers.interior.walk import ratio_step
from attnmargin.solvers.outcome import SOLVED, STALLED

# The gap at which the rows that hold are known well enough, and rounds to settle them.
_CLEAR, _ROUNDS = 1e-8, 30
# The gap to walk to where they are not.
_DEEP = 1e-14
_STAY_INSIDE = 0.995
# A violation below this share of ‖W‖ is rounding.
_ROUNDING = 1e-14
_REFINEMENTS = 3


def solve_quadratic(problem: MarginProblem, start: Tensor | None, enough: float) -> Answer:
    """Solve one problem in float64; return multipliers ``(M,)``, W, outcome and iterations.

    Args:
        problem: rows without batch dimension, none of them zero or masked.
        start: multipliers ``(M,)`` to begin near, up to a factor.
        enough: the relative gap at which to end. Below 1e-8 the answer is exact up to rounding.
    """
    rows = _Rows(problem)
    dual, iterations = _walk(rows, start, max(enough, _CLEAR))
    settled = enough >= _CLEAR
    if not settled:
        exact = _settled(rows, dual)
        settled = exact is not None
        # More rows hold than W has entries: no few of them decide, and the path has to.
        dual = _walk(rows, dual / rows.length, _DEEP)[0] if exact is None else exact
    W = problem.adjoint(dual / rows.length)
    size = torch.linalg.matrix_norm(W).clamp_min(TINY)
    outcome = torch.tensor(SOLVED if settled else STALLED)
    return dual / (rows.length * size), W, outcome, torch.tensor(iterations)


@final
class _Rows:
    """Rows of length one: their Gram matrix, bounds and kinds."""

    def __init__(self, problem: MarginProblem) -> None:
        left, right = problem.left, problem.right
        long, wide = (scaled_norm(x).clamp_min(TINY) for x in (left, right))
        left, right = left / long.unsqueeze(-1), right / wide.unsqueeze(-1)
        self.length = long * wide
        self.gram = (left @ left.mT).mul_(right @ right.mT)
        self.b, self.free = problem.bound / self.length, problem.equality

    def near(self, start: Tensor | None) -> tuple[Tensor, Tensor]:
        """Build multipliers and slacks well inside, in proportion to the bounds."""
        guess = torch.ones_like(self.b) if start is None else start * self.length
        guess = guess.where(self.free, guess.clamp_min(0.0))
        image = self.gram @ guess
        scale = (self.b @ guess) / (guess @ image).clamp_min(TINY)
        guess = guess * scale.clamp_min(TINY)
        dual = guess.where(self.free, guess + 0.1 * guess.abs().mean() + TINY)
        least = 0.1 * self.b.abs().mean().clamp_min(TINY)
        slack = (self.gram @ dual - self.b).clamp_min(least)
        return dual, slack.where(~self.free, 1.0)


def _walk(rows: _Rows, start: Tensor | None, enough: float) -> tuple[Tensor, int]:
    """Follow the central path to a relative gap; return multipliers and iterations."""
    dual, slack = rows.near(start)
    count, iterations = int((~rows.free).sum()), 0
    while iterations < ITERATIONS:
        missing = rows.gram @ dual - rows.b - slack.where(~rows.free, 0.0)
        total = float((dual * slack).where(~rows.free, 0.0).sum())
        gain = float(rows.b @ dual)
        error = float(missing.abs().max()) / float(rows.b.abs().max().clamp_min(TINY))
        if gain > 0.0 and max(total / gain, error) <= enough:
            break
        step = _newton(rows, dual, slack, missing, total / max(count, 1))
        if step is None:
            break
        dual, slack = dual + step[0], slack + step[1]
        iterations += 1
    return dual, iterations


def _newton(
    rows: _Rows, dual: Tensor, slack: Tensor, missing: Tensor, mu: float
) -> tuple[Tensor, Tensor] | None:
    """Take a predictor-corrector step; None if the system cannot be factored."""
    weight = (slack / dual).where(~rows.free, 0.0)
    system = rows.gram.clone()
    system.diagonal().add_(weight + REGULAR)
    factor, failed = torch.linalg.cholesky_ex(system)
    if bool(failed):
        return None

    def direction(aim: Tensor) -> tuple[Tensor, Tensor, float]:
        """Solve for changes that make λ s equal ``aim`` to first order; and the longest step."""
        rest = (aim / dual - slack).where(~rows.free, 0.0)
        own = torch.cholesky_solve((rest - missing).unsqueeze(-1), factor).squeeze(-1)
        other = (rest - weight * own).where(~rows.free, 0.0)
        free = rows.free
        longest = torch.minimum(
            ratio_step(dual.where(~free, 1.0), own.where(~free, 0.0)), ratio_step(slack, other)
        )
        return own, other, min(_STAY_INSIDE * float(longest), 1.0)

    own, other, step = direction(torch.zeros_like(dual))
    after = (dual + step * own) * (slack + step * other)
    share = float(after.where(~rows.free, 0.0).sum()) / max(mu * len(dual), TINY)
    aim = max(share, 0.0) ** 3 * mu - own * other
    own, other, step = direction(aim)
    return step * own, step * other


def _settled(rows: _Rows, dual: Tensor) -> Tensor | None:
    """Solve for the multipliers of the rows that hold; None if rows or signs never agree."""
    slack = rows.gram @ dual - rows.b
    held = rows.free | (dual > slack)
    for _ in range(_ROUNDS):
        found = _solved(rows, held)
        if found is None:
            return None
        value = rows.gram @ found
        size = (rows.b @ found).clamp_min(0.0).sqrt()
        wrong = held & ~rows.free & (found < 0.0)
        missed = ~held & (rows.b - value > _ROUNDING * size)
        if not bool((wrong | missed).any()):
            return found
        held = (held & ~wrong) | missed
    return None


def _solved(rows: _Rows, held: Tensor) -> Tensor | None:
    """Solve ``K λ = b`` in some rows, λ = 0 in the others; None if they cannot be factored."""
    places = held.nonzero().flatten()
    K, b = rows.gram[places[:, None], places], rows.b[places]
    system = K.clone()
    system.diagonal().add_(REGULAR * len(places))
    factor, failed = torch.linalg.cholesky_ex(system)
    if bool(failed):
        return None
    x = torch.zeros_like(b)
    for _ in range(1 + _REFINEMENTS):
        x = x + torch.cholesky_solve((b - K @ x).unsqueeze(-1), factor).squeeze(-1)
    dual = torch.zeros_like(rows.b)
    dual[places] = x
    return dual
