"""Many steps of descent in one call, compiled with numba, one trial after another.

The steps are the same as in :mod:`attnmargin.training.weights`, for a linear head.
"""

import math
from typing import NamedTuple

import numpy as np

from attnmargin.base.kernels import Bools, Floats, add, dot, inner, jit, kernel, mix
from attnmargin.training.slope_kernel import Scores, best_tokens, excess, scores, slope

_TINY = 1e-300
# A norm below this share of its value without cancellation is rounding; a square that the kernel
# gives is inexact below a larger share.
_NOISE, _CANCELS = 16 * 2.0**-52, 2.0**-26
# Coefficients below this share of the largest change no digit.
_NOTHING = 1e-20


class Rule(NamedTuple):
    """How to turn a gradient into a step."""

    loss: int
    normalize: bool
    log_penalty: float  # log 2λ; −inf without a penalty
    p: float


@jit
def _rule(numbers: Floats) -> Rule:
    return Rule(int(numbers[0]), numbers[1] > 0.0, numbers[2], numbers[3])


@jit
def _times(G: Floats, x: Floats, out: Floats) -> None:
    """Compute out = G x for symmetric G, skipping negligible entries of x."""
    out[:] = 0.0
    size = 0.0
    for j in range(x.size):
        size = max(size, abs(x[j]))
    for j in range(x.size):
        if abs(x[j]) > _NOTHING * size:
            add(out, x[j], G[j], x.size)


class Coefficients(NamedTuple):
    """W by its coefficients; arrays over the N·T tokens."""

    G: Floats  # (N·T, N·T) kernel
    lengths: Floats  # norms of the terms x zᵀ
    base: Floats  # logits of W₀
    beta: Floats  # coefficients
    h: Floats  # G c


class Entries(NamedTuple):
    """What the gradient is computed from where its coefficients cancel; d is 0 if they may not."""

    X: Floats  # (N, T, d) tokens
    z: Floats  # (N, e) queries
    W: Floats  # (d, e), W₀
    D: Floats  # (d, e), Σ c x zᵀ
    keys: Floats  # (N, d), Σ_t c x


@jit
def _penalise(P: Scores, W: Coefficients, log_scale: float, log_penalty: float) -> float:
    """Add the ridge term to c and h, rescaled to ordinary size; return the log of the scale."""
    n = P.c.size
    log_D = log_scale + 0.5 * math.log(max(dot(P.c, W.h, n), _TINY))
    log_x = log_penalty + 0.5 * math.log(max(dot(W.beta, P.a, n), _TINY))
    largest = max(log_D, log_x)
    keep, pull = math.exp(log_scale - largest), math.exp(log_penalty - largest)
    for j in range(n):
        P.c[j] = keep * P.c[j] - pull * W.beta[j]
        W.h[j] = keep * W.h[j] - pull * P.a[j]
    return largest


@jit
def _size(c: Floats, lengths: Floats) -> float:
    """Compute ``Σ |c_j| ‖x_j z_jᵀ‖``, the norm of the gradient if nothing cancelled."""
    total = 0.0
    for j in range(c.size):
        total += abs(c[j]) * lengths[j]
    return total


@jit
def _keys_apart(c: Floats, X: Floats, out: Floats) -> int:
    """Compute out = Σ_t c_t x_t for c that sums to zero; return the token with the largest c.

    The other tokens are taken relative to it, so that tokens that are nearly equal lose no digits.
    """
    top = 0
    for t in range(c.size):
        top = t if abs(c[t]) > abs(c[top]) else top
    out[:] = 0.0
    for t in range(c.size):
        for k in range(out.size):
            out[k] += c[t] * (X[t, k] - X[top, k])
    return top


@jit
def _entrywise(P: Scores, E: Entries, h: Floats) -> float:
    """Compute D and h from the tokens; return ``‖D‖²``, or zero if that is rounding."""
    N, T, d = E.X.shape
    e, size = E.z.shape[1], 0.0
    for i in range(N):
        P.top[i] = _keys_apart(P.c[i * T : (i + 1) * T], E.X[i], E.keys[i])
        size += math.sqrt(dot(E.keys[i], E.keys[i], d) * dot(E.z[i], E.z[i], e))
    inner(E.keys, E.z, E.D)
    flat = E.D.reshape(d * e)
    square = dot(flat, flat, d * e)
    if square <= (_NOISE * size) ** 2:
        return 0.0
    for i in range(N):
        top = int(P.top[i])
        for k in range(d):
            E.keys[i, k] = dot(E.D[k], E.z[i], e)
        for t in range(T):
            h[i * T + t] = 0.0
            for k in range(d):
                h[i * T + t] += (E.X[i, t, k] - E.X[i, top, k]) * E.keys[i, k]
    return square


