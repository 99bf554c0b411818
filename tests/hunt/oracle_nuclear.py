"""Nuclear-norm problems with planted answers.

``orthogonal``: the rows of different sequences are orthogonal on both sides. With row lengths s,
every optimal W has the value Σ 1/s over the shortest row of each pair of axes, and exactly these
rows are tight. The axes are columns of whole-number orthogonal matrices and the scales are powers
of two, so that the floats are exact.

``certified``: ``G = U Vᵀ + complement`` is a subgradient at ``W = U S Vᵀ``. For queries R, the
columns of ``G R⁻ᵀ`` are token differences with ``Σ λ_i left_i right_iᵀ = G``.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.hunt.generators import GROUP, Floats, Group, seeded

_AXES = {
    1: [[[1]]],
    2: [[[1, 0], [0, 1]], [[1, 1], [1, -1]], [[3, 4], [-4, 3]]],
    3: [[[1, 0, 0], [0, 1, 0], [0, 0, 1]], [[1, 2, 2], [2, 1, -2], [2, -2, 1]]],
}


@dataclass(frozen=True)
class Planted:
    """A group with the value of its solutions and the slack of every row."""

    group: Group
    value: Floats  # (G,)
    slack: Floats  # (G, n, T − 1), relative; zero for tight rows


def planted_nuclear(seed: int, k: int) -> Planted:
    """Return the k-th planted group: orthogonal and certified in turn."""
    rng = seeded(seed, "nuclear", k)
    return _certified(rng) if k % 2 else _orthogonal(rng)


def _axes(rng: np.random.Generator, d: int) -> Floats:
    known = _AXES[d]
    return np.array(known[int(rng.integers(0, len(known)))], dtype=float)


def _labels(rng: np.random.Generator, G: int, n: int, d: int) -> tuple[Floats, Floats]:
    return rng.choice([-1.0, 1.0], (G, n)), rng.standard_normal((G, d))


def _orthogonal(rng: np.random.Generator) -> Planted:
    d, n, T = int(rng.integers(1, 4)), int(rng.integers(1, 4)), int(rng.integers(2, 5))
    reach = int(rng.choice([0, 3, 27]))
    left, right = _axes(rng, d), _axes(rng, d)
    axis = rng.integers(0, d, (GROUP, n))
    scale = 2.0 ** rng.integers(-reach, reach + 1, (GROUP, n))
    factor = rng.integers(1, 4, (GROUP, n, T - 1)).astype(float)
    X = np.zeros((GROUP, n, T, d))
    X[:, :, 1:] = -(factor * scale[..., None])[..., None] * left[axis][:, :, None, :]
    place = rng.integers(0, T, (GROUP, n))
    order = (np.arange(T) - place[..., None]) % T
    X = np.take_along_axis(X, order[..., None], 2)
    z = right[axis] * 2.0 ** rng.integers(-reach, reach + 1, (GROUP, n, 1))
    # row values of W = Σ_j w_j left_j right_jᵀ / (‖left_j‖ ‖right_j‖) are w_j times these
    size = np.linalg.norm(left[0]) * np.linalg.norm(right[0])
    reached = (factor * scale[..., None]) * (z @ right.T).max(-1)[..., None] / (right[0] @ right[0])
    value, slack = np.zeros(GROUP), np.zeros_like(reached)
    for g in range(GROUP):
        for j in set(axis[g].tolist()):
            least = reached[g, axis[g] == j].min()
            value[g] += 1.0 / (least * size)
            slack[g, axis[g] == j] = reached[g, axis[g] == j] / least - 1.0
    y, v = _labels(rng, GROUP, n, d)
    group = Group("orthogonal", reach > 3, X, z, y, v, place)
    return Planted(group, value, _in_row_order(slack, place))


def _in_row_order(slack: Floats, place: NDArray[np.int64]) -> Floats:
    """Sort by token: the loser with number r stands r + 1 places after the winner, cyclically."""
    T = slack.shape[-1] + 1
    out = np.zeros_like(slack)
    for r in range(T - 1):
        token = (place + r + 1) % T
        row = token - (token > place)
        np.put_along_axis(out, row[..., None], slack[..., r : r + 1], -1)
    return out


def _certified(rng: np.random.Generator) -> Planted:
    d = int(rng.integers(2, 4))
    r, T = (1 if d == 2 else int(rng.integers(1, 3))), int(rng.integers(2, 4))
    parts = [_one_certified(rng, d, r, T) for _ in range(GROUP)]
    X, z, value, slack = (np.stack(part) for part in zip(*parts, strict=True))
    y, v = _labels(rng, GROUP, d, d)
    group = Group("certified", False, X, z, y, v, np.zeros((GROUP, d), dtype=np.int64))
    return Planted(group, value, slack)


def _one_certified(rng: np.random.Generator, d: int, r: int, T: int) -> tuple[Any, ...]:
    while True:
        U, V, Q = (np.linalg.qr(rng.standard_normal((d, d)))[0] for _ in range(3))
        sigma = np.where(np.arange(d) < r, 1.0, rng.uniform(0.0, 0.9, d))
        G = (U * sigma) @ V.T
        W = (U[:, :r] * rng.uniform(0.5, 2.0, r)) @ V[:, :r].T
        R = Q + 0.1 * rng.standard_normal((d, d))
        L = G @ np.linalg.inv(R).T
        reached = np.einsum("di,de,ei->i", L, W, R)
        if reached.min() < 0.05 or not _determined(L, R, U[:, :r], V[:, :r]):
            continue
        X, slack = np.zeros((d, T, d)), np.zeros((d, T - 1))
        X[:, 1] = -(L / reached).T
        for t in range(2, T):
            loser, slack[:, t - 1] = rng.standard_normal((d, d)), rng.uniform(0.01, 1.0, d)
            now = np.einsum("id,de,ei->i", loser, W, R)
            X[:, t] = -loser * ((1.0 + slack[:, t - 1]) / now)[:, None]
        return X, R.T, np.linalg.svd(W)[1].sum(), slack


def _determined(L: Floats, R: Floats, U: Floats, V: Floats) -> bool:
    """Whether the tight rows leave only one symmetric S in ``W = U S Vᵀ``."""
    left, right = L.T @ U, R.T @ V
    outer = np.einsum("ma,mb->mab", left, right)
    both = outer + outer.transpose(0, 2, 1)
    i, j = np.triu_indices(U.shape[1])
    size = np.linalg.svd(both[:, i, j])[1]
    return len(size) >= len(i) and bool(size[len(i) - 1] > 0.05 * size[0])
