"""Points of several figures, computed side by side: in processes, on a cluster, in shards."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

import torch

from attnmargin.base.progress import NamedProgress
from attnmargin.papers.engine.reproduce import PARTS, compute_points, unsaved_points
from attnmargin.papers.registry import find
from attnmargin.sweeps.engines.engine import Engine, Outcome, run_items
from attnmargin.sweeps.shards import Shard

Address = tuple[str, str]  # the figure that stores a point, and the point's key


@final
class PointPool:
    """Points on their way; those of the figures asked for first are computed first."""

    def __init__(self, outcomes: Iterator[Outcome], points: Sequence[Address]) -> None:
        self._outcomes, self._points = outcomes, points
        self._left = Counter(store for store, _ in points)

    def wait(self, name: str, progress: NamedProgress) -> None:
        """Wait until all points of a figure are saved; raise what stopped one."""
        store = find(name).store
        count = self._left[store]
        while self._left[store]:
            progress(name, PARTS * (count - self._left[store]), PARTS * count)
            outcome = next(self._outcomes)
            if outcome.error is not None:
                raise outcome.error
            self._left[self._points[outcome.number][0]] -= 1


@contextmanager
def point_pool(names: Sequence[str], engine: Engine, **options: Any) -> Iterator[PointPool]:
    """Start to compute the missing points of figures with an engine.

    Figures that read a folder of reviews are left to the caller: each process would hold its own
    copy. With one local worker nothing is started, and :meth:`PointPool.wait` does not wait.

    Args:
        names: figures, in the order in which they are wanted.
        engine: where; the cores of this machine are shared between its local workers.
        options: ``trials``, ``out`` and ``seed`` as in
            :func:`attnmargin.papers.engine.reproduce.reproduce`.
    """
    alone = engine.name == "local" and engine.jobs == 1
    missing = [] if alone else _missing(_points(names), options)
    if engine.name == "local" and len(missing) < 2:
        missing = []
    outcomes = _outcomes(missing, engine, options)
    try:
        yield PointPool(outcomes, missing)
    finally:
        outcomes.close()  # type: ignore[attr-defined]


def compute_shard(
    names: Sequence[str], shard: Shard, engine: Engine, progress: NamedProgress, **options: Any
) -> list[Path]:
    """Compute and save one part of the points of figures, for one of several machines.

    :func:`~attnmargin.papers.engine.reproduce.reproduce` with the same folder, or one into which
    the folders of all parts were copied, then finds them.

    Args:
        options: also ``data``, without which figures that need it are left out.
    """
    points = shard.of(_points(names, options.get("data") is not None))
    missing = _missing(points, {k: v for k, v in options.items() if k != "data"})
    progress("points", len(points) - len(missing), len(points))
    for done, outcome in enumerate(_outcomes(missing, engine, options), 1):
        if outcome.error is not None:
            raise outcome.error
        progress("points", len(points) - len(missing) + done, len(points))
    return [Path(options["out"], *store.split(":"), "points", f"{k}.npz") for store, k in points]


@final
@dataclass(frozen=True)
class _Compute:
    """What a process does with one point."""

    options: dict[str, Any]

    def __call__(self, point: Address) -> list[Path]:
        store, key = point
        return compute_points(find(store), [key], **self.options)


def _outcomes(
    points: Sequence[Address], engine: Engine, options: dict[str, Any]
) -> Iterator[Outcome]:
    """Compute points, all in the same folder wherever a process runs."""
    if not points:
        yield from ()
        return
    if engine.name == "local":
        count = min(engine.jobs or torch.get_num_threads(), len(points))
        engine = replace(engine, jobs=count, threads=max(torch.get_num_threads() // count, 1))
    places = {k: Path(options[k]).absolute() for k in ("out", "data") if options.get(k) is not None}
    work = _Compute({**options, **places})
    yield from run_items(work, enumerate(points), engine, len(points))


def _points(names: Sequence[str], data: bool = False) -> list[Address]:
    """List the points of figures, each once: the figure that stores them, and their key."""
    stores = dict.fromkeys(find(name).store for name in names)
    figures = [find(store) for store in stores]
    return [(f.name, p.key) for f in figures if data or f.needs is None for p in f.points]


def _missing(points: Sequence[Address], options: dict[str, Any]) -> list[Address]:
    """Return the points that are not saved."""
    stores = dict.fromkeys(store for store, _ in points)
    unsaved = {(name, key) for name in stores for key in unsaved_points(find(name), **options)}
    return [point for point in points if point in unsaved]
