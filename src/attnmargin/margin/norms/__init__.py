"""Norms of W, each with its dual norm and steepest direction, and the potentials of ℓp norms."""

from attnmargin.margin.norms.entries import Frobenius, Lp, Max, Sum
from attnmargin.margin.norms.mixed import ColumnMax, RowMax
from attnmargin.margin.norms.names import (
    LARGEST_POWER,
    LEAST_POWER,
    NAMED,
    as_norm,
    check_power,
)
from attnmargin.margin.norms.norm import Norm, scaled_norm, working_dtype
from attnmargin.margin.norms.potential import inverse_mirror, mirror, mirror_step, power_norm
from attnmargin.margin.norms.spectra import Nuclear, Spectral

__all__ = [
    "LARGEST_POWER",
    "LEAST_POWER",
    "NAMED",
    "ColumnMax",
    "Frobenius",
    "Lp",
    "Max",
    "Norm",
    "Nuclear",
    "RowMax",
    "Spectral",
    "Sum",
    "as_norm",
    "check_power",
    "inverse_mirror",
    "mirror",
    "mirror_step",
    "power_norm",
    "scaled_norm",
    "working_dtype",
]
