"""Which optimiser implies which norm, and back; defined only here.

| optimiser, parameterisation | norm of the direction | paper |
| --- | --- | --- |
| gradient descent on W | Frobenius | A |
| gradient descent on (K, Q), W = K Qᵀ | nuclear | A |
| ℓp mirror descent on W, or on (v, W) jointly | ℓp | B |
"""

from attnmargin.base.errors import InputError
from attnmargin.margin.norms import Frobenius, Lp, Norm, Nuclear

PARAMETERS = ("W", "KQ", "vW")
METHODS = ("gd", "mirror", "steepest", "adam")


def check_parameter(parameter: object, known: tuple[str, ...] = PARAMETERS) -> None:
    """Raise InputError unless ``parameter`` is one of the known parameterisations."""
    if parameter not in known:
        raise InputError("parameter", repr(parameter), f"one of {', '.join(known)}")


def implied_norm(parameter: str = "W", p: float = 2.0) -> Norm:
    """Return the norm whose margin training maximises.

    >>> implied_norm(), implied_norm("KQ"), implied_norm("W", 3)
    (Frobenius(), Nuclear(), Lp(p=3.0))
    """
    check_parameter(parameter)
    if parameter == "KQ":
        if p != 2.0:
            raise InputError("p", f"{p:g} with parameter 'KQ'", "2: gradient descent on K and Q")
        return Nuclear()
    return Frobenius() if p == 2.0 else Lp(float(p))


def implied_method(p: float) -> str:
    """Return the method of :func:`attnmargin.train` whose potential is ``(1/p) Σ |w|^p``.

    >>> implied_method(2.0), implied_method(1.75)
    ('gd', 'mirror')
    """
    return "gd" if p == 2.0 else "mirror"
