"""Run experiments point by point, save finished points, judge the claims, draw."""

import json
import platform
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from attnmargin.base.errors import InputError
from attnmargin.base.files import make_folder, own_place, write_whole
from attnmargin.base.npz import read_npz, write_npz
from attnmargin.base.progress import NamedProgress
from attnmargin.papers.engine.experiment import Arrays, Experiment, Point, Results, Task
from attnmargin.plot.drawing import draw_picture, save
from attnmargin.version import VERSION

PARTS = 1000  # of a point, in which progress is counted
_SECONDS, _SETTINGS = "_seconds", "_settings"


def _folder(out: Path, name: str) -> Path:
    paper, figure = name.split(":")
    return out / paper / figure


def _fingerprint(experiment: Experiment, point: Point, trials: int, seed: int) -> str:
    """Serialise the settings that a saved point must match."""
    own = {"experiment": experiment.store, "point": point.key, "trials": trials, "seed": seed}
    return json.dumps({**own, "settings": point.settings}, sort_keys=True, default=str)


def _load(path: Path, expected: str) -> Arrays | None:
    """Load a finished point, or return None if it is missing or its settings differ."""
    if not path.is_file():
        return None
    try:
        arrays = read_npz(path, needs=(_SECONDS, _SETTINGS))
    except InputError:
        return None
    return arrays if str(arrays[_SETTINGS]) == expected else None


def _compute(
    experiment: Experiment,
    point: Point,
    trials: int,
    seed: int,
    progress: NamedProgress,
    data: Path | None,
) -> Arrays:
    if experiment.needs is not None and data is None:
        raise InputError("data", f"no folder for {experiment.name}", experiment.needs)
    start = time.perf_counter()
    keys = [p.key for p in experiment.points]
    words, k, count = f"{experiment.name} {point.key}", keys.index(point.key), len(keys)

    def tell(done: int, total: int) -> None:
        """Report progress within a point as progress of the figure."""
        progress(words, int(PARTS * (k + done / max(total, 1))), PARTS * count)

    tell(0, 1)
    task = Task(point.settings, trials, seed, tell, data)
    arrays = experiment.run(task)
    return {**arrays, _SECONDS: np.array(time.perf_counter() - start)}


def points_of(
    experiment: Experiment,
    out: Path,
    trials: int,
    seed: int,
    progress: NamedProgress,
    redraw: bool = False,
    data: Path | None = None,
) -> Results:
    """Return all points of an experiment; compute those that are not saved."""
    folder = _folder(out, experiment.store) / "points"
    results: dict[str, Arrays] = {}
    for point in experiment.points:
        expected = _fingerprint(experiment, point, trials, seed)
        path = folder / f"{point.key}.npz"
        arrays = _load(path, expected)
        if arrays is None and experiment.partial and (redraw or data is None):
            continue
        if arrays is None:
            if redraw:
                needs = "a finished run with the same trials and seed; compute it first"
                raise InputError("redraw", f"no saved point {path}", needs)
            arrays = _compute(experiment, point, trials, seed, progress, data)
            make_folder(folder, "out")
            write_npz(own_place(folder, path.name), {**arrays, _SETTINGS: np.array(expected)})
        results[point.key] = arrays
    return results


def reproduce(
    experiment: Experiment,
    *,
    trials: int | None = None,
    out: str | Path = "results",
    seed: int = 0,
    redraw: bool = False,
    kind: str = "png",
    data: str | Path | None = None,
    progress: NamedProgress | None = None,
) -> dict[str, Any]:
    """Run one figure, judge its claims, and draw it.

    Every finished point of a curve is saved at once and never computed again, so a stopped run
    resumes where it was.

    Args:
        experiment: see :func:`attnmargin.papers.registry.find`.
        trials: per point; the number in the paper by default.
        out: folder for arrays, pictures and the record.
        redraw: draw and judge the saved points, and compute nothing.
        kind: picture format: "png", "svg" or "pdf".
        data: a folder with the reviews that some figures need.
        progress: called with words, the number done and the total.

    Returns:
        ``{"figure", "trials", "seconds", "claims": [{"claim", "measured", "bound", "holds"}],
        "files"}``, and the settings; ``result.json`` in the folder holds the same.
    """
    count, base = _trials(experiment, trials), _ready(out, experiment.name)
    if lacks_data(experiment, base, None if data is None else Path(data)) and not redraw:
        raise InputError("data", f"no folder for {experiment.name}", str(experiment.needs))
    results = points_of(
        experiment, base, count, seed, progress or (lambda words, done, total: None), redraw,
        None if data is None else Path(data),
    )  # fmt: skip
    return _finish(experiment, results, base, count, seed, kind)


