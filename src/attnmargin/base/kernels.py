"""Compiler options, and operations on small arrays, compiled with numba.

Without numba the same functions run as they are written: kernels that have no other method stay
right, and are slow. There, too, a division by zero is infinite and raises nothing.

numba's cache watches one file at a time. After a change here, ``make test`` clears the cache of
the files that use this one.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnmargin.base.compiled import can_compile

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def _as_written(**_: Any) -> Callable[[Any], Any]:
    """Return a decorator that leaves functions as they are."""
    return lambda function: function


_njit: Any = _as_written
_compiler: Any = {}
if can_compile():
    from numba import njit as _njit

    from attnmargin.base.pipeline import Announcer, PartCompiler

    _compiler = {"pipeline_class": PartCompiler}
    _announcer = Announcer()

_options: Any = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
_options["fastmath"] = {"reassoc", "contract", "nsz"}
_part: Any = {"no_cpython_wrapper": True, **_compiler, **_options}
# Parts of kernels. forceinline must be explicit, because an unset option is inherited from the
# caller: a part first met inside an inlined one would be inlined everywhere, with all it calls.
jit = _njit(forceinline=False, **_part)
# For parts that run once per iteration: passing the arrays would cost as much as the work.
jit_inline = _njit(forceinline=True, **_part)
# For sums whose rounding counts.
jit_exact = _njit(forceinline=False, **(_part | {"fastmath": False}))


def kernel(title: str, seconds: int, *, plain: bool = False) -> Callable[[Any], Any]:
    """Compile a function for calls from Python, and cache it on disk if a folder can be written.

    Args:
        title: name shown while it compiles.
        seconds: roughly how long that takes.
        plain: whether few optimisation passes give code that is just as fast.
    """

    def compiled(function: Any) -> Any:
        if not can_compile():
            return _quiet(function)
        dispatcher = _njit(forceinline=False, **_options)(function)
        with suppress(RuntimeError):  # neither the package's folder nor a home can be written
            dispatcher.enable_caching()
        _announcer.watch(dispatcher, title, seconds, plain)
        return dispatcher

    return compiled


def _quiet(function: Any) -> Any:
    """Run a function as it is written, with infinite and undefined numbers as in compiled code."""

    @wraps(function)
    def run(*args: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*args)

    return run


def imported_kernels() -> dict[str, Any]:
    """Return the kernels that are imported, by their titles."""
    return _announcer.titles() if can_compile() else {}


@jit
def dot(x: Floats, y: Floats, size: int) -> float:
    total = 0.0
    for i in range(size):
        total += x[i] * y[i]
    return total


@jit
def add(x: Floats, factor: float, y: Floats, size: int) -> None:
    for i in range(size):
        x[i] += factor * y[i]


@jit
def copy(out: Floats, x: Floats) -> None:
    for i in range(x.size):
        out[i] = x[i]


@jit
def copy_rows(out: Floats, x: Floats) -> None:
    for i in range(x.shape[0]):
        copy(out[i], x[i])


@jit
def mix(out: Floats, weight: Floats, rows: Floats) -> None:
    """Compute out += Σ_c weight_c rows_c, four rows at a time to save memory traffic."""
    fours = weight.size - weight.size % 4
    for c in range(0, fours, 4):
        w0, w1, w2, w3 = weight[c], weight[c + 1], weight[c + 2], weight[c + 3]
        for i in range(out.size):
            out[i] += (
                w0 * rows[c, i] + w1 * rows[c + 1, i] + w2 * rows[c + 2, i] + w3 * rows[c + 3, i]
            )
    for c in range(fours, weight.size):
        factor = weight[c]
        for i in range(out.size):
            out[i] += factor * rows[c, i]


@jit
def spread(keys: Floats, query: Floats, out: Floats) -> None:
    """Add ``Σ_q keys_q query_qᵀ`` to out, row by row."""
    weights = np.empty(query.shape[0])
    for i in range(out.shape[0]):
        for q in range(query.shape[0]):
            weights[q] = keys[q, i]
        mix(out[i], weights, query)


@jit
def inner(A: Floats, B: Floats, out: Floats) -> None:
    """Compute out = Aᵀ B = Σ_i A_i B_iᵀ for small matrices."""
    out[:] = 0.0
    for i in range(A.shape[0]):
        for a in range(A.shape[1]):
            add(out[a], A[i, a], B[i], B.shape[1])
