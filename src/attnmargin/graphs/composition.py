"""The logits inside components that minimise a loss other than the log-loss (paper C, Theorem 2).

    L̄(a) = Σ_i weight_i ℓ(s_i),   s_i = c_iy e^{a_y} / Σ_k c_ik e^{a_k}, the share of its label y

The log-loss is convex in the logits a, and its minimum is finite (Lemma 7). Other losses need not
have a finite minimum: then W_cyc does not exist, and Theorem 2 says nothing.
"""

from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import brentq

from attnmargin.attention.losses import Exponential, Linear, Logistic, Loss, Squared
from attnmargin.graphs.newton import Choices

Floats = NDArray[np.float64]
# Halvings of an interval, to the last bits of a share.
_HALVINGS = 80
# Points of the search over the share of the first of two tokens.
_POINTS = 4001
# Shares below this count as zero: the minimum is at infinite logits.
_ZERO = 1e-12


@final
@dataclass(frozen=True, eq=False)
class Composition:
    """Whether L̄ has a finite minimum, and the logits of mean zero per component that attain it."""

    finite: bool | None  # None: not known
    logits: Floats | None  # (nodes,); None where they are not known, or not finite


@final
@dataclass(frozen=True, eq=False)
class _Bag:
    """Choices among the same tokens, each as often: how often each of them is the label."""

    tokens: NDArray[np.int64]
    counts: Floats
    wanted: Floats


def composition(given: Choices, component: NDArray[np.int64], loss: Loss) -> Composition:
    """Minimise L̄ over the logits of all nodes, component by component.

    It decides components whose choices are all among the same tokens, equally often, where L̄ is
    convex in the shares; and components of two tokens, by a search over one share.
    """
    if not isinstance(loss, Exponential | Linear | Logistic | Squared):
        return Composition(None, None)
    logits, finite = np.zeros(len(component)), True
    for number in np.unique(component):
        nodes = (component == number).nonzero()[0]
        found = _one(_bags(given, nodes), len(nodes), loss)
        if found is None:
            return Composition(None, None)
        finite = finite and bool(np.isfinite(found).all())
        logits[nodes] = found - found.mean() if finite else 0.0
    return Composition(finite, logits if finite else None)


def _bags(given: Choices, nodes: NDArray[np.int64]) -> list[_Bag]:
    """Gather the choices of a component by what there is to choose from."""
    found: dict[bytes, _Bag] = {}
    for i in np.isin(given.chosen, nodes).nonzero()[0]:
        row = slice(given.counts.indptr[i], given.counts.indptr[i + 1])
        order = np.argsort(given.counts.indices[row])
        tokens, counts = given.counts.indices[row][order], given.counts.data[row][order]
        key = tokens.astype(np.int64).tobytes() + counts.astype(float).tobytes()
        bag = found.setdefault(key, _Bag(tokens, counts, np.zeros(len(tokens))))
        bag.wanted[tokens == given.chosen[i]] += given.weight[i]
    return list(found.values())


def _one(bags: list[_Bag], size: int, loss: Loss) -> Floats | None:
    """Return the best logits of one component, infinite where a share vanishes; None if unknown."""
    if len(bags) == 1:
        wanted = bags[0].wanted
        if isinstance(loss, Linear):  # the same for all shares, or best with one token alone
            same = bool(np.ptp(wanted) <= 1e-12 * wanted.max())
            return np.zeros(size) if same else np.where(wanted < wanted.max(), -np.inf, 0.0)
        share = _shares(wanted, loss)
        with np.errstate(divide="ignore"):
            return np.log(np.where(share > _ZERO, share, 0.0) / bags[0].counts)
    return _two(bags, loss) if size == 2 else None


def _shares(wanted: Floats, loss: Loss) -> Floats:
    """Minimise ``Σ_k wanted_k ℓ(s_k)`` over the simplex, for a strictly convex loss.

    Where ``s_k > 0``, ``−wanted_k ℓ'(s_k)`` is the same number λ, found by bisection.
    """
    log_wanted = torch.from_numpy(wanted).log()

    def shares(log_rate: float) -> torch.Tensor:
        low, high = torch.zeros_like(log_wanted), torch.ones_like(log_wanted)
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            steep = log_wanted + loss.log_slope(middle) > log_rate
            low, high = middle.where(steep, low), high.where(steep, middle)
        return low

    ends = log_wanted.unsqueeze(-1) + loss.log_slope(torch.tensor([0.0, 1.0 - 1e-15]).double())
    low, high = float(ends.min().clamp_min(-80.0)), float(ends.max())
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if float(shares(middle).sum()) > 1.0 else (low, middle)
    found = shares(high).numpy()
    return found / found.sum()


def _two(bags: list[_Bag], loss: Loss) -> Floats | None:
    """Search over ``t = e^{a_0} / (e^{a_0} + e^{a_1})``; the ends are infinite logits."""

    def total(t: Floats, slope: bool) -> Floats:
        """Compute L̄, or its derivative in t."""
        found = np.zeros_like(t)
        for bag in bags:
            own = bag.counts[:, None] * np.stack([t, 1.0 - t])
            u = torch.from_numpy(own / own.sum(0))
            if slope:
                pull = bag.wanted[:, None] * loss.log_slope(u).exp().numpy()
                found = found + (pull[1] - pull[0]) * bag.counts.prod() / own.sum(0) ** 2
            else:
                found = found + bag.wanted @ loss.value(u).numpy()
        return found

    def derivative(t: float) -> float:
        return float(total(np.array([t]), slope=True)[0])

    grid = np.linspace(0.0, 1.0, _POINTS)
    values = total(grid, slope=False)
    best = int(values.argmin())
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, _POINTS - 1)]
    if derivative(low) < 0.0 < derivative(high):
        t = float(brentq(derivative, low, high, xtol=1e-15))
        least = float(total(np.array([t]), slope=False)[0])
        return np.log([t, 1.0 - t]) if least < min(values[0], values[-1]) else None
    at_end = (best == 0 and derivative(0.0) > 0.0) or (
        best == _POINTS - 1 and derivative(1.0) < 0.0
    )
    return np.array([0.0, -np.inf]) if at_end else None
