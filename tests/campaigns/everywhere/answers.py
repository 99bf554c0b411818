"""Answer a fixed battery of questions: ``python -m tests.campaigns.everywhere.answers --out F``.

The answers are saved by name as .npz. Every setting of the campaign is a process of its own, which
runs this program: another Python, other packages, other threads, another device.
"""

import argparse
import os
import platform
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
_PACKAGES = ("torch", "numpy", "scipy", "numba", "mpmath")
PARTS = ("draws", "feasible", "mixed", "degenerate", "equalities", "large", "margins", "classes",
         "training", "predictions", "paths", "selections", "graphs", "importance",
         "classifier")  # fmt: skip


def versions(without: list[str]) -> dict[str, str]:
    """Say which Python and packages answer."""
    found = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = "absent" if name in without else version(name)
        except PackageNotFoundError:
            found[name] = "absent"
    return found


def hide(names: list[str]) -> None:
    """Make packages look as if they were not installed."""
    for name in names:
        sys.modules[name] = None  # type: ignore[assignment]


def answer(place: Any, parts: tuple[str, ...] = PARTS) -> dict[str, Any]:
    """Answer the parts of the battery."""
    found: dict[str, Any] = {}
    for name in parts:
        found |= _part(name)(place)
    return found


def _part(name: str) -> Callable[[Any], dict[str, Any]]:
    from tests.campaigns.everywhere import draws, runs, solutions, words

    own: Callable[[Any], dict[str, Any]] = next(
        getattr(home, name) for home in (draws, solutions, runs, words) if hasattr(home, name)
    )
    return own


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--chunk", type=int, help="members of a batch asked at a time")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--without", action="append", default=[], help="a package to hide")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--part", action="append", choices=PARTS)
    given = parser.parse_args()
    hide(given.without)
    if given.threads is not None:
        os.environ.update(dict.fromkeys(_THREADS, str(given.threads)))
    import numpy as np
    import torch

    from attnmargin.base.npz import write_npz
    from tests.campaigns.everywhere.place import Place

    if given.threads is not None:
        torch.set_num_threads(given.threads)
    place = Place(given.device, given.chunk, given.small)
    found = answer(place, tuple(given.part or PARTS))
    about = {f"_{name}": np.array(own) for name, own in versions(given.without).items()}
    write_npz(given.out, found | about)
    print(f"{len(found)} answers: {given.out}")


if __name__ == "__main__":
    main()
