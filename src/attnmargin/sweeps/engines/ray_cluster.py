"""Ray: the same items on a cluster, or on one that is started on this machine."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

from attnmargin.base.errors import InputError, MissingPackageError
from attnmargin.sweeps.engines.engine import Engine, Item, LostError, Outcome, begin, guarded

_AHEAD = 3  # items per worker that are under way or wait


def run(
    work: Callable[[Any], Any], items: Iterable[Item], engine: Engine, count: int
) -> Iterator[Outcome]:
    """Work on items in Ray's processes."""
    try:
        import ray
    except ImportError as error:
        raise MissingPackageError("engine 'ray'", "attnmargin[ray]") from error
    with _cluster(ray, engine):
        yield from _results(ray, work, iter(items), engine)


@contextmanager
def _cluster(ray: Any, engine: Engine) -> Iterator[None]:
    """Use the cluster that is there, or start one on the loopback address."""
    if ray.is_initialized():
        yield
        return
    address = engine.address or os.environ.get("RAY_ADDRESS")
    quiet = {"log_to_driver": False, "logging_level": "error"}
    try:
        if address:
            ray.init(address, **quiet)
        else:
            ray.init(num_cpus=engine.jobs, include_dashboard=False,
                     _node_ip_address="127.0.0.1", **quiet)  # fmt: skip
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise InputError("address", f"{address!r} ({error!s:.120})", "a Ray cluster") from error
    try:
        yield
    finally:
        ray.shutdown()


def _results(
    ray: Any, work: Callable[[Any], Any], items: Iterator[Item], engine: Engine
) -> Iterator[Outcome]:
    threads = engine.threads

    def one(own: Callable[[Any], Any], item: Item) -> Outcome:
        begin(threads)
        return guarded(own, item)

    remote = ray.remote(num_cpus=1, max_retries=2)(one)
    shared = ray.put(work)
    ahead = _AHEAD * max(int(ray.cluster_resources().get("CPU", 1)), 1)
    held = {remote.remote(shared, item): item for item in islice(items, ahead)}
    try:
        while held:
            ready, _ = ray.wait(list(held), num_returns=1)
            item = held.pop(ready[0])
            for more in islice(items, 1):
                held[remote.remote(shared, more)] = more
            yield _outcome(ray, ready[0], item)
    finally:
        for reference in held:
            ray.cancel(reference, force=True)


def _outcome(ray: Any, reference: Any, item: Item) -> Outcome:
    try:
        outcome: Outcome = ray.get(reference)
    except ray.exceptions.RayError as error:
        line = str(error).strip().splitlines()[0]
        return Outcome(item[0], error=LostError(f"Ray lost its process ({line:.160})"))
    return outcome
