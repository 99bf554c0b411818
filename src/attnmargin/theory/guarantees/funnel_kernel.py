"""The search for a funnel (Theorem B), compiled with numba, one trial after another.

The letters are those of ``docs/guarantees.md``. Without numba it runs as it is written, so its
functions are numpy's, which do not raise where a number is infinite.
"""

import math
from typing import NamedTuple

import numpy as np

from attnmargin.base.kernels import Bools, Floats, jit, kernel

# Radii per search, and the largest ``‖A^⊥‖ R`` that is tried.
_RADII, _FAR = 40, 100.0
# Rows whose δ is at most this may be slow; shares by which squares are split.
_CUTS = np.array([0.0, 0.003, 0.01, 0.03, 0.1, 0.3])
_SPLITS = np.array([0.02, 0.1, 0.5, 1.0])
# Least values of E, 1 − c/2 and τ; what is kept of R, against rounding.
_LEAST, _ROOM, _RATE, _SAFE = 0.05, 0.02, 0.1, 0.999
# Bisections of the longest step.
_HALVINGS = 12


class Rows(NamedTuple):
    """The rows of one trial, M each, without those that do not exist."""

    base: Floats  # margins of the centre, g₀ σ + v, from below
    across: Floats  # ‖A^⊥‖
    delta: Floats  # δ
    sigma: Floats
    gap: Floats  # Δ
    log_a: Floats  # log κ^∞ − log n
    bend: Floats  # Λ
    length: Floats  # ‖A‖
    dual: Floats  # λ on S, zero elsewhere
    sequence: Floats
    held: Bools


class Centre(NamedTuple):
    """The numbers of one trial."""

    g: float
    zeta: float
    rho: float  # ρ₀, from above
    theta: float  # Θ
    spread: float  # M
    sequences: int


class Buffers(NamedTuple):
    """Q̂ and D̂ per sequence, and the log of B per row."""

    Q: Floats
    D: Floats
    log_B: Floats


class Found(NamedTuple):
    """A funnel; ``R`` is zero if there is none."""

    R: float
    b: float
    tau: float
    share: float
    log_gradient: float


@jit
def _none() -> Found:
    return Found(0.0, 0.0, 0.0, 0.0, 0.0)


@jit
def _shares(P: Rows, C: Centre, R: float, own: Buffers) -> bool:
    """Compute Q̂, D̂ and log B; false if attention is not concentrated enough."""
    own.Q[:] = 0.0
    own.D[:] = 0.0
    for j in range(P.base.size):
        e = np.exp(min(P.across[j] * R - P.base[j], 50.0))
        i = int(P.sequence[j])
        own.Q[i] += e
        own.D[i] += e * abs(P.gap[j])
    for i in range(C.sequences):
        if own.Q[i] >= 0.9:
            return False
    for j in range(P.base.size):
        D = own.D[int(P.sequence[j])]
        if P.held[j] and 0.5 * P.gap[j] <= D:
            return False
        a = P.log_a[j] + P.bend[j] * D + np.log(abs(P.gap[j]) + D)
        own.log_B[j] = a - C.zeta - P.base[j] + C.g
    return True


@jit
def _epsilon(P: Rows, own: Buffers) -> float:
    eps = 0.0
    for j in range(P.base.size):
        if P.held[j]:
            i = int(P.sequence[j])
            D = own.D[i]
            eps = max(eps, P.bend[j] * D + own.Q[i] - np.log1p(-D / P.gap[j]))
    return eps


@jit
def _is_high(P: Rows, own: Buffers, j: int) -> bool:
    return not P.held[j] and P.gap[j] <= own.D[int(P.sequence[j])]


class Forces(NamedTuple):
    """Sums over the rows off S that do not depend on the step."""

    eps: float
    hbar: float
    omega: float
    wide: float  # β²
    low: float  # Σ_low B e^X ‖A^⊥‖²
    tight: float  # e^{ε + max_S X}
    slow: float  # Σ_slow B
    known: bool


