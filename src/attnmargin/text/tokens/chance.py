"""Chance: how probable it is that so many of the texts with a token are of one class."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnmargin.base.kernels import Floats, Ints, jit, kernel

# Terms below this share of the largest one are left out.
_SMALL = 1e-20
# p-values this close to one are on neither side.
_EQUAL = 1e-9
# Number of rates at which the odds of texts are computed, and the share of texts up to which.
_RATES, _COMMON = 96, 0.95


def chance(k: Ints, total: Ints, n: Ints, odds: Floats) -> tuple[Floats, Ints]:
    """Compute two-sided mid-p-values of Fisher's noncentral hypergeometric law, ``(S,)``.

    Of n₀ + n₁ texts, ``total`` have the token, and ``k`` of these are of class 1. If the odds of
    having it are ``odds`` times larger in texts of class 1, k has the law
    ``P(k) ∝ C(n₁, k) C(n₀, total − k) oddsᵏ``; with odds one, this is Fisher's exact test. The
    p-value is twice the smaller tail, in which k itself counts half.

    Args:
        k, total: whole numbers ``(S,)``.
        n: the texts of classes 0 and 1.
        odds: ``(S,)``.

    Returns:
        p-values, and on which side of chance k is: 1 above, −1 below, 0 in the middle.

    Example:
        >>> import numpy as np
        >>> from attnmargin.text.tokens.chance import chance
        >>> k, total = np.array([3, 1]), np.array([3, 2])
        >>> p, side = chance(k, total, np.array([5, 5]), np.ones(2))
        >>> p.round(4).tolist(), side.tolist()  # 10 of 120 ways
        ([0.0833, 1.0], [1, 0])
    """
    out, side = np.empty(len(k)), np.zeros(len(k), np.int64)
    _chance(k, total, int(n[0]), int(n[1]), odds, out, side)
    return out, side


def length_odds(total: Ints, lengths: Ints) -> NDArray[np.float64]:
    """Compute how much larger the odds of having a token are in class 1, for its texts are longer.

    A word with the same rate λ in both classes is in a text of T words with probability
    ``1 − exp(−λT)``. λ follows from the number of texts that have the word.

    Args:
        total: texts with each token, ``(S,)``.
        lengths: texts by length and class, ``(L, 2)``.

    Returns:
        Odds ratios ``(S,)``, all one if both classes have texts of the same lengths.
    """
    T = np.arange(len(lengths), dtype=float)
    n, words = lengths.sum(0), T @ lengths
    rates = np.geomspace(0.1 / max(words.sum(), 1.0), 40.0, _RATES)
    absent = (np.exp(-rates[:, None] * T) @ lengths) / n  # (R, 2)
    present = -(np.expm1(-rates[:, None] * T) @ lengths) / n
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(present[:, 1] * absent[:, 0]) - np.log(present[:, 0] * absent[:, 1])
    found = present @ n
    usable = np.isfinite(logs) & (found <= _COMMON * n.sum())
    return np.exp(np.interp(total, found[usable], logs[usable]))


@jit
def _log_weight(x: int, total: int, n0: int, n1: int) -> float:
    """Compute the logarithm of C(n₁, x) C(n₀, total − x), up to a constant."""
    y = total - x
    return -(
        math.lgamma(x + 1.0) + math.lgamma(n1 - x + 1.0)
        + math.lgamma(y + 1.0) + math.lgamma(n0 - y + 1.0)
    )  # fmt: skip


@jit
def _tail(x: int, step: int, total: int, n0: int, n1: int, odds: float) -> float:
    """Sum the weights of x, x ± 1, … over that of x."""
    weight, found = 1.0, 1.0
    while weight > _SMALL * found:
        y = total - x
        if step > 0:
            weight *= odds * (n1 - x) * y / ((x + 1.0) * (n0 - y + 1.0))
        else:
            weight *= x * (n0 - y) / (odds * (n1 - x + 1.0) * (y + 1.0))
        x += step
        found += weight
    return found


@jit
def _mode(total: int, n0: int, n1: int, odds: float) -> int:
    """Find the most probable x, up to rounding."""
    a, b = odds - 1.0, -((n1 + total + 2.0) * odds + n0 - total)
    c = (n1 + 1.0) * (total + 1.0) * odds
    x = -2.0 * c / (b - math.sqrt(max(b * b - 4.0 * a * c, 0.0)))
    return min(max(int(x), max(0, total - n0)), min(n1, total))


@kernel("chance of tokens", 0)
def _chance(k: Any, totals: Any, n0: int, n1: int, odds: Any, out: Any, side: Any) -> None:
    """Fill in the p-values and sides of :func:`chance`."""
    for s in range(k.size):
        x, total, w = k[s], totals[s], odds[s]
        top = _mode(total, n0, n1, w)
        whole = _tail(top, 1, total, n0, n1, w) + _tail(top, -1, total, n0, n1, w) - 1.0
        own = _log_weight(x, total, n0, n1) - _log_weight(top, total, n0, n1)
        own = math.exp(own + (x - top) * math.log(w)) / whole
        step = 1 if x > top else -1
        tail = own * (_tail(x, step, total, n0, n1, w) - 0.5)
        out[s] = min(2.0 * min(tail, 1.0 - tail), 1.0)
        if out[s] < 1.0 - _EQUAL:
            side[s] = step if tail < 0.5 else -step
