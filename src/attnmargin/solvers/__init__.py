"""Solvers of margin problems: one file per method, one entry :func:`solve`."""

from attnmargin.solvers.entry import solve
from attnmargin.solvers.path import solve_path

__all__ = ["solve", "solve_path"]
