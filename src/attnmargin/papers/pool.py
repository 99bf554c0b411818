"""Points of several figures, computed side by side in processes."""

import os
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from multiprocessing import active_children, get_context
from pathlib import Path
from threading import current_thread, main_thread
from typing import Any, final

import torch

from attnmargin.base.checks import check_whole
from attnmargin.base.processes import end_with
from attnmargin.base.progress import NamedProgress
from attnmargin.papers.engine.reproduce import compute_points, unsaved_points
from attnmargin.papers.registry import find


@final
class PointPool:
    """Points on their way, by the figure that stores them."""

    def __init__(self, futures: dict[str, list[Future[list[Path]]]]) -> None:
        self._futures = futures

    def wait(self, name: str, progress: NamedProgress) -> None:
        """Wait until all points of a figure are saved; raise what stopped one."""
        own = self._futures.get(find(name).store, [])
        for k, future in enumerate(as_completed(own)):
            progress(name, k, len(own))
            future.result()


@contextmanager
def point_pool(names: Sequence[str], jobs: int, **options: Any) -> Iterator[PointPool]:
    """Start to compute the missing points of figures in ``jobs`` processes.

    Figures that read a folder of reviews are left to the caller: each process would hold its own
    copy. With one job nothing is started, and :meth:`PointPool.wait` does not wait.

    Args:
        names: figures, in the order in which they are wanted.
        jobs: number of processes; torch's threads are shared between them.
        options: ``trials``, ``out`` and ``seed`` as in
            :func:`attnmargin.papers.engine.reproduce.reproduce`.
    """
    check_whole(jobs=jobs)
    missing = _missing(names, options) if jobs > 1 else []
    if len(missing) < 2:
        yield PointPool({})
        return
    count = min(jobs, len(missing))
    threads = max(torch.get_num_threads() // count, 1)
    others = set(active_children())
    pool = ProcessPoolExecutor(count, get_context("spawn"), _start, (threads, os.getpid()))
    try:
        futures: dict[str, list[Future[list[Path]]]] = {}
        with _interrupts_ignored():
            for store, key in missing:
                futures.setdefault(store, []).append(pool.submit(_compute, store, key, options))
        yield PointPool(futures)
        pool.shutdown()
    except BaseException:
        for process in set(active_children()) - others:
            process.terminate()
        pool.shutdown(cancel_futures=True)  # waits for the processes: only one may
        raise


def _missing(names: Sequence[str], options: dict[str, Any]) -> list[tuple[str, str]]:
    """List the points that are not saved: the figure that stores them, and their key."""
    own = [find(name) for name in names]
    stores = dict.fromkeys(figure.store for figure in own if figure.needs is None)
    return [(name, key) for name in stores for key in unsaved_points(find(name), **options)]


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """Ignore Ctrl-C; processes that start meanwhile ignore it for good, and their parent ends them.

    Signals belong to the main thread: elsewhere nothing changes.
    """
    if current_thread() is not main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _start(threads: int, parent: int) -> None:
    torch.set_num_threads(threads)
    end_with(parent)


def _compute(name: str, key: str, options: dict[str, Any]) -> list[Path]:
    return compute_points(find(name), [key], **options)