@jit
def _move_start(P: Scores, W: Coefficients, E: Entries, rate: float) -> None:
    """Take a normalised step in the entries of W₀, where the coefficients cancel."""
    square = _entrywise(P, E, W.h)
    if square > 0.0:
        factor = rate / math.sqrt(square)
        for k in range(E.D.shape[0]):
            add(E.W[k], factor, E.D[k], E.D.shape[1])
        add(W.base, factor, W.h, W.h.size)
        add(P.a, factor, W.h, W.h.size)


@jit
def _advance(P: Scores, W: Coefficients, E: Entries, rates: Floats, rule: Rule) -> None:
    """Take steps with the given rates, Polyak's where they are 0; recompute the logits at last."""
    n, penalised = P.c.size, rule.log_penalty > -np.inf
    apart = rule.normalize and not penalised and E.X.size > 0
    best = best_tokens(P)
    for k in range(rates.size):
        largest = slope(P, rule.loss)
        log_scale = largest - math.log(P.gamma.shape[0])
        _times(W.G, P.c, W.h)
        if penalised:
            log_scale = _penalise(P, W, log_scale, rule.log_penalty)
        factor = rates[k]
        if rule.normalize:
            square, size = dot(P.c, W.h, n), _size(P.c, W.lengths)
            if apart and square <= _CANCELS * size**2:
                _move_start(P, W, E, rates[k])
                continue
            factor /= math.sqrt(max(square, _TINY))
            if square <= _NOISE * size**2:
                factor = 0.0  # the gradient cancels, and the remainder is rounding
        elif rates[k] == 0.0:
            square = max(dot(P.c, W.h, n), _TINY)
            factor = min(excess(P, best, rule.loss, largest) / square, 1.0 / math.sqrt(square))
        else:
            factor *= math.exp(log_scale)
        add(W.beta, factor, P.c, n)
        add(P.a, factor, W.h, n)
    _times(W.G, W.beta, P.a)
    add(P.a, 1.0, W.base, n)


@kernel("training of W", 4)
def advance_coefficients(
    X: Floats,
    z: Floats,
    W: Floats,
    G: Floats,
    gamma: Floats,
    rise: Floats,
    hidden: Bools,
    lengths: Floats,
    base: Floats,
    beta: Floats,
    a: Floats,
    rates: Floats,
    rules: Floats,
) -> None:
    """Advance a batch; update W₀, its logits, beta and a in place."""
    B, N, T = gamma.shape
    d, e = W.shape[1:]
    tokens, sequences, h = np.empty((2, N * T)), np.empty((5, N)), np.empty(N * T)
    D, keys = np.empty((d, e)), np.empty((N, d))
    for i in range(B):
        P = scores(gamma[i], rise[i], hidden[i], a[i], tokens, sequences)
        E = Entries(X[i], z[i], W[i], D, keys)
        own = Coefficients(G[i], lengths[i], base[i], beta[i], h)
        _advance(P, own, E, rates[i], _rule(rules[i]))


@jit
def _power(x: float, r: float) -> float:
    """Compute x^r for x ≥ 0, fast for common powers."""
    if r == 1.0:
        return x
    if r == 2.0:
        return x * x
    if r == 0.5:
        return math.sqrt(x)
    if r == 1.5:
        return x * math.sqrt(x)
    return x**r


@jit
def _norm(x: Floats, p: float) -> float:
    """Compute the ℓp norm."""
    if p == 2.0:
        square = dot(x, x, x.size)
        if 1e-280 < square < 1e280:
            return math.sqrt(square)
    largest, total = 0.0, 0.0
    for j in range(x.size):
        largest = max(largest, abs(x[j]))
    if largest == 0.0:
        return 0.0
    for j in range(x.size):
        total += _power(abs(x[j]) / largest, p)
    return largest * total ** (1.0 / p)


@jit
def _step(x: Floats, dual: Floats, D: Floats, log_scale: float, rate: float, rule: Rule) -> None:
    """Step x along D as in :meth:`attnmargin.training.rules.Mirror.step`; dual is ∇ψ(x)."""
    if rule.log_penalty > -np.inf:
        log_D = log_scale + math.log(max(_norm(D, 2.0), _TINY))
        log_x = rule.log_penalty + math.log(max(_norm(x, 2.0), _TINY))
        largest = max(log_D, log_x)
        keep, pull = math.exp(log_scale - largest), math.exp(rule.log_penalty - largest)
        for j in range(x.size):
            D[j] = keep * D[j] - pull * x[j]
        log_scale = largest
    if rule.normalize:
        size = _norm(D, rule.p / (rule.p - 1.0))
        factor = rate / size if size > 0.0 else 0.0
    else:
        factor = rate * math.exp(log_scale)
    if rule.p == 2.0:
        add(x, factor, D, x.size)
        return
    for j in range(x.size):
        dual[j] += factor * D[j]
        x[j] = math.copysign(_power(abs(dual[j]), 1.0 / (rule.p - 1.0)), dual[j])


