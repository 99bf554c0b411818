"""Numbers as JSON and tables show them."""

import math
from typing import SupportsFloat


def number(x: SupportsFloat) -> float | None:
    """Return a finite number, or None: JSON has no infinity."""
    value = float(x)
    return value if math.isfinite(value) else None


def plain_number(value: float) -> str:
    """Write a count in full, any other number with four digits."""
    return f"{value:,.0f}" if value == int(value) and abs(value) < 1e9 else f"{value:.4g}"


def short(value: float | None, digits: str) -> str:
    """Write a number in a format, "–" for None."""
    return "–" if value is None else format(value, digits)
