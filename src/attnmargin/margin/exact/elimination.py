"""Linear systems over the integers, by fraction-free elimination."""

from fractions import Fraction


def solve_integers(A: list[list[int]], b: list[int]) -> list[Fraction] | None:
    """Solve ``A x = b`` exactly (Bareiss); None if A is singular.

    Every division has no remainder, so entries stay as short as determinants.
    """
    n, last = len(A), 1
    rows = [[*row, right] for row, right in zip(A, b, strict=True)]
    for k in range(n):
        pivot = next((i for i in range(k, n) if rows[i][k]), None)
        if pivot is None:
            return None
        rows[k], rows[pivot] = rows[pivot], rows[k]
        for i in range(k + 1, n):
            _eliminate(rows[i], rows[k], k, last)
        last = rows[k][k]
    return _substitute(rows)


def _eliminate(row: list[int], by: list[int], k: int, last: int) -> None:
    head, factor = by[k], row[k]
    for j in range(k, len(row)):
        row[j] = (head * row[j] - factor * by[j]) // last


def _substitute(rows: list[list[int]]) -> list[Fraction]:
    """Solve a triangular system; det · x is whole, so only the last division has a remainder."""
    n = len(rows)
    det, x = rows[-1][n - 1] if n else 1, [0] * n
    for i in reversed(range(n)):
        known = sum(rows[i][j] * x[j] for j in range(i + 1, n))
        x[i] = (rows[i][n] * det - known) // rows[i][i]
    return [Fraction(value, det) for value in x]