def compute_points(
    experiment: Experiment,
    keys: Sequence[str],
    *,
    trials: int | None = None,
    out: str | Path = "results",
    seed: int = 0,
    data: str | Path | None = None,
    progress: NamedProgress | None = None,
) -> list[Path]:
    """Compute and save single points of a figure, so that machines can share the work.

    :func:`reproduce` with the same folder, trials and seed then finds them.

    Example:
        >>> import tempfile
        >>> from attnmargin.papers.engine.reproduce import compute_points
        >>> from attnmargin.papers.registry import find
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     paths = compute_points(find("D:lemma2"), ["d64"], trials=1, out=folder)
        >>> [path.name for path in paths]
        ['d64.npz']
    """
    known = {point.key: point for point in experiment.points}
    for key in keys:
        if key not in known:
            raise InputError("point", repr(key), f"one of {', '.join(known)}")
    part = replace(experiment, points=tuple(known[key] for key in keys))
    quiet = progress or (lambda words, done, total: None)
    place = None if data is None else Path(data)
    base = _ready(out, experiment.store)
    points_of(part, base, _trials(experiment, trials), seed, quiet, data=place)
    return [_folder(base, experiment.store) / "points" / f"{key}.npz" for key in keys]


def unsaved_points(
    experiment: Experiment, *, trials: int | None = None, out: str | Path = "results", seed: int = 0
) -> list[str]:
    """List the keys of the points that are not saved with these trials and this seed."""
    count, folder = _trials(experiment, trials), _folder(Path(out), experiment.store) / "points"
    expected = {p.key: _fingerprint(experiment, p, count, seed) for p in experiment.points}
    return [key for key, own in expected.items() if _load(folder / f"{key}.npz", own) is None]


def _ready(out: str | Path, name: str) -> Path:
    """Create the folder of a figure; return the folder of all results."""
    make_folder(_folder(Path(out), name), "out")
    return Path(out)


def _trials(experiment: Experiment, trials: int | None) -> int:
    count = experiment.trials if trials is None else int(trials)
    if count < 1:
        raise InputError("trials", f"{count}", "at least one trial")
    return count


def _finish(
    experiment: Experiment, results: Results, out: Path, trials: int, seed: int, kind: str
) -> dict[str, Any]:
    folder = _folder(out, experiment.name)
    files = _draw(experiment, results, folder, kind)
    if experiment.files is not None:
        files += experiment.files(results, folder)
    seconds = 0.0
    if experiment.source is None:
        seconds = float(sum(float(arrays[_SECONDS]) for arrays in results.values()))
    record: dict[str, Any] = {
        "figure": experiment.name,
        "title": experiment.title,
        "trials": trials,
        "unit": experiment.unit,
        "seed": seed,
        "seconds": round(seconds, 2),
        "claims": [claim.record() for claim in experiment.claims(results)],
        "measurements": [own.record() for own in experiment.measurements(results)],
        "files": [str(file) for file in files],
        "points": {point.key: point.settings for point in experiment.points},
        "versions": {
            "attnmargin": VERSION,
            "torch": torch.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
    }
    # The file lists paths relative to its folder, so that the folder can be moved.
    inside = {**record, "files": [str(file.relative_to(folder)) for file in files]}
    text = json.dumps(inside, indent=1, ensure_ascii=False, default=str) + "\n"
    path = write_whole(own_place(folder, "result.json"), lambda stream: stream.write(text.encode()))
    record["files"] = [*record["files"], str(path)]
    return record


def _draw(experiment: Experiment, results: Results, folder: Path, kind: str) -> list[Path]:
    """Draw the pictures from the saved arrays alone."""
    files = []
    for picture in experiment.pictures(results):
        figure = draw_picture(picture)
        place = own_place(folder, f"{picture['name']}.{kind}")
        files.append(write_whole(place, partial(save, figure, kind)))
    return files


def lacks_data(experiment: Experiment, out: Path, data: Path | None) -> bool:
    """Test whether a figure lacks the data to compute it, and is not saved completely either."""
    folder = _folder(out, experiment.store) / "points"
    saved = [(folder / f"{point.key}.npz").is_file() for point in experiment.points]
    enough = any(saved) if experiment.partial else all(saved)
    return experiment.needs is not None and data is None and not enough
