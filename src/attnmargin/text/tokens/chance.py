"""Chance: how probable it is that so many of the texts with a token are of one class."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

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
    from attnmargin.text.tokens.counting_kernel import mid_p

    out, side = np.empty(len(k)), np.zeros(len(k), np.int64)
    mid_p(k, total, int(n[0]), int(n[1]), odds, out, side)
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
