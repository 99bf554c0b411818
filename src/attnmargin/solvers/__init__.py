"""Solvers of margin problems: one file per method, one entry :func:`solve`."""

from attnmargin.solvers.entry import solve

__all__ = ["solve"]
