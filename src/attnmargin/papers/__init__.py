"""Figures, tables and experiments of the four papers."""