@jit
def _forces(P: Rows, C: Centre, R: float, cut: float, own: Buffers) -> Forces:
    eps, hbar, wide, low, slow, top = _epsilon(P, own), 0.0, 0.0, 0.0, 0.0, 0.0
    known = True
    for j in range(P.base.size):
        X = P.across[j] * R
        if _is_high(P, own, j):
            known = known and P.delta[j] > 0.0
            hbar += C.theta**2 * P.sigma[j] * np.exp(own.log_B[j] + X)
            continue
        wide = max(wide, P.across[j] ** 2)
        if P.held[j]:
            top = max(top, X)
            continue
        low += np.exp(own.log_B[j] + X) * P.across[j] ** 2
        if P.delta[j] <= cut:
            slow += np.exp(own.log_B[j])
    omega = np.exp(-eps) - hbar
    known = known and omega > _LEAST
    return Forces(eps, hbar, omega, wide, low, np.exp(min(eps + top, 600.0)), slow, known)


@jit
def _pairs(P: Rows, R: float, b: float, own: Buffers) -> float:
    """Compute ``Σ_{j,k ∈ H} P_j P_k ‖A_j^⊥‖ ‖A_k^⊥‖ / (δ'_j + δ'_k)``."""
    total = 0.0
    for j in range(P.base.size):
        if not _is_high(P, own, j):
            continue
        first = np.exp(own.log_B[j] + P.across[j] * R) * P.across[j]
        for k in range(P.base.size):
            if _is_high(P, own, k):
                second = np.exp(own.log_B[k] + P.across[k] * R) * P.across[k]
                rates = P.delta[j] + P.delta[k] - (P.across[j] + P.across[k]) * b / R
                total += first * second / rates
    return total


@jit
def _closes(
    P: Rows, C: Centre, R: float, cut: float, eta: float, split: float, F: Forces, own: Buffers
) -> Found:
    """Check the inequality of Theorem B for a radius, slow rows, a step and a split."""
    p = eta * C.theta / F.omega
    square = p * (C.spread + F.wide * F.hbar / C.theta**2) + F.wide * eta / C.theta
    if F.slow == 0.0:  # the other bound uses R, which grows if there are slow rows
        square = min(square, p * (C.spread * (1.0 + F.tight) + F.low))
    c = 0.5 * (1.0 + split) * square
    if 1.0 - 0.5 * c <= _ROOM:
        return _none()
    b = F.slow * np.exp(c - 1.0) / F.omega
    total, most, ways, steepest = 0.0, 0.0, 0.0, 0.0
    for j in range(P.base.size):
        X, grow = P.across[j] * R, P.across[j] * b / R
        steepest = max(steepest, grow)
        if P.held[j]:
            continue
        if _is_high(P, own, j):
            rate = P.delta[j] - grow
            if rate <= 0.0:
                return _none()
            force = np.exp(own.log_B[j] + X)
            total += force * (X / rate + grow / rate**2)
            most += force * (X + grow / (math.e * rate))
            ways += force * P.across[j]
        elif P.delta[j] > cut:
            psi = np.exp(c - 1.0)
            if b == 0.0 and 1.0 - c > X:
                psi = np.exp(-X) * (X + c)
            force = np.exp(own.log_B[j]) * psi
            total += force / P.delta[j]
            most += force
    tau = 1.0 - steepest
    if not tau > _RATE:
        return _none()
    weight = 0.5 * (1.0 + 1.0 / split) * p
    if weight > 0.0 and ways > 0.0:
        total += weight * _pairs(P, R, b, own)
        most += weight * ways**2
    jump = eta * C.theta
    support = F.eps**2 / (8.0 * (1.0 - 0.5 * c) * C.theta**2) * (1.0 + (1.0 + F.hbar) / F.omega)
    half = 0.5 * C.rho**2 + (total + 2.0 * jump * most) / F.omega + support * (0.5 / tau + jump)
    if not np.sqrt(2.0 * half) <= _SAFE * R:
        return _none()
    return Found(R, b, tau, 1.0 / (1.0 + own.Q.max()), _log_gradient(P, C, R, F.eps, own))


