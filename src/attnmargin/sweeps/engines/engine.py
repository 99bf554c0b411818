"""Engines: the processes of this machine, Ray or Dask, behind one function."""

import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any, final

from attnmargin.base.checks import check_whole
from attnmargin.base.errors import AttnMarginError, InputError

Item = tuple[int, Any]  # a number that names it, and what to work on

_HOMES = {"local": "local", "ray": "ray_cluster", "dask": "dask_cluster"}


@final
@dataclass(frozen=True)
class Engine:
    """Where work is done, and by how many.

    Args:
        name: "local" (processes of this machine), "ray" or "dask".
        jobs: how many processes; all cores by default. A cluster that is running has its own.
        threads: of each process for linear algebra. With one, the numbers do not depend on the
            machine's cores.
        address: of a Ray or Dask cluster that is running; by default the one that the environment
            names (``RAY_ADDRESS``, ``DASK_SCHEDULER_ADDRESS``), or else a cluster on this machine
            for this work.
    """

    name: str = "local"
    jobs: int | None = None
    threads: int = 1
    address: str | None = None

    def __post_init__(self) -> None:
        if self.name not in _HOMES:
            raise InputError("engine", repr(self.name), f"one of {', '.join(_HOMES)}")
        check_whole(jobs=1 if self.jobs is None else self.jobs, threads=self.threads)
        if self.address is not None and self.name == "local":
            raise InputError("address", repr(self.address), "engine 'ray' or 'dask'")


@final
@dataclass(frozen=True)
class Outcome:
    """What became of one item: a value, or the error that it ended with."""

    number: int
    value: Any = None
    error: Exception | None = None


@final
class LostError(AttnMarginError):
    """The process that worked on an item ended before it did."""


def as_engine(engine: Engine | str, jobs: int | None = None) -> Engine:
    """Return an engine by its name."""
    if isinstance(engine, Engine):
        return engine
    return Engine(engine if isinstance(engine, str) else repr(engine), jobs)


def run_items(
    work: Callable[[Any], Any], items: Iterable[Item], engine: Engine, count: int
) -> Iterator[Outcome]:
    """Work on items, and yield outcomes in the order in which they are ready.

    Items are taken from ``items`` when a process is nearly free for them, so that few are held at a
    time. Closing the iterator ends the processes.

    Args:
        work: called with an item in another process; what it raises becomes the outcome's error.
        count: how many items there are at most.
    """
    home = import_module(f"attnmargin.sweeps.engines.{_HOMES[engine.name]}")
    outcomes: Iterator[Outcome] = home.run(work, items, engine, count)
    return outcomes


def guarded(work: Callable[[Any], Any], item: Item) -> Outcome:
    """Work on one item; an error becomes part of the outcome."""
    number, content = item
    try:
        return Outcome(number, work(content))
    except Exception as error:
        return Outcome(number, error=error)


def begin(threads: int) -> None:
    """Prepare a process: its share of the threads, and Ctrl-C left to its parent."""
    import torch
    from threadpoolctl import threadpool_limits

    threadpool_limits(threads)
    torch.set_num_threads(threads)
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
