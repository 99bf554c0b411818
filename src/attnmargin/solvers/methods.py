"""Which methods solve in which norm."""

from attnmargin.base.errors import InputError
from attnmargin.margin.norms import NAMED, Frobenius, Lp, Max, Norm, Nuclear, Spectral, Sum
from attnmargin.solvers.frobenius.method import FUSED
from attnmargin.solvers.frobenius.method import METHODS as FROBENIUS_METHODS
from attnmargin.solvers.interior.walk import METHODS as INTERIOR_METHODS

# The methods for large problems, in the Frobenius and other norms.
LARGE, LARGE_OTHERS = "blocks", "working-set"
# The method of scipy for linear programmes, and the one for every norm.
SIMPLEX, REFERENCE = "highs", "reference"

TOGETHER = INTERIOR_METHODS[1]


def is_frobenius(norm: Norm) -> bool:
    """Check whether a norm is the Frobenius norm."""
    return isinstance(norm, Frobenius) or norm == Lp(2.0)


def is_length(norm: Norm, shape: tuple[int, int]) -> bool:
    """Check whether a norm of singular values is the length of a W that is a vector."""
    return isinstance(norm, Nuclear | Spectral) and min(shape) == 1


def has_kernel(norm: Norm) -> bool:
    """Check whether a norm has a fused kernel for GPUs."""
    return is_frobenius(norm) or isinstance(norm, Nuclear)


def methods(norm: Norm) -> tuple[str, str]:
    """Name the fastest method of a norm on the CPU, and the one in torch alone."""
    if is_frobenius(norm):
        return FROBENIUS_METHODS
    return INTERIOR_METHODS if isinstance(norm, Nuclear | Lp) else (TOGETHER, TOGETHER)


def second_methods(norm: Norm) -> tuple[str, ...]:
    """Name the methods that try again what the fastest one leaves open."""
    if isinstance(norm, Max | Sum):
        return (SIMPLEX,)
    fastest, together = methods(norm)
    return () if fastest == together else (together,)


def large_method(norm: Norm) -> str:
    """Name the method for large problems."""
    return LARGE if is_frobenius(norm) else LARGE_OTHERS


def check_method(norm: Norm, method: str, rank: int | None) -> None:
    """Raise InputError early if norm, method and rank do not fit together."""
    if not isinstance(norm, Lp) and norm not in NAMED.values():
        raise InputError("norm", norm.name, f"an ℓp norm or one of {', '.join(NAMED)}")
    fused = (FUSED,) if has_kernel(norm) else ()
    names = ("auto", *methods(norm), *fused, *second_methods(norm), large_method(norm), REFERENCE)
    known = tuple(dict.fromkeys(names))
    if method not in known:
        needs = f"one of {', '.join(known)} for the norm {norm.name}"
        raise InputError("method", repr(method), needs)
    if rank is not None and not isinstance(norm, Nuclear):
        raise InputError("rank", f"{rank} with the norm {norm.name}", "the nuclear norm")
    if rank is not None and (not isinstance(rank, int) or rank < 1):
        raise InputError("rank", repr(rank), "a whole number of at least 1")
