"""Gradient descent on W by its coefficients, compiled with numba: many steps in one call.

The steps are those of :class:`attnmargin.training.weights.Coefficients` with the slope of
:class:`attnmargin.attention.Objective`, for a linear head, one trial after the other.
"""

import math
from typing import NamedTuple

import numpy as np

from attnmargin.kernels import Bools, Floats, add, dot, jit

_TINY = 1e-300
# Logarithms above this can be exponentiated apart without loss.
_REPRESENTABLE = -500.0
# Coefficients below this share of the largest change no digit.
_NOTHING = 1e-30


class Trial(NamedTuple):
    """One trial; arrays over its N·T tokens."""

    G: Floats  # (N·T, N·T) kernel
    gamma: Floats  # (N, T) token scores
    hidden: Bools  # (N, T)
    base: Floats  # (N·T,) logits of the start
    beta: Floats  # (N·T,) coefficients
    a: Floats  # (N·T,) logits
    c: Floats  # (N·T,) negative gradient in the logits
    h: Floats  # (N·T,), G c
    e: Floats  # (N·T,), e^{a − max} of each sequence
    log_k: Floats  # (N,), log κ − log Z
    mean: Floats  # (N,), Σ s (γ − γ_top)
    sign: Floats  # (N,), −1 where the loss rises
    shift: Floats  # (N,) largest logit


@jit
def _log_slope(loss: int, u: float) -> float:
    """log |ℓ'(u)|; losses are numbered as in :data:`attnmargin.training.loop.KERNEL_LOSSES`."""
    if loss == 0:
        return -math.log1p(math.exp(u)) if u < 30.0 else -u
    if loss == 1:
        return -u
    if loss == 2:
        return 0.0
    if loss == 3:
        return math.log(max(2.0 * abs(1.0 - u), _TINY))
    return -math.log(u)


@jit
def _sequence(P: Trial, i: int, top: int, loss: int) -> float:
    """Softmax of sequence i; returns the largest log-weight of its other tokens."""
    T = P.gamma.shape[1]
    start, best = i * T, P.a[i * T + top]
    total, mean, second = 0.0, 0.0, -np.inf
    for t in range(T):
        if not P.hidden[i, t]:
            gap = P.a[start + t] - best
            value = math.exp(gap)
            P.e[start + t] = value
            total += value
            mean += value * (P.gamma[i, t] - P.gamma[i, top])
            if t != top:
                second = max(second, gap)
    mean /= total
    u = P.gamma[i, top] + mean
    P.sign[i] = -1.0 if loss == 3 and u > 1.0 else 1.0
    P.mean[i], P.shift[i] = mean, best
    P.log_k[i] = _log_slope(loss, u) - math.log(total)
    return second + P.log_k[i]


@jit
def _slope(P: Trial, tops: Floats, loss: int) -> float:
    """Fill c; returns the logarithm of its scale, without the 1/N of the mean."""
    N, T = P.gamma.shape
    largest = -np.inf
    for i in range(N):
        top, best = 0, -np.inf
        for t in range(T):
            if not P.hidden[i, t] and P.a[i * T + t] > best:
                top, best = t, P.a[i * T + t]
        tops[i] = top
        if best > -np.inf:
            largest = max(largest, _sequence(P, i, top, loss))
        else:
            P.log_k[i] = -np.inf
    largest = largest if largest > -np.inf else 0.0
    for i in range(N):
        _weigh(P, i, int(tops[i]), largest)
    return largest


@jit
def _weigh(P: Trial, i: int, top: int, largest: float) -> None:
    """c of sequence i, relative to e^largest."""
    T = P.gamma.shape[1]
    start, rest = i * T, 0.0
    factor = math.exp(P.log_k[i] - largest)
    apart = largest > _REPRESENTABLE
    for t in range(T):
        P.c[start + t] = 0.0
        if t == top or P.hidden[i, t] or P.log_k[i] == -np.inf:
            continue
        if apart:
            weight = P.e[start + t] * factor
        else:
            weight = math.exp(P.a[start + t] - P.shift[i] + P.log_k[i] - largest)
        lift = P.gamma[i, t] - P.gamma[i, top]
        P.c[start + t] = P.sign[i] * weight * (lift - P.mean[i])
        rest += P.c[start + t]
    P.c[start + top] = -rest


@jit
def _times(G: Floats, x: Floats, out: Floats) -> None:
    """out = G x for symmetric G, without what is negligible."""
    out[:] = 0.0
    size = 0.0
    for j in range(x.size):
        size = max(size, abs(x[j]))
    for j in range(x.size):
        if abs(x[j]) > _NOTHING * size:
            add(out, x[j], G[j], x.size)


@jit
def _penalise(P: Trial, log_scale: float, log_penalty: float) -> float:
    """Add the ridge term to c and h, scaled to ordinary size; returns the new scale."""
    n = P.c.size
    log_D = log_scale + 0.5 * math.log(max(dot(P.c, P.h, n), _TINY))
    log_x = log_penalty + 0.5 * math.log(max(dot(P.beta, P.a, n), _TINY))
    largest = max(log_D, log_x)
    keep, pull = math.exp(log_scale - largest), math.exp(log_penalty - largest)
    for j in range(n):
        P.c[j] = keep * P.c[j] - pull * P.beta[j]
        P.h[j] = keep * P.h[j] - pull * P.a[j]
    return largest


@jit
def _advance(
    P: Trial, tops: Floats, rates: Floats, loss: int, normalize: bool, log_penalty: float
) -> None:
    """Steps with the given rates; logits are made anew at the end."""
    n = P.c.size
    for k in range(rates.size):
        log_scale = _slope(P, tops, loss) - math.log(P.gamma.shape[0])
        _times(P.G, P.c, P.h)
        if log_penalty > -np.inf:
            log_scale = _penalise(P, log_scale, log_penalty)
        if normalize:
            factor = rates[k] / math.sqrt(max(dot(P.c, P.h, n), _TINY))
        else:
            factor = rates[k] * math.exp(log_scale)
        add(P.beta, factor, P.c, n)
        add(P.a, factor, P.h, n)
    _times(P.G, P.beta, P.a)
    add(P.a, 1.0, P.base, n)


@jit
def advance(
    G: Floats,
    gamma: Floats,
    hidden: Bools,
    base: Floats,
    beta: Floats,
    a: Floats,
    rates: Floats,
    rule: Floats,
) -> None:
    """Advance a batch; beta and a are changed in place; rule is (loss, normalize, log 2λ)."""
    B, N, T = gamma.shape
    work, rows = np.empty((3, N * T)), np.empty((5, N))
    for i in range(B):
        P = Trial(
            G[i],
            gamma[i],
            hidden[i],
            base[i],
            beta[i],
            a[i],
            work[0],
            work[1],
            work[2],
            rows[0],
            rows[1],
            rows[2],
            rows[3],
        )
        _advance(P, rows[4], rates[i], int(rule[i, 0]), rule[i, 1] > 0.0, rule[i, 2])
