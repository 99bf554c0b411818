"""What the compiled kernels need: a compiler, tensors on the CPU, threads."""

import sys
from collections.abc import Callable
from functools import cache, wraps
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from subprocess import DEVNULL, Popen
from threading import Lock, Thread
from typing import Any, ParamSpec, TypeVar, final

import numpy as np
import torch
from numpy.typing import NDArray

from attnmargin.base.errors import InputError, MissingPackageError

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

# Fewer problems than this do not justify a thread.
_WORTH_A_THREAD = 16
# From this many entries on, torch's own threads pay off.
_LARGE = 1 << 18


@cache
def can_compile() -> bool:
    """Check whether numba is installed."""
    return find_spec("numba") is not None


def runs_compiled(device: torch.device) -> bool:
    """Check whether compiled methods can run on tensors of a device."""
    return device.type == "cpu" and can_compile()


def check_compiled(method: str, device: torch.device) -> None:
    """Raise unless a compiled method can run on this device."""
    if device.type != "cpu":
        got = f"{method!r} with tensors on {device}"
        raise InputError("method", got, "'lockstep', or tensors on the CPU")
    if not can_compile():
        raise MissingPackageError(f"method {method!r}", "numba")


@final
class _Threads:
    """The number of threads the user wants, remembered while torch is held to one."""

    def __init__(self) -> None:
        self._lock, self._users, self._wanted = Lock(), 0, 1

    def wanted(self) -> int:
        return self._wanted if self._users else torch.get_num_threads()

    def keep_one(self) -> None:
        with self._lock:
            if self._users == 0:
                self._wanted = torch.get_num_threads()
                torch.set_num_threads(1)
            self._users += 1

    def give_back(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                torch.set_num_threads(self._wanted)


_threads = _Threads()


def wanted_threads() -> int:
    """Return the number of threads that the user wants."""
    return _threads.wanted()


def one_thread(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Run torch on one thread when the first argument is a small tensor, or holds small ones.

    The threads of torch synchronise after every operation and spin while they wait. Next to busy
    processes, small work takes many times longer on several threads than on one. Kernels still use
    all threads.
    """

    @wraps(function)
    def alone(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        first = next(iter((*args, *kwargs.values())), None)
        parts = (first, *getattr(first, "__dict__", {}).values())
        if sum(x.numel() for x in parts if torch.is_tensor(x)) >= _LARGE:
            return function(*args, **kwargs)
        _threads.keep_one()
        try:
            return function(*args, **kwargs)
        finally:
            _threads.give_back()

    return alone


def in_threads(
    kernel: Callable[..., None],
    arrays: list[NDArray[Any]],
    B: int,
    *,
    patient: bool = False,
    least: int = _WORTH_A_THREAD,
) -> None:
    """Run a kernel that releases the interpreter lock on parts of the batch, in threads.

    A patient caller only waits: compiled code does not see signals, so this lets Ctrl-C through at
    once. The threads it leaves behind end with the process. ``least`` is how many members of the
    batch are worth a thread.
    """
    threads = max(min(wanted_threads(), B // least), 1)
    if threads == 1 and not patient:
        kernel(*arrays)
        return
    # Several parts per thread, so that a part with hard problems does not hold up the rest.
    edges = np.linspace(0, B, max(min(8 * threads, B // least), 1) + 1).astype(int)
    parts = iter([[array[i:j] for array in arrays] for i, j in pairwise(edges)])
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for part in parts:
                kernel(*part)
        except BaseException as error:
            failures.append(error)

    count = threads if patient else threads - 1  # an impatient caller works too
    helpers = [Thread(target=work, daemon=patient) for _ in range(count)]
    for helper in helpers:
        helper.start()
    if not patient:
        work()
    for helper in helpers:
        helper.join()
    if failures:
        raise failures[0]


def compile_together(first: str, second: str) -> None:
    """Compile the kernels of two modules at once, the first one's in another process.

    numba compiles one function at a time in a process, and keeps what it compiled on disk, where
    this process finds it. Where that fails, the kernel is compiled when it is called, as usual.
    """
    if _is_compiled(first) or _is_compiled(second) or not sys.executable:
        return
    code = (
        f"import sys; sys.path[:] = {sys.path!r}; "
        f"from {first} import smallest, solve_rows; solve_rows(*smallest())"
    )
    process = Popen([sys.executable, "-c", code], stdout=DEVNULL)
    try:
        own = import_module(second)
        own.solve_rows(*own.smallest())
        process.wait()
    finally:
        process.kill()
        process.wait()


def _is_compiled(module: str) -> bool:
    """Check whether a kernel is in memory or on disk."""
    kernel = import_module(module).solve_rows
    return bool(kernel.signatures) or is_cached(kernel)


def is_cached(kernel: Any) -> bool:
    """Check whether a kernel is on disk for this Python, judging by the names of files."""
    function, folder = kernel.py_func, kernel.stats.cache_path
    python = f"py{sys.version_info.major}{sys.version_info.minor}"
    name = f"{function.__module__.rsplit('.', 1)[1]}.{function.__name__}-*.{python}*.nbi"
    return folder is not None and any(Path(folder).glob(name))
