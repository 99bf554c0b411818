"""The slope of :class:`attnmargin.attention.Objective` for a linear head, compiled with numba.

It handles one trial at a time. The results agree with the torch code up to rounding.
"""

import math
from typing import NamedTuple

import numpy as np

from attnmargin.base.kernels import Bools, Floats, Ints, jit

# Logarithms above this can be exponentiated separately without loss.
_REPRESENTABLE = -500.0
# Terms with exponents below these change no digit.
_FAR, _FARTHER = -45.0, -70.0
# A score closer than this to the best one is compared by what is missing, not by its loss.
_NEAR = 1e-5


class Scores(NamedTuple):
    """Token scores of one trial, and buffers for its logits and slope; N sequences of T tokens."""

    gamma: Floats  # (N, T) token scores
    rise: Floats  # (N, T), the same up to a constant per sequence, without rounding of that
    hidden: Bools  # (N, T)
    a: Floats  # (N·T,) logits
    c: Floats  # (N·T,) negative gradient in the logits
    e: Floats  # (N·T,), e^{a − max} of each sequence, zero where it is negligible
    log_k: Floats  # (N,), log κ − log Z
    total: Floats  # (N,), Z, relative to the largest term
    sign: Floats  # (N,), −1 where the loss rises
    shift: Floats  # (N,) largest logit
    top: Floats  # (N,) most likely token


@jit
def scores(
    gamma: Floats, rise: Floats, hidden: Bools, a: Floats, tokens: Floats, sequences: Floats
) -> Scores:
    """Build Scores with buffers in two arrays, ``(2, N·T)`` and ``(5, N)``."""
    return Scores(
        gamma,
        rise,
        hidden,
        a,
        tokens[0],
        tokens[1],
        sequences[0],
        sequences[1],
        sequences[2],
        sequences[3],
        sequences[4],
    )


@jit
def _log_slope(loss: int, u: float) -> float:
    """Compute log |ℓ'(u)|; :data:`attnmargin.training.loop.KERNEL_LOSSES` numbers the losses.

    For ``(1 − u)²``, number 3, u is not enough: see :func:`_log_rest`.
    """
    if loss == 0:
        return -math.log1p(math.exp(u)) if u < 30.0 else -u
    if loss == 1:
        return -u
    if loss == 2:
        return 0.0
    return -math.log(u)


@jit
def _sequence(P: Scores, i: int, top: int, loss: int) -> float:
    """Compute the softmax of sequence i; return the largest log-weight of tokens with a lift."""
    T = P.gamma.shape[1]
    start, best, level = i * T, P.a[i * T + top], P.rise[i, top]
    total, mean, second = 0.0, 0.0, -np.inf
    for t in range(T):
        if not P.hidden[i, t]:
            gap = P.a[start + t] - best
            value = math.exp(gap) if gap > _FAR else 0.0
            P.e[start + t] = value
            lift = P.rise[i, t] - level
            total += value
            mean += value * lift
            if lift != 0.0:
                second = max(second, gap)
    u = P.gamma[i, top] + mean / total
    P.sign[i], P.total[i], P.shift[i] = 1.0, total, best
    if loss == 3:
        P.log_k[i] = math.log(2.0) + _log_rest(P, i, top, second) - 2.0 * math.log(total)
    elif loss == 4 and u < 0.5:
        P.log_k[i] = -_log_total_score(P, i, best)
    else:
        P.log_k[i] = _log_slope(loss, u) - math.log(total)
    return second + P.log_k[i]


@jit
def _log_rest(P: Scores, i: int, top: int, second: float) -> float:
    """Compute ``log |1 − u|`` plus the log of the total, and its sign, without cancellation.

    ``1 − u = (1 − γ) − Σ_t s_t l_t``, with γ of the most likely token. If γ is one, the sum is all
    of it, relative to the largest log-weight ``second`` of tokens with a lift l.
    """
    T, best, level = P.gamma.shape[1], P.shift[i], P.rise[i, top]
    start, rest = i * T, (1.0 - P.gamma[i, top]) * P.total[i]
    scale = 0.0 if rest != 0.0 or second == -np.inf else second
    for t in range(T):
        lift = P.rise[i, t] - level
        if lift != 0.0 and not P.hidden[i, t]:
            rest -= lift * math.exp(P.a[start + t] - best - scale)
    P.sign[i] = -1.0 if rest < 0.0 else 1.0
    return scale + math.log(abs(rest)) if rest != 0.0 else -np.inf


