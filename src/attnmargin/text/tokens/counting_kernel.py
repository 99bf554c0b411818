"""Counts of tokens and their chance, compiled: this module imports the compiler."""

import math
from typing import Any

import numpy as np

from attnmargin.base.kernels import jit, kernel

# What a word is to pairs, if it is skipped.
SKIPPED = -1
# Terms below this share of the largest one are left out.
_SMALL = 1e-20
# p-values this close to one are on neither side.
_EQUAL = 1e-9


@kernel("counts of tokens", 0)
def count(ids: Any, start: Any, labels: Any, counts: Any) -> None:
    """Add up the occurrences, texts and squares of every token by class."""
    seen = np.zeros(counts.shape[1], np.int64)
    for i in range(labels.size):
        y = labels[i]
        for j in range(start[i], start[i + 1]):
            seen[ids[j]] += 1
        for j in range(start[i], start[i + 1]):
            s = ids[j]
            if seen[s] > 0:
                counts[0, s, y] += seen[s]
                counts[1, s, y] += 1
                counts[2, s, y] += seen[s] * seen[s]
                seen[s] = 0


@kernel("replacement of words", 0)
def replace(words: Any, start: Any, tokens: Any, first: Any, ids: Any, ends: Any) -> None:
    """Fill in the tokens of all texts, and where each text ends."""
    total = 0
    for t in range(start.size - 1):
        for i in range(start[t], start[t + 1]):
            for j in range(first[words[i]], first[words[i] + 1]):
                ids[total] = tokens[j]
                total += 1
        ends[t + 1] = total


@kernel("pairs of words", 0)
def collect(
    ids: Any, start: Any, close: Any, item: Any, base: int, W: int,
    codes: Any, spoken: Any, ends: Any,
) -> None:  # fmt: skip
    """Fill in pairs of neighbouring items, and where each text ends."""
    total = 0
    for t in range(start.size - 1):
        before, first = -1, 0
        for i in range(start[t], start[t + 1]):
            if not close[i]:
                before = -1
            w = ids[i]
            own = item[w]
            if own == SKIPPED:
                continue
            if before >= 0 and own >= 0 and own != base - 1:
                codes[total], spoken[total] = before * base + own, first * W + w
                total += 1
            before, first = own, w
        ends[t + 1] = total


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
def mid_p(k: Any, totals: Any, n0: int, n1: int, odds: Any, out: Any, side: Any) -> None:
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
