"""Numbers formatted for JSON and tables."""

import math
from typing import SupportsFloat


def number(x: SupportsFloat) -> float | None:
    """Return a finite number, or None: JSON has no infinity."""
    value = float(x)
    return value if math.isfinite(value) else None


def plain_number(value: float) -> str:
    """Format a count in full, any other number with four digits."""
    return f"{value:,.0f}" if value == int(value) and abs(value) < 1e9 else f"{value:.4g}"


def short(value: float | None, digits: str) -> str:
    """Format a number by a format such as ".3g"; None becomes "–"."""
    return "–" if value is None else format(value, digits)


def signed(value: float) -> str:
    """Write a number with its sign and two digits.

    >>> signed(0.5), signed(-1.0)
    ('+0.50', '−1.00')
    """
    return f"{value:+.2f}".replace("-", "−")