@jit
def _log_gradient(P: Rows, C: Centre, R: float, eps: float, own: Buffers) -> float:
    """Compute the log of Ĝ, which no gradient in the funnel exceeds."""
    largest = -np.inf
    for turn in range(2):
        total = 0.0
        for j in range(P.base.size):
            power = np.log(P.length[j]) + P.across[j] * R
            power += np.log(P.dual[j]) + eps if P.held[j] else own.log_B[j]
            if turn == 0:
                largest = max(largest, power)
            else:
                total += np.exp(power - largest)
    return C.zeta - C.g + largest + np.log(total)


@jit
def _try(P: Rows, C: Centre, R: float, cut: float, eta: float, own: Buffers) -> Found:
    if not _shares(P, C, R, own):
        return _none()
    F = _forces(P, C, R, cut, own)
    if not F.known:
        return _none()
    if eta == 0.0:
        return _closes(P, C, R, cut, eta, 1.0, F, own)
    for split in _SPLITS:
        found = _closes(P, C, R, cut, eta, split, F, own)
        if found.R > 0.0:
            return found
    return _none()


@jit
def _search(P: Rows, C: Centre, eta: float, measured: bool, own: Buffers, out: Floats) -> None:
    """Write R, b, τ, share, log Ĝ and the longest step of the first funnel found, else zeros."""
    widest = max(P.across.max(), 1e-300)
    first = max(1.001 * C.rho, 1e-3 / widest)
    last = max(_FAR / widest, 3.0 * first)
    for cut in _CUTS:
        for k in range(_RADII):
            R = first * (last / first) ** (k / (_RADII - 1.0))
            found = _try(P, C, R, cut, eta, own)
            if found.R > 0.0:
                out[0], out[1], out[2] = found.R, found.b, found.tau
                out[3], out[4] = found.share, found.log_gradient
                out[5] = _longest(P, C, R, cut, eta, own) if measured else eta
                return


@jit
def _longest(P: Rows, C: Centre, R: float, cut: float, eta: float, own: Buffers) -> float:
    """Find a longer step for which the inequality holds, here or in a wider funnel."""
    best = eta
    for wider in (1.0, 1.5, 2.5, 4.0):
        high = max(2.0 * best, 1e-3 / C.theta)
        while _try(P, C, wider * R, cut, high, own).R > 0.0:
            best, high = high, 2.0 * high
        low = best
        if _try(P, C, wider * R, cut, low, own).R == 0.0:
            continue
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            if _try(P, C, wider * R, cut, middle, own).R > 0.0:
                low = middle
            else:
                high = middle
        best = low
    return best


@kernel("search for guarantees", 4)
def search_funnels(
    rows: Floats,
    held: Bools,
    counts: Floats,
    centres: Floats,
    eta: Floats,
    measured: Floats,
    out: Floats,
) -> None:
    """Search trial by trial: rows ``(B, 10, M)``, centres ``(B, 6)``, out ``(B, 6)``."""
    B, _, M = rows.shape
    buffers = np.empty((3, max(M, int(centres[:, 5].max()))))
    for i in range(B):
        m, x = int(counts[i]), centres[i]
        C = Centre(x[0], x[1], x[2], x[3], x[4], int(x[5]))
        own = Buffers(buffers[0, : C.sequences], buffers[1, : C.sequences], buffers[2, :m])
        r = rows[i, :, :m]
        P = Rows(r[0], r[1], r[2], r[3], r[4], r[5], r[6], r[7], r[8], r[9], held[i, :m])
        if m > 0:
            _search(P, C, eta[i], measured[i] > 0.0, own, out[i])
