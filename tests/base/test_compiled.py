"""Kernels: what is said before they are compiled, what may call them, and their threads."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Barrier, BrokenBarrierError, Thread, current_thread, get_ident
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import attnmargin as am
from attnmargin.base.compiled import in_threads, one_thread
from attnmargin.training import weights
from tests.problems import optimal_problem

TOY = """
import numpy as np
from attnmargin.base.kernels import dot, jit, kernel

@jit
def square(x):
    return dot(x, x, x.size)

@kernel("toy", 1)
def toy(x):
    return square(x)

print(toy(np.arange(3.0)), toy(np.arange(3.0)))
print(toy(np.arange(6.0)[::2]))  # another memory layout: compiled too, without a word
"""


def _run_toy(folder: Path, **more: str) -> tuple[str, str]:
    script = folder / "toy.py"
    if not script.exists():
        script.write_text(TOY)
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder / "cache")} | more
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, check=True, env=environment
    )
    return done.stdout, done.stderr


def test_compiling_is_announced_once_and_loading_never(tmp_path: Path) -> None:
    line = "attnmargin: compiling the toy, once for this machine; this takes about 1 seconds\n"
    assert _run_toy(tmp_path) == ("5.0 5.0\n20.0\n", line)
    assert _run_toy(tmp_path) == ("5.0 5.0\n20.0\n", "")


def test_kernels_compile_where_no_folder_can_keep_them(tmp_path: Path) -> None:
    line = "attnmargin: compiling the toy, for this run alone; this takes about 1 seconds\n"
    nowhere = {"NUMBA_CACHE_LOCATOR_CLASSES": "_IPythonCacheLocator"}
    assert [_run_toy(tmp_path, **nowhere) for _ in range(2)] == [("5.0 5.0\n20.0\n", line)] * 2


def test_parts_of_kernels_refuse_python() -> None:
    from attnmargin.base.kernels import dot

    with pytest.raises(SystemError):
        dot(np.ones(2), np.ones(2), 2)


def _count_threads(threads: int) -> int:
    """How many threads work on parts of a batch when torch has so many."""
    seen: set[int] = set()
    # Workers wait for one more than there should be, so that no quick one does the work of all.
    meeting = Barrier(threads + 1)

    def kernel(part: NDArray[np.float64]) -> None:
        if get_ident() not in seen:
            seen.add(get_ident())
            with suppress(BrokenBarrierError):
                meeting.wait(timeout=0.5)
        part += 1.0

    x = np.zeros(512)
    in_threads(kernel, [x], len(x))
    assert (x == 1.0).all()
    return len(seen)


@pytest.fixture
def three_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("three_threads")
def test_a_batch_is_worked_on_by_as_many_threads_as_torch_has() -> None:
    assert _count_threads(3) == 3


@pytest.mark.usefixtures("three_threads")
def test_small_tensor_work_is_done_on_one_thread_but_kernels_use_all() -> None:
    @one_thread
    def work(data: am.AttentionData, fails: bool = False) -> tuple[int, int]:
        if fails:
            raise RuntimeError("fails")
        return torch.get_num_threads(), _count_threads(3)

    @one_thread
    def outer(data: am.AttentionData) -> tuple[int, int]:
        work(data)
        return work(data)

    small = am.random_data(2, 3, 4, name="threads")
    assert work(small) == outer(small) == (1, 3)
    assert torch.get_num_threads() == 3
    with pytest.raises(RuntimeError, match="fails"):
        work(small, fails=True)
    assert torch.get_num_threads() == 3
    large = am.random_data(8, 32, 64, trials=64, name="threads")
    assert work(large) == (3, 3)


def test_a_patient_caller_does_not_work_itself() -> None:
    """Signals reach the main thread only where it runs no compiled code."""
    seen: list[Thread] = []

    def kernel(x: NDArray[Any]) -> None:
        seen.append(current_thread())

    in_threads(kernel, [np.zeros(1)], 1, patient=True)
    in_threads(kernel, [np.zeros(1)], 1)
    assert seen[0].daemon
    assert seen[1] is current_thread()


def test_long_runs_are_waited_for_with_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []

    def spy(kernel: Any, arrays: Any, B: int, *, patient: bool = False) -> None:
        asked.append(patient)
        in_threads(kernel, arrays, B, patient=patient)

    monkeypatch.setattr(weights, "in_threads", spy)
    data = am.random_data(2, 2, 2, name="patience")
    for method, p in (("gd", 2.0), ("mirror", 3.0)):
        am.train(data, method=method, p=p, steps=6000, record=6000)
        am.train(data, method=method, p=p, steps=6)
    assert asked == [True, *[False] * 6] * 2


@pytest.mark.usefixtures("three_threads")
@pytest.mark.parametrize("norm", ["fro", "nuc", 3.0])
def test_answers_do_not_depend_on_threads(norm: str | float) -> None:
    problem = optimal_problem(am.random_data(3, 4, 5, trials=64, name="threads"))
    first = am.solve(problem, norm)
    torch.set_num_threads(1)
    second = am.solve(problem, norm)
    assert torch.equal(first.W, second.W)
    assert torch.equal(first.dual, second.dual)


@pytest.mark.usefixtures("three_threads")
def test_a_failure_in_a_thread_is_raised() -> None:
    def kernel(part: NDArray[np.float64]) -> None:
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        in_threads(kernel, [np.zeros(100)], 100)
