"""What this machine offers attnmargin, and whether a tiny problem is solved right."""

import os
import platform
from importlib import import_module
from importlib.util import find_spec
from math import sqrt
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import torch

from attnmargin.base.compiled import can_compile, is_cached
from attnmargin.base.extras import CORE, EXTRAS, install_line, lacking, version_of
from attnmargin.margin.builders import token_problem
from attnmargin.solvers.entry import solve
from attnmargin.version import VERSION

_HOME = Path(__file__).parent.parent
# Of the length of the solution of the tiny problem.
_TOLERANCE = 1e-12


def doctor_record() -> dict[str, Any]:
    """Describe versions, threads, GPU, compiled kernels and extras, and solve a tiny problem.

    ``holds`` says whether the problem was solved, with a certificate.

    >>> record = doctor_record()
    >>> record["check"]["status"], record["holds"]
    ('optimal', True)
    """
    check = _check()
    return {
        "versions": {"attnmargin": VERSION, "python": platform.python_version(),
                     **{package: version_of(package) for package in CORE}},
        "machine": {"system": platform.platform(), "place": str(_HOME)},
        "threads": _threads(),
        "gpu": _gpu(),
        "kernels": _kernels(),
        "extras": [
            {"extra": name, "adds": extra.adds, "missing": lacking(name),
             "install": install_line(name)}
            for name, extra in EXTRAS.items()
        ],
        "check": check,
        "holds": check["holds"],
    }  # fmt: skip


def _threads() -> dict[str, Any]:
    """Count cores, the threads of torch, and those of the libraries of linear algebra."""
    found: dict[str, Any] = {
        "cores": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "torch": torch.get_num_threads(),
        "libraries": None,
    }
    if find_spec("threadpoolctl") is not None:
        from threadpoolctl import threadpool_info

        found["libraries"] = [
            {"name": own["internal_api"], "version": own["version"], "threads": own["num_threads"]}
            for own in threadpool_info()
        ]
    return found


def _gpu() -> dict[str, Any]:
    """Name the GPU, the CUDA that torch was built for, and Triton; each None if it is missing."""
    present = torch.cuda.is_available()
    return {
        "name": torch.cuda.get_device_name() if present else None,
        "cuda": torch.version.cuda,
        "triton": version_of("triton"),
    }


def _kernels() -> dict[str, Any]:
    """Say where compiled kernels are kept, whether that works, and which are there."""
    nothing: dict[str, Any] = {"folder": None, "writable": False, "kernels": [], "error": None}
    if not can_compile():
        return nothing
    try:
        for module in kernel_modules():
            import_module(module)
    except Exception as error:  # numba may be installed, and not fit the numpy beside it
        return nothing | {"error": f"{type(error).__name__}: {error}"}
    from attnmargin.base.kernels import imported_kernels

    known = imported_kernels()
    folders = [kernel.stats.cache_path for kernel in known.values()]
    return {
        "folder": None if None in folders else os.path.commonpath(folders),
        "writable": all(folder is not None and _is_writable(Path(folder)) for folder in folders),
        "kernels": [
            {"kernel": title, "cached": is_cached(kernel)} for title, kernel in known.items()
        ],
        "error": None,
    }


def kernel_modules() -> list[str]:
    """Name the modules that hold kernels, by their text: importing all would take too long."""
    paths = [path for path in sorted(_HOME.rglob("*.py"))
             if "\n@kernel(" in path.read_text(encoding="utf-8")]  # fmt: skip
    return [".".join(("attnmargin", *path.relative_to(_HOME).with_suffix("").parts))
            for path in paths]  # fmt: skip


def _is_writable(folder: Path) -> bool:
    """Check whether a file can be written, making the folder as numba does."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _check() -> dict[str, Any]:
    """Solve a problem of one row, whose W has length 1/√2, and look at its certificate."""
    try:
        solution = solve(token_problem([[[1.0, 0.0], [0.0, 1.0]]], [[1.0, 0.0]], [0]))
    except Exception as error:  # whatever is broken, the rest of the record helps to find it
        return {"status": "failed", "error": f"{type(error).__name__}: {error}", "holds": False}
    gap, length = float(solution.certificate.gap), float(solution.value)
    right = abs(length * sqrt(2.0) - 1.0) <= _TOLERANCE
    status = str(solution.status)
    return {"status": status, "gap": gap, "holds": right and status == "optimal"}
