"""The entry points: compute the points of a grid, and collect them."""

import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from attnmargin.base.checks import check_number, check_whole
from attnmargin.base.errors import InputError
from attnmargin.base.progress import NamedProgress
from attnmargin.sweeps.engines.engine import Engine, LostError, Outcome, as_engine, run_items
from attnmargin.sweeps.folder import Folder, Plan
from attnmargin.sweeps.grid import Grid, Settings, points_of
from attnmargin.sweeps.shards import Shard, as_shard
from attnmargin.sweeps.sweep import Sweep
from attnmargin.sweeps.work import Function, Work, as_work, check_arguments


def sweep(
    function: Function | str | list[str],
    grid: Grid,
    trials: int = 1,
    seed: int = 0,
    *,
    out: str | Path,
    engine: Engine | str = "local",
    jobs: int | None = None,
    shard: Shard | str | None = None,
    time_limit: float | None = None,
    progress: NamedProgress | None = None,
) -> Sweep:
    """Compute a function over the points of a grid, and save every point as soon as it is done.

    A finished point is a file named by its settings' fingerprint, and is never computed again: a
    sweep that was stopped, on whatever machine, goes on with the same call. A point whose function
    raises is saved as failed, does not stop the others, and is tried again by the next call.

    Args:
        function: called with the settings of a point as keywords. One with an argument ``trials``
            is called once per point, also with ``seed`` if it has it, and returns a dict of numbers
            or arrays ``(trials,)``. Any other is called once per trial, with ``trial`` and ``seed``
            if it has them, and returns a dict of numbers and words, or one number. Trial k has the
            same seed at every point. Or a command such as ``"python train.py --lr {lr}"`` that
            prints a JSON object as its last line, see :class:`attnmargin.sweeps.Command`.
        grid: values by name, where a list varies and anything else is fixed; or a list of points.
        out: folder of this sweep, which all machines that take part must see.
        engine: "local" (processes of this machine), "ray", "dask", or an
            :class:`attnmargin.sweeps.Engine`. Every process has one thread for linear algebra, so
            that the numbers do not depend on the number of cores.
        jobs: number of processes; all cores by default, and 1 stays in this process.
        shard: "2/8" computes the second of eight parts of the points, for eight machines.
        time_limit: seconds after which no further point is begun.
        progress: called with words, the number of points done and their total.

    Returns:
        A :class:`Sweep`, with the points of this shard.

    Example:
        >>> import tempfile
        >>> import attnmargin as am
        >>> def margin(d, trials, seed):
        ...     data = am.random_data(4, 4, d, trials, seed=seed)
        ...     problem = am.token_problem(data.X, data.z, am.optimal_tokens(data))
        ...     return {"margin": am.solve(problem).margin}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     found = am.sweep(margin, {"d": [4, 8, 16]}, trials=5, out=folder, jobs=1)
        ...     table = found.table()
        >>> found
        Sweep
          points  3
          done    3
        >>> list(table), len(table["margin"])
        (['d', 'trial', 'margin'], 15)
    """
    check_whole(trials=trials)
    check_whole(0, seed=seed)
    chosen, part = as_engine(engine, jobs), as_shard(shard)
    points, work = points_of(grid), as_work(function, trials, seed)
    check_arguments(work, points)
    folder, plan = Folder(Path(out).absolute()), Plan(work.name, points, trials, seed)
    folder.write_plan(plan)
    task = _Task(work, folder)
    with_marks = part.of(list(zip(points, plan.marks(), strict=True)))
    _compute(task, with_marks, chosen, _deadline(time_limit), progress)
    if not folder.plan_file.is_file():  # somebody removed the folder meanwhile
        folder.write_plan(plan)
    return Sweep((folder,), plan, [mark for _, mark in with_marks])


def collect(*folders: str | Path) -> Sweep:
    """Join the shards of a sweep, from one folder or several, and name what is missing.

    Example:
        >>> import tempfile
        >>> import attnmargin as am
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     grid = {"x": [1, 2, 3, 4]}
        ...     _ = am.sweep(lambda x: x * x, grid, out=folder, shard="1/2", jobs=1)
        ...     half = am.collect(folder)
        ...     half.missing, half.table()["value"].tolist()
        ([{'x': 2}, {'x': 4}], [1, 9])
    """
    if not folders:
        raise InputError("folders", "none", "at least one folder of a sweep")
    own = tuple(Folder(Path(folder)) for folder in folders)
    plan = own[0].read_plan()
    for other in own[1:]:
        if other.read_plan() != plan:
            got = f"{own[0].path} and {other.path}, which hold different sweeps"
            raise InputError("folders", got, "parts of one sweep")
    return Sweep(own, plan, plan.marks())


@final
@dataclass(frozen=True)
class _Task:
    """What a process does with one point."""

    work: Work
    folder: Folder

    def __call__(self, point: tuple[Settings, str]) -> bool:
        """Compute and save a point; return whether it succeeded."""
        settings, mark = point
        if self.folder.has(mark):  # another process was faster
            return True
        start = time.perf_counter()
        try:
            arrays = self.work(settings)
        except (Exception, SystemExit) as error:
            why = f"{type(error).__name__}: {error}"
            self.folder.write_failure(mark, settings, why, traceback.format_exc())
            return False
        self.folder.write_point(mark, settings, arrays, time.perf_counter() - start)
        return True


def _compute(
    task: _Task,
    points: Sequence[tuple[Settings, str]],
    engine: Engine,
    begun: Callable[[], bool],
    progress: NamedProgress | None,
) -> None:
    """Compute the points that are not saved yet."""
    rest = [(k, point) for k, point in enumerate(points) if not task.folder.has(point[1])]
    done, failed = len(points) - len(rest), 0
    tell = progress or (lambda words, done, total: None)
    tell("points", done, len(points))
    for outcome in run_items(task, _until(rest, begun), engine, len(rest)):
        failed += not _saved(task.folder, points[outcome.number], outcome)
        done += 1
        tell("points" if not failed else f"points, {failed} failed", done, len(points))


def _until(rest: list[tuple[int, Any]], begun: Callable[[], bool]) -> Iterator[tuple[int, Any]]:
    for item in rest:
        if not begun():
            return
        yield item


def _saved(folder: Folder, point: tuple[Settings, str], outcome: Outcome) -> bool:
    """Check that a point was saved where this process sees it; raise what must stop a sweep."""
    settings, mark = point
    if isinstance(outcome.error, LostError):
        folder.write_failure(mark, settings, str(outcome.error))
        return False
    if outcome.error is not None:
        raise outcome.error
    path = folder.point(mark) if outcome.value else folder.failure(mark)
    if not path.is_file() and folder.plan_file.is_file():
        got = f"{folder.path}, where a process saved {path.name} and this one does not see it"
        raise InputError("out", got, "a folder that all machines share")
    return bool(outcome.value)


def _deadline(seconds: float | None) -> Callable[[], bool]:
    """Return a function that says whether there is time for another point."""
    if seconds is None:
        return lambda: True
    needs = "a positive number of seconds"
    end = time.monotonic() + check_number("time_limit", seconds, needs)
    if not seconds > 0.0:
        raise InputError("time_limit", f"{seconds:g}", needs)
    return lambda: time.monotonic() < end
