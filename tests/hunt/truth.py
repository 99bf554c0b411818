"""Exact answers about the margin problems of a group, instance by instance."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

import attnmargin as am
from tests.hunt.answers import SCORE_DOUBT, tight_truth
from tests.hunt.generators import Group
from tests.hunt.oracle_exact import Exact, Shortest, exact_rows, shortest_point
from tests.hunt.oracle_lp import lp_solution


def problem_rows(problem: am.MarginProblem) -> Iterator[Exact]:
    """Yield the exact rows of every problem of a batch ``(B,)``."""
    parts = (problem.left, problem.right, problem.bound, problem.equality, problem.mask)
    yield from map(exact_rows, *(part.numpy() for part in parts))


def token_rows(group: Group, k: int) -> Exact | None:
    """The rows of an instance before token differences are rounded; None if that is no change."""
    left, right, exact = [], [], True
    visible = group.visible(k)
    for i, tokens in enumerate(group.X[k]):
        own = int(group.selection[k, i])
        for t, other in enumerate(tokens):
            if t == own or not visible[i, t]:
                continue
            pairs = [(Fraction(float(a)), Fraction(float(b)))
                     for a, b in zip(tokens[own], other, strict=True)]  # fmt: skip
            left.append([a - b for a, b in pairs])
            right.append([Fraction(float(x)) for x in group.z[k, i]])
            exact &= all(a - b == Fraction(float(a) - float(b)) for a, b in pairs)
    if exact:
        return None
    sides = [np.array(side, dtype=object) for side in (left, right)]
    return exact_rows(sides[0], sides[1], np.ones(len(left)))


def fro_slacks(found: Shortest, rows: Exact) -> list[Any]:
    """Slacks relative to the bounds, per row."""
    return [
        slack / abs(Fraction(b, 2**k)) if b else slack
        for slack, b, k in zip(found.slack, rows.b, rows.scale, strict=True)
    ]


def solved(
    rows: Exact, norm: str | float, exact: Shortest, dual: NDArray[np.float64]
) -> tuple[list[Any], list[Any]] | None:
    """Return the true W and relative slacks in a norm; None if the oracle does not find them."""
    if norm == "fro":
        return exact.w, fro_slacks(exact, rows)
    own = dual[rows.origin] if len(rows.origin) else np.zeros(0)
    guesses: list[Sequence[float]] = [own.tolist(), [float(x) for x in exact.dual]]
    found = lp_solution(rows, float(norm), guesses)
    return None if found is None else (found.w, found.slack)


def higher(group: Group, k: int, i: int, a: int, b: int) -> bool | None:
    """Whether token a of sequence i has a higher score than token b; None within rounding."""
    v = [Fraction(float(x)) for x in group.v[k]]
    terms = [
        x * (Fraction(float(s)) - Fraction(float(t)))
        for x, s, t in zip(v, group.X[k, i, a], group.X[k, i, b], strict=True)
    ]
    difference = int(group.y[k, i]) * sum(terms)
    size = sum(
        abs(float(x)) * (abs(s) + abs(t))
        for x, s, t in zip(v, group.X[k, i, a], group.X[k, i, b], strict=True)
    )
    if difference != 0 and abs(difference) <= SCORE_DOUBT * size:
        return None
    return difference > 0


def local_truth(group: Group, k: int, rows: Exact, slack: Sequence[Any]) -> bool | None:
    """Whether every support token has a lower score (paper A, Definition 2)."""
    T, answer = group.X.shape[2], True
    open_ones = False
    for m, value in zip(rows.origin, slack, strict=True):
        i, rank = divmod(m, T - 1)
        own = int(group.selection[k, i])
        other = rank + (rank >= own)
        tight, above = tight_truth(value), higher(group, k, i, own, other)
        if tight is False or above is True:
            continue
        if tight is True and above is False:
            answer = False
        else:
            open_ones = True
    return answer if not answer or not open_ones else None


__all__ = [
    "fro_slacks",
    "higher",
    "local_truth",
    "problem_rows",
    "shortest_point",
    "solved",
    "token_rows",
]
