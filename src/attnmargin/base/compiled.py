"""What the compiled kernels need: a compiler, tensors on the CPU, threads."""

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from itertools import pairwise
from threading import Thread
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from attnmargin.base.errors import InputError, MissingPackageError

# Fewer problems than this per thread are not worth a thread.
_WORTH_A_THREAD = 16


@cache
def can_compile() -> bool:
    """Whether the compiler of the kernels is installed."""
    return find_spec("numba") is not None


def check_compiled(method: str, device: torch.device) -> None:
    """Refuse a compiled method that cannot run."""
    if device.type != "cpu":
        got = f"{method!r} with tensors on {device}"
        raise InputError("method", got, "'lockstep', or tensors on the CPU")
    if not can_compile():
        raise MissingPackageError(f"method {method!r}", "numba")


def in_threads(kernel: Callable[..., None], arrays: list[NDArray[Any]], B: int) -> None:
    """Run a kernel that releases the interpreter lock on parts of the batch."""
    threads = min(torch.get_num_threads(), B // _WORTH_A_THREAD)
    if threads < 2:
        kernel(*arrays)
        return
    # Several parts per thread, so that one with hard problems does not hold up the rest.
    edges = np.linspace(0, B, min(8 * threads, B // _WORTH_A_THREAD) + 1).astype(int)
    parts = iter([[array[i:j] for array in arrays] for i, j in pairwise(edges)])
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for part in parts:
                kernel(*part)
        except BaseException as error:
            failures.append(error)

    helpers = [Thread(target=work) for _ in range(threads)]
    for helper in helpers:
        helper.start()
    work()
    for helper in helpers:
        helper.join()
    if failures:
        raise failures[0]
