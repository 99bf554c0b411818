"""Norms by name."""

from numbers import Real

from attnmargin.base.checks import check_number
from attnmargin.base.errors import InputError
from attnmargin.margin.norms.entries import Frobenius, Lp, Max, Sum
from attnmargin.margin.norms.mixed import ColumnMax, RowMax
from attnmargin.margin.norms.norm import Norm
from attnmargin.margin.norms.spectra import Nuclear, Spectral

# The solvers reach full accuracy in float64 for p in this range.
LEAST_POWER, LARGEST_POWER = 1.1, 10.0
# All norms without a parameter.
NAMED: dict[str, Norm] = {
    norm.name: norm
    for norm in (Frobenius(), Nuclear(), Spectral(), Max(), Sum(), RowMax(), ColumnMax())
}
_NEEDS = f"{', '.join(map(repr, NAMED))} or a number p > 1"


def as_norm(norm: "str | float | Norm") -> Norm:
    """Convert a name or a number to a norm.

    >>> as_norm("fro"), as_norm("nuc"), as_norm(1.75), as_norm("3")
    (Frobenius(), Nuclear(), Lp(p=1.75), Lp(p=3.0))
    """
    if isinstance(norm, Norm):
        return norm
    if not isinstance(norm, str | Real):
        raise InputError("norm", f"a {type(norm).__name__}", _NEEDS)
    if isinstance(norm, str) and norm in NAMED:
        return NAMED[norm]
    try:
        return Lp(float(norm))
    except (ValueError, OverflowError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError("norm", f"{norm!r:.80}", _NEEDS) from None


def check_power(p: float) -> float:
    """Return p as a float, or raise InputError unless solutions of its ℓp norm are exact."""
    p = check_number("p", p, "a number p > 1")
    if not LEAST_POWER <= p <= LARGEST_POWER:
        needs = f"a power from {LEAST_POWER:g} to {LARGEST_POWER:g}, where solutions are exact"
        raise InputError("p", f"{p:g}", needs)
    return p
