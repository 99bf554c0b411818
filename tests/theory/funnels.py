"""The inequality of Theorem B with 50 digits, written from its statement; logistic loss."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from mpmath import mp, mpf

import attnmargin as am

Number = Any  # mpmath has no types
CUTS = ("0", "0.003", "0.01", "0.03", "0.1", "0.3")
SPLITS = ("0.02", "0.1", "0.5", "1")


@dataclass
class Row:
    """One row (i, t)."""

    sequence: int
    entries: list[Number]
    gap: Number
    held: bool
    m: Number = 0
    delta: Number = 0
    dual: Number = 0
    v: Number = 0
    across: Number = 0


class Statement:
    """Theorem B at a point W of one instance, for a selection."""

    def __init__(self, data: am.AttentionData, W: Any, selection: list[int]) -> None:
        assert data.y is not None
        assert data.v is not None
        with mp.workdps(50):
            X, z = (np.vectorize(mpf)(x.double().numpy()) for x in (data.X, data.z))
            v, y = (np.vectorize(mpf)(x.double().numpy()) for x in (data.v, data.y))
            gamma = y[:, None] * (X @ v)
            solution = am.solve(am.token_problem(data.X, data.z, selection))
            names = solution.problem.names
            pairs = zip(
                names.sequence.flatten().tolist(), names.other.flatten().tolist(), strict=True
            )
            held = (solution.support & (solution.dual > 0)).tolist()
            self.rows = [
                Row(i, np.outer(X[i, selection[i]] - X[i, t], z[i]).ravel().tolist(),
                    gamma[i, selection[i]] - gamma[i, t], on)
                for (i, t), on in zip(pairs, held, strict=True)
            ]  # fmt: skip
            self.n = len(z)
            self.kappa = [1 / (1 + mp.exp(gamma[i, a])) for i, a in enumerate(selection)]
            self.bend = [1 / (1 + mp.exp(-max(gamma[i]))) for i in range(self.n)]
            self._solve()
            self._place([mpf(x) for x in np.asarray(W, dtype=float).ravel()])

    def _solve(self) -> None:
        S = [r for r in self.rows if r.held]
        self.S, self.K = S, mp.matrix([[_dot(a.entries, b.entries) for b in S] for a in S])
        for row, x in zip(S, mp.lu_solve(self.K, mp.ones(len(S), 1)), strict=True):
            row.dual = x
        self.theta2 = 1 / mp.fsum(r.dual for r in S)
        W = [mp.fsum(r.dual * r.entries[k] for r in S) for k in range(len(S[0].entries))]
        for row in self.rows:
            sigma = _dot(row.entries, W)
            row.delta = mpf(0) if row.held else sigma - 1
            square = _dot(row.entries, row.entries) - self.theta2 * sigma**2
            row.across = mp.sqrt(max(square, mpf(0)))
        assert all(r.dual > 0 for r in S)
        assert all(r.delta >= 0 for r in self.rows)
        root = [mp.sqrt(r.dual) for r in S]
        inner = mp.matrix(len(S), len(S))
        for i in range(len(S)):
            for j in range(len(S)):
                inner[i, j] = root[i] * (self.K[i, j] - self.theta2) * root[j]
        self.spread = max(mp.eigsy(inner, eigvals_only=True))

    def _place(self, W: list[Number]) -> None:
        for row in self.rows:
            row.m = _dot(row.entries, W)
        w = [self.theta2 * r.dual for r in self.S]
        ideal = [mp.log(self.kappa[r.sequence] * r.gap / (self.n * r.dual)) for r in self.S]
        self.zeta = _dot(w, ideal)
        self.g = _dot(w, [r.m for r in self.S])
        x = [r.m - self.g - a + self.zeta for r, a in zip(self.S, ideal, strict=True)]
        y = list(mp.lu_solve(self.K, mp.matrix(x)))
        self.rho2 = _dot(x, y)
        for row in self.rows:
            along = mp.fsum(
                c * _dot(row.entries, s.entries) for c, s in zip(y, self.S, strict=True)
            )
            row.v = row.m - self.g * (1 + row.delta) - along

    def closes(self, R: Number, cut: Number, eta: Number, split: Number) -> Number | None:
        """Return b if the inequality holds, else None."""
        g, rows, theta = self.g, self.rows, mp.sqrt(self.theta2)
        e = {id(r): mp.exp(r.across * R - g * (1 + r.delta) - r.v) for r in rows}
        Q = [mp.fsum(e[id(r)] for r in rows if r.sequence == i) for i in range(self.n)]
        D = [mp.fsum(e[id(r)] * abs(r.gap) for r in rows if r.sequence == i) for i in range(self.n)]
        if max(Q) >= 0.9 or any(D[r.sequence] >= r.gap / 2 for r in self.S):
            return None
        bend = self.bend
        eps = max(bend[r.sequence] * D[r.sequence] + Q[r.sequence]
                  - mp.log(1 - D[r.sequence] / r.gap) for r in self.S)  # fmt: skip
        force = {
            id(r): self.kappa[r.sequence] * mp.exp(bend[r.sequence] * D[r.sequence]) / self.n
            * (abs(r.gap) + D[r.sequence]) * mp.exp(-self.zeta - r.v - r.delta * g)
            for r in rows
        }  # fmt: skip
        off = [r for r in rows if not r.held]
        low = [r for r in off if r.gap > D[r.sequence]]
        high = [r for r in off if r.gap <= D[r.sequence]]
        slow = [r for r in low if r.delta <= cut]
        fast = [r for r in low if r.delta > cut]
        P = {id(r): force[id(r)] * mp.exp(r.across * R) for r in off}
        hbar = self.theta2 * mp.fsum((1 + r.delta) * P[id(r)] for r in high)
        omega = mp.exp(-eps) - hbar
        if omega <= 0:
            return None
        p, wide = eta * theta / omega, max(r.across**2 for r in rows if r not in high)
        square = p * (self.spread + wide * hbar / self.theta2) + wide * eta / theta
        if not slow:
            top = max(r.across * R for r in self.S)
            other = p * (self.spread * (1 + mp.exp(eps + top))
                         + mp.fsum(P[id(r)] * r.across**2 for r in low))  # fmt: skip
            square = min(square, other)
        c = (1 + split) * square / 2
        if c >= 2:
            return None
        b = mp.exp(c - 1) / omega * mp.fsum(force[id(r)] for r in slow)
        tau = 1 - max(r.across * b / R for r in rows)
        rate = {id(r): r.delta - r.across * b / R for r in high}
        if tau <= 0 or any(x <= 0 for x in rate.values()):
            return None
        terms, most = [], []
        for r in fast:
            X = r.across * R
            psi = mp.exp(-X) * (X + c) if not slow and 1 - c > X else mp.exp(c - 1)
            terms.append(force[id(r)] * psi / r.delta)
            most.append(force[id(r)] * psi)
        for r in high:
            X, a = r.across * R, r.across * b / R
            terms.append(P[id(r)] * (X / rate[id(r)] + a / rate[id(r)] ** 2))
            most.append(P[id(r)] * (X + a / (mp.e * rate[id(r)])))
        weight = (1 + 1 / split) * p / 2
        terms += [weight * P[id(j)] * P[id(k)] * j.across * k.across / (rate[id(j)] + rate[id(k)])
                  for j in high for k in high]  # fmt: skip
        most.append(weight * mp.fsum(P[id(r)] * r.across for r in high) ** 2)
        support = eps**2 / (8 * (1 - c / 2) * self.theta2) * (1 + (1 + hbar) / omega)
        left = self.rho2 / 2 + (mp.fsum(terms) + 2 * eta * theta * mp.fsum(most)) / omega
        left += support * (1 / (2 * tau) + eta * theta)
        return b if left < R**2 / 2 else None

    def holds(self, R: float, eta: float) -> list[Number]:
        """Return every b for which the inequality holds with a radius and a step."""
        with mp.workdps(50):
            tries = [
                self.closes(mpf(R), mpf(cut), mpf(eta), mpf(split))
                for cut in CUTS
                for split in (SPLITS if eta > 0 else ("1",))
            ]
        return [b for b in tries if b is not None]


def _dot(x: list[Number], y: list[Number]) -> Number:
    return mp.fdot(zip(x, y, strict=True))