@jit
def _dualise(x: Floats, dual: Floats, p: float) -> None:
    """Compute dual = ∇ψ(x)."""
    if p != 2.0:
        for j in range(x.size):
            dual[j] = math.copysign(_power(abs(x[j]), p - 1.0), x[j])


class Tokens(NamedTuple):
    """Tokens and queries of one trial, and buffers for N sequences."""

    X: Floats  # (N, T, d)
    z: Floats  # (N, e)
    image: Floats  # (N, d), W z
    keys: Floats  # (N, d), Σ_t c x


@jit
def _logits(P: Scores, data: Tokens) -> None:
    """Compute the logits from the images of the queries."""
    N, T, d = data.X.shape
    for i in range(N):
        for t in range(T):
            P.a[i * T + t] = dot(data.X[i, t], data.image[i], d)


@jit
def _keys(P: Scores, data: Tokens) -> None:
    """Compute Σ_t c_it x_it."""
    N, T, _ = data.X.shape
    data.keys[:] = 0.0
    for i in range(N):
        mix(data.keys[i], P.c[i * T : (i + 1) * T], data.X[i])


@kernel("mirror descent on W", 4)
def advance_entries(
    X: Floats,
    z: Floats,
    gamma: Floats,
    rise: Floats,
    hidden: Bools,
    W: Floats,
    rates: Floats,
    rules: Floats,
) -> None:
    """Advance a batch of W in place."""
    B, N, T, d = X.shape
    e = z.shape[2]
    tokens, sequences, a = np.empty((2, N * T)), np.empty((5, N)), np.empty(N * T)
    image, keys = np.empty((N, d)), np.empty((N, d))
    D, dual = np.empty((d, e)), np.empty(d * e)
    for b in range(B):
        P = scores(gamma[b], rise[b], hidden[b], a, tokens, sequences)
        data, rule, flat = Tokens(X[b], z[b], image, keys), _rule(rules[b]), W[b].reshape(d * e)
        _dualise(flat, dual, rule.p)
        for k in range(rates.shape[1]):
            for i in range(N):
                for c in range(d):
                    image[i, c] = dot(W[b, c], z[b, i], e)
            _logits(P, data)
            log_scale = slope(P, rule.loss) - math.log(N)
            _keys(P, data)
            inner(keys, z[b], D)
            _step(flat, dual, D.reshape(d * e), log_scale, rates[b, k], rule)


@kernel("training of K and Q", 4)
def advance_factors(
    X: Floats,
    z: Floats,
    gamma: Floats,
    rise: Floats,
    hidden: Bools,
    K: Floats,
    Q: Floats,
    rates: Floats,
    rules: Floats,
) -> None:
    """Advance a batch of (K, Q) in place."""
    B, N, T, d = X.shape
    e, m = z.shape[2], K.shape[2]
    tokens, sequences, a = np.empty((2, N * T)), np.empty((5, N)), np.empty(N * T)
    image, keys = np.empty((N, d)), np.empty((N, d))
    zQ, xK = np.empty((N, m)), np.empty((N, m))
    of_K, of_Q, duals = np.empty((d, m)), np.empty((e, m)), np.empty((2, max(d, e) * m))
    for b in range(B):
        P = scores(gamma[b], rise[b], hidden[b], a, tokens, sequences)
        data, rule = Tokens(X[b], z[b], image, keys), _rule(rules[b])
        flat_K, flat_Q = K[b].reshape(d * m), Q[b].reshape(e * m)
        dual_K, dual_Q = duals[0, : d * m], duals[1, : e * m]
        _dualise(flat_K, dual_K, rule.p)
        _dualise(flat_Q, dual_Q, rule.p)
        for k in range(rates.shape[1]):
            zQ[:] = 0.0
            for i in range(N):
                mix(zQ[i], z[b, i], Q[b])
                for c in range(d):
                    image[i, c] = dot(K[b, c], zQ[i], m)
            _logits(P, data)
            log_scale = slope(P, rule.loss) - math.log(N)
            _keys(P, data)
            xK[:] = 0.0
            for i in range(N):
                mix(xK[i], keys[i], K[b])
            inner(keys, zQ, of_K)
            inner(z[b], xK, of_Q)
            _step(flat_K, dual_K, of_K.reshape(d * m), log_scale, rates[b, k], rule)
            _step(flat_Q, dual_Q, of_Q.reshape(e * m), log_scale, rates[b, k], rule)
