"""Solvers of margin problems: one folder per family of norms, one entry point ``entry.solve``."""
