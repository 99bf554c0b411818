"""Figures and tables of paper B."""