@jit
def _log_total_score(P: Scores, i: int, best: float) -> float:
    """Compute ``log Σ_t γ_t e^{a_t − best}`` without underflow."""
    T = P.gamma.shape[1]
    start, largest, total = i * T, -np.inf, 0.0
    for t in range(T):
        if not P.hidden[i, t] and P.gamma[i, t] > 0.0:
            largest = max(largest, P.a[start + t] - best + math.log(P.gamma[i, t]))
    if largest == -np.inf:
        return 0.0  # no token has a positive score: no gradient
    for t in range(T):
        if not P.hidden[i, t] and P.gamma[i, t] > 0.0:
            total += math.exp(P.a[start + t] - best + math.log(P.gamma[i, t]) - largest)
    return largest + math.log(total)


@jit
def slope(P: Scores, loss: int) -> float:
    """Compute c; return the logarithm of its scale, without the 1/N of the mean."""
    N, T = P.gamma.shape
    largest = -np.inf
    for i in range(N):
        top, best = 0, -np.inf
        for t in range(T):
            if not P.hidden[i, t] and P.a[i * T + t] > best:
                top, best = t, P.a[i * T + t]
        P.top[i] = top
        largest = max(largest, _sequence(P, i, top, loss))
    largest = largest if largest > -np.inf else 0.0
    for i in range(N):
        _weigh(P, i, int(P.top[i]), largest)
    return largest


@jit
def _weigh(P: Scores, i: int, top: int, largest: float) -> None:
    """Compute c of sequence i, relative to e^largest: ``κ s l − s Σ κ s l``."""
    T = P.gamma.shape[1]
    start, total, level = i * T, 0.0, P.rise[i, top]
    factor = math.exp(P.log_k[i] - largest) if largest > _REPRESENTABLE else 0.0
    for t in range(T):
        lift = P.rise[i, t] - level
        P.c[start + t] = 0.0
        if lift == 0.0 or P.hidden[i, t]:
            continue
        if factor > 0.0 and P.e[start + t] > 0.0:
            weight = P.e[start + t] * factor
        else:
            gap = P.a[start + t] - P.shift[i]
            power = gap + (P.log_k[i] - largest)
            weight = math.exp(min(power, 0.0)) if power > _FARTHER else 0.0
        P.c[start + t] = P.sign[i] * weight * lift
        total += P.c[start + t]
    total /= P.total[i]
    for t in range(T):
        if not P.hidden[i, t]:
            P.c[start + t] -= P.e[start + t] * total


@jit
def best_tokens(P: Scores) -> Ints:
    """Find the token with the highest score of every sequence."""
    N, T = P.gamma.shape
    best = np.zeros(N, np.int64)
    for i in range(N):
        highest = -np.inf
        for t in range(T):
            if not P.hidden[i, t] and P.gamma[i, t] > highest:
                best[i], highest = t, P.gamma[i, t]
    return best


@jit
def excess(P: Scores, best: Ints, loss: int, largest: float) -> float:
    """Compute ``N (L − L⋆) / e^largest`` after :func:`slope`, for losses that fall everywhere.

    The same as :func:`attnmargin.training.rates.excess`.
    """
    N, T = P.gamma.shape
    total = 0.0
    for i in range(N):
        top, start = int(P.top[i]), i * T
        highest, mean = P.gamma[i, best[i]], 0.0
        for t in range(T):
            if not P.hidden[i, t]:
                mean += P.e[start + t] * (P.rise[i, t] - P.rise[i, top])
        u = P.gamma[i, top] + mean / P.total[i]
        if abs(highest - u) >= _NEAR or P.gamma[i, top] != highest:
            total += (_value(loss, u) - _value(loss, highest)) * math.exp(min(-largest, 700.0))
            continue
        # The slope at the midpoint makes the product correct to second order.
        log_weight = _log_slope(loss, 0.5 * (u + highest)) - math.log(P.total[i]) - largest
        for t in range(T):
            lift = P.rise[i, t] - P.rise[i, top]
            if lift != 0.0 and not P.hidden[i, t]:
                total -= math.exp(P.a[start + t] - P.shift[i] + log_weight) * lift
    return total


@jit
def _value(loss: int, u: float) -> float:
    """Compute ℓ(u) of the losses that fall everywhere."""
    if loss == 0:
        return max(-u, 0.0) + math.log1p(math.exp(-abs(u)))
    if loss == 1:
        return math.exp(-u)
    return -u
