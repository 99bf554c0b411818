"""Dask: the same items on a cluster, or on one that is started on this machine."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import islice
from typing import Any

from attnmargin.base.errors import InputError, MissingPackageError
from attnmargin.sweeps.engines.engine import Engine, Item, LostError, Outcome, begin, guarded

_SILENT = 50  # level of logs
_AHEAD = 3  # items per worker that are under way or wait


def run(
    work: Callable[[Any], Any], items: Iterable[Item], engine: Engine, count: int
) -> Iterator[Outcome]:
    """Work on items in Dask's processes."""
    try:
        import distributed
    except ImportError as error:
        raise MissingPackageError("engine 'dask'", "attnmargin[dask]") from error
    with _client(distributed, engine) as client:
        yield from _results(distributed, client, work, iter(items), engine.threads)


@contextmanager
def _client(distributed: Any, engine: Engine) -> Iterator[Any]:
    """Use the cluster that is there, or start one on the loopback address."""
    try:
        yield distributed.get_client()
        return
    except ValueError:  # none in this process
        pass
    address = engine.address or os.environ.get("DASK_SCHEDULER_ADDRESS")
    with ExitStack() as stack:
        try:
            if not address:
                address = stack.enter_context(_own_cluster(distributed, engine.jobs))
            client = stack.enter_context(distributed.Client(address, set_as_default=False))
            stack.enter_context(client.as_current())
        except (OSError, ValueError, TimeoutError, RuntimeError) as error:
            got = f"{address!r} ({error!s:.120})"
            raise InputError("address", got, "a Dask scheduler") from error
        yield client


def _own_cluster(distributed: Any, workers: int | None) -> Any:
    """Start a cluster on the loopback address.

    Workers are programs of their own, so that a script needs no ``if __name__ == "__main__"``. The
    scheduler is in this process: workers end when they lose it.
    """
    from distributed.deploy.subprocess import SubprocessWorker

    own = {"nthreads": 1, "host": "127.0.0.1", "silence_logs": _SILENT, "dashboard": False}
    worker = {"cls": SubprocessWorker, "options": {"worker_kwargs": own}}
    scheduler = {"host": "127.0.0.1", "dashboard": False}
    return distributed.SpecCluster(
        workers=dict.fromkeys(range(workers or distributed.system.CPU_COUNT), worker),
        scheduler={"cls": distributed.Scheduler, "options": scheduler},
        silence_logs=_SILENT,
    )


def _results(
    distributed: Any, client: Any, work: Callable[[Any], Any], items: Iterator[Item], threads: int
) -> Iterator[Outcome]:
    shared = client.scatter([work], broadcast=True)[0]
    ahead = _AHEAD * max(sum(client.nthreads().values()), 1)

    def submit(item: Item) -> Any:
        return client.submit(_one, shared, item, threads, pure=False)

    held = {(future := submit(item)): item for item in islice(items, ahead)}
    ready = distributed.as_completed(list(held))
    for future in ready:
        item = held.pop(future)
        for more in islice(items, 1):
            held[new := submit(more)] = more
            ready.add(new)
        yield _outcome(future, item)


def _one(work: Callable[[Any], Any], item: Item, threads: int) -> Outcome:
    begin(threads)
    return guarded(work, item)


def _outcome(future: Any, item: Item) -> Outcome:
    error = future.exception()
    if error is not None:
        return Outcome(item[0], error=LostError(f"Dask lost its process ({error!s:.160})"))
    outcome: Outcome = future.result()
    return outcome
