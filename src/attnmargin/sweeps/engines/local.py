"""The processes of this machine, by joblib."""

import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import chain
from typing import Any

import torch

from attnmargin.base.errors import MissingPackageError
from attnmargin.base.processes import end_with
from attnmargin.sweeps.engines.engine import Engine, Item, LostError, Outcome, begin, guarded

# What the processes of one sweep work with: sent to each of them once.
_work: Callable[[Any], Any] | None = None


def run(
    work: Callable[[Any], Any], items: Iterable[Item], engine: Engine, count: int
) -> Iterator[Outcome]:
    """Work on items in processes of this machine; in this one if a single worker is asked for.

    A process that is ended from outside (for want of memory, say) takes its item with it, and no
    other: items that were under way are tried again one by one.
    """
    workers = min(engine.jobs or _cores(), max(count, 1))
    if workers == 1:
        yield from _here(work, items, engine.threads)
        return
    rest = iter(items)
    while True:
        held: dict[int, Item] = {}
        try:
            yield from _spread(work, _noted(rest, held), held, engine.threads, workers)
            return
        except _lost():
            suspects = list(held.values())
        for item in suspects:
            yield _alone(work, item, engine.threads)


def _here(work: Callable[[Any], Any], items: Iterable[Item], threads: int) -> Iterator[Outcome]:
    with _limited(threads):
        for item in items:
            yield guarded(work, item)


def _noted(items: Iterator[Item], held: dict[int, Item]) -> Iterator[Item]:
    """Remember the items that are under way."""
    for item in items:
        held[item[0]] = item
        yield item


def _spread(
    work: Callable[[Any], Any],
    items: Iterator[Item],
    held: dict[int, Item],
    threads: int,
    workers: int,
) -> Iterator[Outcome]:
    """Yield outcomes of many processes, and forget the items that are done."""
    first = next(items, None)
    if first is None:
        return
    from joblib import Parallel, delayed, parallel_config

    with parallel_config(
        "loky", initializer=_start, initargs=(work, threads, os.getpid()),
        inner_max_num_threads=threads,
    ):  # fmt: skip
        pool = Parallel(workers, return_as="generator_unordered", max_nbytes=None)
        outcomes = pool(delayed(_one)(item) for item in chain([first], items))
    try:
        for outcome in outcomes:
            held.pop(outcome.number, None)
            yield outcome
    finally:
        with warnings.catch_warnings():  # joblib warns of the items that it gives up
            warnings.simplefilter("ignore", UserWarning)
            outcomes.close()


def _alone(work: Callable[[Any], Any], item: Item, threads: int) -> Outcome:
    """Try an item in a process in which nothing else is at stake."""
    held = {item[0]: item}
    try:
        # Two workers, for joblib would take one to mean this process.
        return next(_spread(work, iter([item]), held, threads, 2))
    except _lost() as error:
        words = "its process was ended from outside, perhaps for want of memory"
        return Outcome(item[0], error=LostError(f"{words} ({error!s:.120})"))


def _one(item: Item) -> Outcome:
    assert _work is not None
    return guarded(_work, item)


def _start(work: Callable[[Any], Any], threads: int, parent: int) -> None:
    global _work
    _work = work
    begin(threads)
    end_with(parent)


@contextmanager
def _limited(threads: int) -> Iterator[None]:
    """Hold this process to some threads."""
    from threadpoolctl import threadpool_limits

    before = torch.get_num_threads()
    with ExitStack() as stack:
        stack.callback(torch.set_num_threads, before)
        stack.enter_context(threadpool_limits(threads))
        torch.set_num_threads(threads)
        yield


def _lost() -> type[BaseException]:
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    found: type[BaseException] = TerminatedWorkerError
    return found


def _cores() -> int:
    try:
        from joblib import cpu_count
    except ImportError as error:
        raise MissingPackageError("a sweep in processes", "joblib") from error
    return int(cpu_count())
