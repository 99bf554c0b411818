"""Figures of paper C."""
