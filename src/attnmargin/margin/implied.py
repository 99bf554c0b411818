"""Which optimiser implies which norm, how sure that is, and back; defined only here.

| optimiser, parameterisation | norm of the direction | how sure | source |
| --- | --- | --- | --- |
| gradient descent on W | Frobenius | proved for attention | paper A, Theorems 4, 6, 7 |
| gradient descent on (K, Q), W = K Qᵀ | nuclear | conjectured | paper A, Theorem 2: paths |
| ℓp mirror descent on W | ℓp | proved for attention | paper B, Theorem 3 |
| ℓp mirror descent on (v, W) | ℓp | conjectured | paper B, Theorem 5: paths |
| steepest descent on W in most norms | its own | proved for linear classifiers | Fan |
| the same in "rows" and "columns" | its own | proved for linear classifiers | Gunasekar |
| Adam on W | max | proved for linear classifiers | Fan |
| steepest descent on (K, Q), "spectral" | spectral | conjectured | Tsilivis |
| other pairs of steepest descent or Adam | none known | | |

Fan is Fan, Schmidt and Thrampoulidis, *Implicit bias of spectral descent and Muon*, 2502.04664:
several classes, with and without momentum; Adam with all data in every step, decaying rates, ε = 0.
Gunasekar is Gunasekar et al. 2018, *Characterizing implicit bias in terms of optimization
geometry*: two classes, without momentum. Tsilivis is Tsilivis et al., *Flavors of margin*,
2410.22069: flows of homogeneous networks; attention is not homogeneous.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import final

from attnmargin.base.errors import InputError
from attnmargin.margin.norms import (
    ColumnMax,
    Frobenius,
    Lp,
    Max,
    Norm,
    Nuclear,
    RowMax,
    Spectral,
    as_norm,
)

PARAMETERS = ("W", "KQ", "vW")
METHODS = ("gd", "mirror", "steepest", "adam")


class Evidence(StrEnum):
    """How sure it is that training maximises the margin in a norm."""

    ATTENTION = "proved for attention"
    LINEAR = "proved for linear classifiers"
    CONJECTURED = "conjectured"
    UNKNOWN = "none known"


@final
@dataclass(frozen=True)
class Implication:
    """The norm whose margin a method maximises; None if none is known."""

    norm: Norm | None
    evidence: Evidence
    source: str = ""


_FAN = "Fan, Schmidt and Thrampoulidis, 2502.04664"
_ADAM = f"{_FAN}: all data in every step, rates that decay, and ε = 0"
_GUNASEKAR = "Gunasekar et al. 2018, without momentum"
_TSILIVIS = "Tsilivis et al., 2410.22069, of steepest flows of homogeneous networks"
_UNKNOWN = Implication(None, Evidence.UNKNOWN)
_PLAIN = {
    "W": Implication(Frobenius(), Evidence.ATTENTION, "paper A, Theorems 4, 6 and 7"),
    "KQ": Implication(Nuclear(), Evidence.CONJECTURED, "paper A, Theorem 2, of paths"),
    "vW": Implication(Frobenius(), Evidence.CONJECTURED, "paper B, Theorem 5, of paths"),
}


def check_parameter(parameter: object, known: tuple[str, ...] = PARAMETERS) -> None:
    """Raise InputError unless ``parameter`` is one of the known parameterisations."""
    if parameter not in known:
        raise InputError("parameter", repr(parameter), f"one of {', '.join(known)}")


def implication(
    parameter: str = "W",
    method: str = "gd",
    norm: str | float | Norm | None = None,
    p: float = 2.0,
    momentum: float = 0.0,
) -> Implication:
    """Return the norm whose margin a method maximises, how sure that is, and by which paper.

    Args:
        parameter: "W", "KQ" or "vW".
        method: "gd", "mirror", "steepest" or "adam".
        norm, momentum: of steepest descent.
        p: of mirror descent.

    Example:
        >>> found = implication("W", "steepest", "spectral")
        >>> found.norm, found.evidence.value
        (Spectral(), 'proved for linear classifiers')
        >>> implication("KQ", "adam").evidence.value
        'none known'
    """
    check_parameter(parameter)
    if method == "steepest" and norm is not None:
        return _of_steepest(parameter, as_norm(norm), momentum > 0.0)
    if method == "adam":
        return Implication(Max(), Evidence.LINEAR, _ADAM) if parameter == "W" else _UNKNOWN
    if method not in METHODS or method == "steepest":
        raise InputError("method", repr(method), f"one of {METHODS}, 'steepest' with a norm")
    return _PLAIN[parameter] if p == 2.0 else _of_mirror(parameter, float(p))


def _of_mirror(parameter: str, p: float) -> Implication:
    if parameter == "W":
        return Implication(Lp(p), Evidence.ATTENTION, "paper B, Theorem 3")
    if parameter == "vW":
        return Implication(Lp(p), Evidence.CONJECTURED, "paper B, Theorem 5, of paths")
    return _UNKNOWN


def _of_steepest(parameter: str, norm: Norm, heavy: bool) -> Implication:
    if norm in (Frobenius(), Lp(2.0)) and not (heavy and parameter == "W"):
        return _PLAIN[parameter]
    if parameter == "W" and isinstance(norm, RowMax | ColumnMax):
        sure = Evidence.CONJECTURED if heavy else Evidence.LINEAR
        return Implication(norm, sure, _GUNASEKAR)
    if parameter == "W":
        return Implication(norm, Evidence.LINEAR, _FAN)
    if parameter == "KQ" and isinstance(norm, Spectral):
        # The least max(‖K‖, ‖Q‖)² over all K Qᵀ = W is ‖W‖, if the factors are wide enough.
        return Implication(norm, Evidence.CONJECTURED, _TSILIVIS)
    return _UNKNOWN


def implied_norm(parameter: str = "W", p: float = 2.0) -> Norm:
    """Return the norm whose margin gradient or mirror descent maximises.

    >>> implied_norm(), implied_norm("KQ"), implied_norm("W", 3)
    (Frobenius(), Nuclear(), Lp(p=3.0))
    """
    check_parameter(parameter)
    if parameter == "KQ" and p != 2.0:
        raise InputError("p", f"{p:g} with parameter 'KQ'", "2: gradient descent on K and Q")
    found = implication(parameter, implied_method(p), p=p).norm
    assert found is not None
    return found


def implied_method(p: float) -> str:
    """Return the method of :func:`attnmargin.train` whose potential is ``(1/p) Σ |w|^p``.

    >>> implied_method(2.0), implied_method(1.75)
    ('gd', 'mirror')
    """
    return "gd" if p == 2.0 else "mirror"
